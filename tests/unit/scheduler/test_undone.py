"""Every way in which a pod loses the node it was decided for: Reserve is undone in reverse, its room is free,
the queue is told."""

from collections.abc import Callable, Hashable
from typing import ClassVar, NamedTuple

import pytest

from podyard.cluster.pods import PodView
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PermitResult
from podyard.framework.permits import WaitingPods
from podyard.framework.pod_info import PodInfo
from podyard.framework.profile import Enabled, resolve
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.plugins import registry
from podyard.proto.binder_api import Decision
from podyard.scheduler.core.messages import Work
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.scheduler.play import Play

PLUGINS = ("PrioritySort", "NodeUnschedulable", "NodeResourcesFit", "DefaultPreemption")
UNDONE = ["Second.unreserve", "First.unreserve"]


class Recording:
    """Reserve and Permit of two plugins, First and Second: what they are told to answer about pod p, and in
    which order they were asked."""

    name: ClassVar[str] = "First"

    def __init__(self, log: list[str]) -> None:
        self._log = log
        self.reserves: Callable[[], Status] = lambda: statuses.SUCCESS
        self.permits: Callable[[], PermitResult] = PermitResult
        self.unreserves: Callable[[], None] = lambda: None

    def signature(self, pod: PodInfo) -> Hashable:
        return None

    def reserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status:
        if pod.name != "p":
            return statuses.SUCCESS
        self._log.append(f"{self.name}.reserve")
        return self.reserves()

    def unreserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None:
        if pod.name == "p":
            assert node_name == "a"
            self._log.append(f"{self.name}.unreserve")
            self.unreserves()

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult:
        return self.permits() if pod.name == "p" else PermitResult()


class Second(Recording):
    name: ClassVar[str] = "Second"


class Bench:
    """Node a, which pod p fills, nominated to it; and the plugins."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self.first, self.second = Recording(self.log), Second(self.log)
        entries = registry.by_name()
        plugins = [*(registry.create(entries[name]) for name in PLUGINS), self.first, self.second]
        self.play = Play(make_node("a"), use=resolve("default-scheduler", [Enabled(plugin=one) for one in plugins]))
        self.pod = make_pod("p", cpu="4", priority=1, nominated="a")
        self.play.add(self.pod)

    def decide(self) -> Decision:
        """The binder is asked."""
        (decision,) = self.play.schedule(self.pod)
        return decision

    def wait(self, seconds: float = 60.0) -> None:
        """Both plugins wait."""
        for plugin in (self.first, self.second):
            plugin.permits = lambda: PermitResult(status=statuses.wait(), timeout_s=seconds)
        assert self.play.schedule(self.pod) == []
        assert self.play.core.nodes.placed(self.pod.uid) is not None

    @property
    def waiting(self) -> WaitingPods:
        return self.play.core._placing.permits  # pyright: ignore[reportPrivateUsage] - as plugins are given it

    def high(self) -> PodView:
        pod = make_pod("high", cpu="4", priority=10)
        self.play.add(pod)
        return pod


def fails() -> None:
    raise RuntimeError("out of order")


def refuses_reserve(bench: Bench) -> None:
    bench.second.reserves = lambda: statuses.unschedulable("not this one")
    assert bench.play.schedule(bench.pod) == []


def refuses_reserve_first(bench: Bench) -> None:
    bench.first.reserves = lambda: statuses.unschedulable("not this one")
    assert bench.play.schedule(bench.pod) == []


def raises_in_reserve(bench: Bench) -> None:
    bench.second.reserves = lambda: fails() or statuses.SUCCESS
    assert bench.play.schedule(bench.pod) == []


def refuses_at_permit(bench: Bench) -> None:
    bench.second.permits = lambda: PermitResult(status=statuses.unschedulable("no"))
    assert bench.play.schedule(bench.pod) == []


def refuses_where_another_waits(bench: Bench) -> None:
    bench.first.permits = lambda: PermitResult(status=statuses.wait(), timeout_s=60)
    refuses_at_permit(bench)


def raises_at_permit(bench: Bench) -> None:
    bench.second.permits = lambda: fails() or PermitResult()
    assert bench.play.schedule(bench.pod) == []


def waits_too_long(bench: Bench) -> None:
    bench.wait(10)
    bench.waiting.allow(bench.pod.uid, "First")
    bench.play.now += 10
    bench.play.work()


def waits_no_time_at_all(bench: Bench) -> None:
    bench.wait(0)
    bench.play.work()


def is_refused_while_it_waits(bench: Bench) -> None:
    bench.wait()
    bench.waiting.allow(bench.pod.uid, "First")
    bench.waiting.reject(bench.pod.uid, "Second", "no after all")
    bench.play.work()


def is_deleted_while_it_waits(bench: Bench) -> None:
    bench.wait()
    bench.play.delete(bench.pod)


def is_preempted_while_it_waits(bench: Bench) -> None:
    bench.wait()
    bench.play.schedule(bench.high())


def is_preempted_before_the_binder_is_asked(bench: Bench) -> None:
    bench.play.pop(bench.pod, bench.high())
    assert [one.name for one in bench.play.work()] == []


def is_bound_by_others_while_it_waits(bench: Bench) -> None:
    bench.play.set_node(make_node("b", unschedulable=True))
    bench.wait()
    decision = bench.play.core._placing.assumptions.get(bench.pod.uid)  # pyright: ignore[reportPrivateUsage]
    assert decision is not None
    bench.play.bind(decision.decision, node="b", attempt="9-9")


def loses_its_session_while_it_waits(bench: Bench) -> None:
    bench.wait()
    bench.play.session("s2")


def loses_its_session_when_it_was_allowed(bench: Bench) -> None:
    bench.wait()
    for plugin in ("First", "Second"):
        bench.waiting.allow(bench.pod.uid, plugin)
    bench.play.session("s2")
    assert bench.play.work() == []


def conflicts_too_often(bench: Bench) -> None:
    decision = bench.decide()
    for _ in range(3):
        bench.play.answer(decision, "conflict", cause="fit")
        assert bench.log[-2:] == UNDONE
        (decision,) = bench.play.work()
    bench.play.answer(decision, "conflict", cause="fit")


def conflicts_and_then_fits_nowhere(bench: Bench) -> None:
    decision = bench.decide()
    bench.play.set_node(make_node("a", unschedulable=True))
    bench.play.answer(decision, "conflict", cause="fit")
    assert bench.play.work() == []
    bench.play.set_node(make_node("a"))


def is_refused_by_the_binder(bench: Bench) -> None:
    bench.play.answer(bench.decide(), "error", cause="VolumeBinding", reasons=("no",))


def is_gone_for_the_binder(bench: Bench) -> None:
    bench.play.answer(bench.decide(), "gone")


def is_bound_elsewhere_says_the_binder(bench: Bench) -> None:
    bench.play.answer(bench.decide(), "alreadyBound", node="b")


def is_bound_elsewhere_says_a_listing(bench: Bench) -> None:
    decision = bench.decide()
    bench.play.bind(decision, node="b", attempt="9-9")
    bench.play.listed()
    bench.play.answer(decision, "alreadyBound", node="b")


def waits_in_the_binder_in_vain(bench: Bench) -> None:
    decision = bench.decide()
    bench.play.answer(decision, "waiting")
    bench.play.now += 1
    bench.play.tell(Work(256))
    bench.play.answer(decision, "error", cause="VolumeBinding", reasons=("not done within 600 s",))


def is_preempted_while_it_waits_in_the_binder(bench: Bench) -> None:
    decision = bench.decide()
    bench.play.answer(decision, "waiting")
    bench.play.schedule(bench.high())
    assert bench.log == ["First.reserve", "Second.reserve"]
    bench.play.answer(decision, "error", cause="withdrawn")


def is_decided_again_while_unanswered(bench: Bench) -> None:
    decision = bench.decide()
    bench.play.session("s2")
    bench.play.pop(bench.pod, epoch=2)
    assert bench.play.work() == []
    bench.first.reserves = lambda: statuses.unschedulable("not twice")
    bench.play.answer(decision, "conflict", cause="fit")
    assert bench.log[2:] == UNDONE
    bench.play.work()


class Path(NamedTuple):
    """What ends the decision, and what the queue is told last: result and the node whose room is free."""

    happens: Callable[[Bench], None]
    outcome: str
    reserved: int = 1
    """How often Reserve was asked, and is undone."""
    told: bool = True
    """Whether the queue is told of the room; a session that ends tells it by that."""
    stays: bool = True
    """Whether the pod is still to be scheduled, and its nomination counts again."""


PATHS = (
    Path(refuses_reserve, "unschedulable"),
    Path(refuses_reserve_first, "unschedulable"),
    Path(raises_in_reserve, "error"),
    Path(refuses_at_permit, "unschedulable"),
    Path(refuses_where_another_waits, "unschedulable"),
    Path(raises_at_permit, "error"),
    Path(waits_too_long, "unschedulable"),
    Path(waits_no_time_at_all, "unschedulable"),
    Path(is_refused_while_it_waits, "unschedulable"),
    Path(is_deleted_while_it_waits, "error", stays=False),
    Path(is_preempted_while_it_waits, "bindError", stays=False),
    Path(is_preempted_before_the_binder_is_asked, "bindError", stays=False),
    Path(is_bound_by_others_while_it_waits, "scheduled", stays=False),
    Path(loses_its_session_while_it_waits, "", told=False),
    Path(loses_its_session_when_it_was_allowed, "", told=False),
    Path(conflicts_too_often, "bindError", reserved=4),
    Path(conflicts_and_then_fits_nowhere, "bindError"),
    Path(is_refused_by_the_binder, "bindError"),
    Path(is_gone_for_the_binder, "error"),
    Path(is_bound_elsewhere_says_the_binder, "bindError"),
    Path(is_bound_elsewhere_says_a_listing, "bindError", stays=False),
    Path(waits_in_the_binder_in_vain, "bindError"),
    Path(is_preempted_while_it_waits_in_the_binder, "bindError", stays=False),
    Path(is_decided_again_while_unanswered, "unschedulable", reserved=2),
)


def check(bench: Bench, path: Path) -> None:
    """All is as if the pod had never been decided."""
    play, uid = bench.play, bench.pod.uid
    undone = [call for call in bench.log if "unreserve" in call]
    assert undone == UNDONE * path.reserved
    assert bench.log[-2:] == UNDONE
    placed = play.core.nodes.placed(uid)
    assert placed is None or placed.node_name == "b"
    row = play.core.nodes.row_of["a"]
    assert int(play.core.nodes.room.requested[0, row]) == 0
    assert not play.core.is_unsettled(uid)
    assert uid not in bench.waiting.unsettled()
    assert play.core.wake_at is None
    assert play.core.open_attempts() == ()
    results = play.results("p")
    assert [one.outcome for one in results[-1:]] == ([path.outcome] if path.outcome else [])
    assert any(one.assumed == "a" for one in results) is path.told
    if path.outcome == "unschedulable" or path.happens in (raises_in_reserve, raises_at_permit):
        assert results[-1].nominated_node == "", (
            "others would be kept out of the room by a pod that waits for something else"
        )
    nominated = play.core._placing.nominations.nominated.on("a")  # pyright: ignore[reportPrivateUsage]
    assert (uid in nominated) is path.stays


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.happens.__name__.replace("_", " "))
def test_reserve_is_undone_in_reverse_order(path: Path) -> None:
    bench = Bench()
    path.happens(bench)
    check(bench, path)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.happens.__name__.replace("_", " "))
def test_a_plugin_that_fails_in_unreserve_stops_nobody(path: Path) -> None:
    bench = Bench()
    bench.second.unreserves = fails
    path.happens(bench)
    check(bench, path)
    if path.told:
        told = [one.message for one in bench.play.results("p") if one.assumed]
        assert all('running Unreserve plugin "Second": RuntimeError: out of order' in one for one in told)


def test_a_binding_undoes_nothing() -> None:
    bench = Bench()
    bench.wait()
    for plugin in ("First", "Second"):
        bench.waiting.allow(bench.pod.uid, plugin)
    (decision,) = bench.play.work()
    bench.play.bind(decision)
    bench.play.answer(decision, "bound")
    assert bench.log == ["First.reserve", "Second.reserve"]


def test_what_came_and_went_unseen_leaves_the_table() -> None:
    bench = Bench()
    decision = bench.decide()
    bench.play.answer(decision, "bound", committed_at=bench.play.view.position)
    assert bench.play.core.nodes.placed(bench.pod.uid) is None
