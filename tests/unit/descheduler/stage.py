"""A stage for the descheduler's core: the CLUSTER stream, of which a listing sees what lies in it, and
evictions that the test answers."""

from podyard.cluster.usages import Heard
from podyard.cluster.view import ClusterView
from podyard.descheduler.core.descheduler import Descheduler
from podyard.descheduler.core.effects import Ask, Effect, Evict, List, Query, Remember
from podyard.descheduler.core.evictions import EvictionDone, EvictionResult
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.measured import Sample
from podyard.descheduler.core.messages import EvictionAnswered, Listed, Message, NotListed, Queried, Tick
from podyard.descheduler.core.policy import Policy
from podyard.proto.moves import MoveRecord
from podyard.proto.placement import BoundPod
from tests.support import objects, stored
from tests.support.stream import ClusterStream
from tests.unit.descheduler.make import NOW, OWNER, known

INTERVAL_S = 300.0


class Stage:
    """One term, on two nodes."""

    def __init__(self, policy: Policy, *plugins: type[Plugin], once: bool = False) -> None:
        self.now = NOW
        self.core = Descheduler(policy, known(*plugins), interval_s=INTERVAL_S, once=once)
        self.wanted: list[Effect] = []
        """By the last message, apart from what is to be remembered."""
        self.remembered: list[MoveRecord] = []
        self.heard: dict[str, Heard] = {}
        """What agents have said, as of a listing."""
        self._stream = ClusterStream(lambda: self.now)
        self._commits = 0
        for name in ("n1", "n2"):
            self._stream.put(stored.version("nodes", objects.node(name)))

    def pods(self, *names: str, node: str = "n1") -> None:
        """Pods of a ReplicaSet, bound to a node."""
        for name in names:
            pod = objects.pod(name, metadata={"ownerReferences": OWNER})
            self._stream.put(stored.version("pods", pod))
            bound = BoundPod(namespace="default", name=name, uid=pod["metadata"]["uid"], node=node, attempt=name)
            self._commits += 1
            self._stream.put_all(stored.commit(self._commits, bindings=[bound]))

    # ---- the core

    def tell(self, message: Message) -> list[Effect]:
        wanted = self.core.step(message, self.now)
        self.wanted = [one for one in wanted if not isinstance(one, Remember)]
        self.remembered += [move for one in wanted if isinstance(one, Remember) for move in one.moves]
        return self.wanted

    def tick(self, after_s: float = 0.0) -> list[Effect]:
        self.now += after_s
        return self.tell(Tick())

    @property
    def asked(self) -> Ask:
        """The one thing that it wants."""
        (ask,) = self.wanted
        assert isinstance(ask, List | Query | Evict)
        return ask

    @property
    def evicting(self) -> str:
        """The pod that it wants to be evicted."""
        assert isinstance(self.asked, Evict)
        return self.asked.eviction.pod.metadata.name

    def listed(self) -> list[Effect]:
        """Answer what it asks by a listing."""
        assert isinstance(self.asked, List)
        view = ClusterView()
        view.begin_listing()
        for delivery in self._stream.listed():
            view.apply(delivery)
        view.end_listing(self._stream.last)
        return self.tell(Listed(self.asked.ticket, view, heard=dict(self.heard)))

    def queried(self, **shares: float) -> list[Effect]:
        """Answer its query by samples: node and share."""
        assert isinstance(self.asked, Query)
        samples = tuple(Sample({"instance": node}, share) for node, share in shares.items())
        return self.tell(Queried(self.asked.ticket, dict.fromkeys(self.asked.queries, samples)))

    def not_listed(self, reason: str = "no answer in time") -> list[Effect]:
        return self.tell(NotListed(self.asked.ticket, reason))

    def answer(self, result: EvictionResult | None = None) -> list[Effect]:
        """Say what became of the eviction that it asks for."""
        assert isinstance(self.asked, Evict)
        return self.tell(EvictionAnswered(self.asked.ticket, EvictionDone() if result is None else result))

    def cycle(self, after_s: float = 0.0) -> list[Effect]:
        """A whole one, all of whose evictions are done, and whose queries find nothing; its last effects."""
        self.tick(after_s)
        self.listed()
        if isinstance(self.wanted[0], Query):
            self.queried()
        while isinstance(self.wanted[0], Evict):
            self.answer()
        return self.wanted
