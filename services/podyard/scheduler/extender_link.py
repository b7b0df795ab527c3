"""Asks HTTP extenders what the core wants to know, one question after the other."""

from podyard.cluster.node_table import NodeTable
from podyard.extenders import ExtenderClients
from podyard.scheduler.core.messages import ExtendersAnswered
from podyard.scheduler.engine import Engine


class ExtenderLink:
    """The core waits meanwhile and its table does not change, so there is one question at a time."""

    def __init__(self, engine: Engine, clients: ExtenderClients, nodes: NodeTable) -> None:
        """:param nodes: the core's"""
        self._engine = engine
        self._clients = clients
        self._nodes = nodes

    async def run(self) -> None:
        """Ask and tell, for ever."""
        while True:
            for question in await self._engine.questions.take(1):
                answers = await self._clients.ask(question.calls, self._nodes)
                self._engine.step(ExtendersAnswered(question.number, answers))
