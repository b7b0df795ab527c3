"""Plays queue, cluster and binder for the scheduler's core, without a bus or a clock."""

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

from podyard.cluster.changes import Change, Origin
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView, from_binding
from podyard.framework.extenders import Extender
from podyard.framework.profile import Profile
from podyard.objects.core import Node
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest, BindResult, Decision
from podyard.proto.placement import BoundPod, Release, Usage
from podyard.proto.queue_api import AttemptResult, PoppedPod, PopReply
from podyard.scheduler.core.effects import Bind, Done, Effect
from podyard.scheduler.core.messages import BindAnswered, Changed, Listed, Message, Popped, SessionStarted, Work
from podyard.scheduler.core.scheduler import Scheduler
from tests.support import objects
from tests.support.objects import view
from tests.unit.framework.builders import profile

E = TypeVar("E")
SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
UNSAMPLED = SAMPLED[:-2] + "00"


class FakeView:
    """What the core reads of a cluster view."""

    def __init__(self) -> None:
        self.pods: dict[tuple[str, str], PodView] = {}
        self.placements: dict[str, BoundPod | Release] = {}
        self.position = 0
        self.read_at = 0.0

    @property
    def read(self) -> int:
        return self.position

    def objects(self, resource: str) -> Mapping[tuple[str, str], Any]:
        return {}

    def version(self, resource: str) -> int:
        return self.position


class Play:
    """One core with its surroundings; keeps every effect."""

    def __init__(self, *nodes: Node, use: Profile | None = None, extenders: Sequence[Extender] = ()) -> None:
        self.view = FakeView()
        used = use or profile()
        self.core = Scheduler({"default-scheduler": used}, self.view, "s1", extenders=extenders)
        self.effects: list[Effect] = []
        self.now = 1000.0
        self._attempts = 0
        self._usage: dict[str, Usage] = {}
        for node in nodes:
            self.set_node(node)

    def tell(self, message: Message) -> list[Effect]:
        effects = self.core.step(message, self.now)
        self.effects += effects
        return effects

    # ---- the cluster

    def _change(self, change: Change) -> None:
        self.view.position += 1
        self.tell(Changed([change]))

    def core_changed(self, change: Change) -> None:
        """The view has changed in a way of the test's own."""
        self._change(change)

    def set_node(self, node: Node) -> None:
        name = node.metadata.name
        self._change(Change("nodes", name, None, NodeView(node, name, name, 1), Origin()))

    def add(self, *pods: PodView) -> None:
        for pod in pods:
            self.view.pods[pod.key] = pod
            self._usage[pod.uid] = pod.usage
            self._change(Change("pods", pod.uid, None, pod, Origin()))

    def delete(self, pod: PodView) -> None:
        old = self.view.pods.pop(pod.key)
        self._change(Change("pods", pod.uid, old, None, Origin()))

    def bind(self, decision: Decision, node: str = "", attempt: str = "") -> None:
        """The binding of a decided pod shows in the view."""
        old = self.view.pods.get((decision.namespace, decision.name))
        bound = BoundPod(
            namespace=decision.namespace,
            name=decision.name,
            uid=decision.uid,
            node=node or decision.node,
            attempt=attempt or decision.attempt,
            usage=self._usage[decision.uid],
        )
        new = from_binding(bound) if old is None else old.with_placement(bound, None)
        if old is not None:
            self.view.pods[old.key] = new
        self.view.placements[decision.uid] = bound
        self._change(Change("pods", decision.uid, old, new, Origin(), bound=True))

    def resize(self, pod: PodView, cpu: str) -> None:
        """A bound pod's object is another: it requests `cpu` now."""
        old = self.view.pods[pod.key]
        new = view(objects.pod(pod.name, cpu=cpu), sequence=self.view.position + 1, bound=old.bound)
        self.view.pods[pod.key] = new
        self._change(Change("pods", pod.uid, old, new, Origin(self.view.position + 1)))

    def release(self, pod: PodView) -> None:
        old = self.view.pods[pod.key]
        assert old.bound is not None
        release = Release(namespace=old.namespace, name=old.name, uid=old.uid, node=old.bound.node, reason="terminated")
        new = old.with_placement(None, release)
        self.view.pods[old.key] = new
        self.view.placements[old.uid] = release
        self._change(Change("pods", old.uid, old, new, Origin(), release=release))

    # ---- the queue

    def pop(
        self, *pods: PodView, epoch: int = 1, ahead: int = 0, trace: str = UNSAMPLED, thinned: str = ""
    ) -> list[str]:
        """Hand pods out; returns their attempts."""
        popped: list[PoppedPod] = []
        for pod in pods:
            self._attempts += 1
            popped.append(
                PoppedPod(
                    namespace=pod.namespace,
                    name=pod.name,
                    uid=pod.uid,
                    attempt=f"{epoch}-{self._attempts}",
                    popped_at=self.now,
                    trace=trace,
                    thinned=thinned,
                )
            )
        self.tell(Popped(PopReply(epoch=epoch, position=self.view.position + ahead, pods=tuple(popped))))
        return [one.attempt for one in popped]

    def schedule(self, *pods: PodView, trace: str = UNSAMPLED, thinned: str = "") -> list[Decision]:
        """Pop and work; returns the decisions."""
        self.pop(*pods, trace=trace, thinned=thinned)
        return self.work()

    def work(self, limit: int = 256) -> list[Decision]:
        return [d for effect in self.tell(Work(limit)) if isinstance(effect, Bind) for d in effect.request.decisions]

    def session(self, name: str) -> None:
        self.tell(SessionStarted(name))

    def listed(self) -> None:
        self.tell(Listed())

    def core_allow(self, uid: str, plugin: str) -> None:
        """A Permit plugin lets a waiting pod go on."""
        self.core._placing.permits.allow(uid, plugin)  # pyright: ignore[reportPrivateUsage] - as the plugin itself would

    # ---- the binder

    def answer(self, decision: Decision, result: BindResult, *, node: str = "", ahead: int = 0, **more: Any) -> None:
        answer = BindAnswer(attempt=decision.attempt, uid=decision.uid, result=result, node=node, **more)
        request = BindRequest(session="s1", decisions=(decision,))
        self.tell(BindAnswered(request, BindReply(epoch=1, position=self.view.position + ahead, answers=(answer,))))

    # ---- what was done

    def of(self, kind: type[E]) -> list[E]:
        """Effects of one kind so far."""
        return [effect for effect in self.effects if isinstance(effect, kind)]

    def results(self, name: str = "") -> list[AttemptResult]:
        """Results so far, of one pod or of all."""
        return [one.result for one in self.of(Done) if name in ("", one.result.name)]

    def requests(self) -> list[BindRequest]:
        """Requests to the binder so far."""
        return [one.request for one in self.of(Bind)]

    def claims(self) -> list[tuple[int, int]]:
        """The outstanding ranges of the last request."""
        return [(one.first, one.last) for one in self.requests()[-1].outstanding]
