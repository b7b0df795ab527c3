"""Has the objects of deleted pods removed that have ended: by the api, for many at once. Shell.

Nothing is kept that could not be asked: the core asks again for what is still there.
"""

from typing import Final, NoReturn

import anyio
import structlog

from podyard.bus import Bus, BusError
from podyard.node_agent.core.effects import RemovePod
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import DeleteRequest, ObjectsReply

AT_ONCE: Final = 256
ASK_S: Final = 5.0
GATHER_S: Final = 0.05


class Removing:
    """Owned by the task that runs `run`; `put` is called from the same event loop."""

    def __init__(self, bus: Bus, log: structlog.stdlib.BoundLogger, *, who: str) -> None:
        self._bus = bus
        self._log = log
        self._who = who
        self._waiting: dict[str, list[ObjectRef]] = {}
        self._some = anyio.Event()

    def put(self, wanted: RemovePod) -> None:
        """Ask for it soon."""
        self._waiting.setdefault(wanted.node, []).append(wanted.about)
        self._some.set()

    async def run(self) -> NoReturn:
        """Ask for ever."""
        while True:
            await self._some.wait()
            await anyio.sleep(GATHER_S)
            waiting, self._waiting = self._waiting, {}
            self._some = anyio.Event()
            for node, pods in waiting.items():
                for start in range(0, len(pods), AT_ONCE):
                    await self._ask(node, tuple(pods[start : start + AT_ONCE]))

    async def _ask(self, node: str, pods: tuple[ObjectRef, ...]) -> None:
        request = DeleteRequest(objects=pods, grace_period_s=0, who=self._who, why=f"it has ended on node {node}")
        try:
            reply = await self._bus.request(subjects.node_delete(node), codec.encode(request), timeout_s=ASK_S)
            answer = codec.decode(ObjectsReply, reply.payload)
        except (BusError, MessageError) as error:
            self._log.info("pods that have ended are not removed yet", node=node, pods=len(pods), reason=str(error))
            return
        refused = [one for one in answer.results if one.outcome == "refused"]
        if refused:
            self._log.warning(
                "pods that have ended are not removed", node=node, pods=len(refused), first=refused[0].reason
            )
