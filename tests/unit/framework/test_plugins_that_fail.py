"""A plugin that raises, or answers nonsense, in any hook that a cycle calls: that pod's attempt fails under
its name, all else goes on."""

from typing import Any

import msgspec
import numpy as np
import pytest

from podyard.framework import one_node
from podyard.framework.cycle import Cycle, CycleResult
from podyard.framework.extenders import Extender, PreemptAnswer
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code
from podyard.plugins.default_preemption.args import Args as PreemptionArgs
from podyard.plugins.default_preemption.plugin import DefaultPreemption
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.proto.queue_api import PoppedPod
from podyard.scheduler.core import records
from tests.support import failing
from tests.support.failing import FAULTS, NONSENSE, Everything
from tests.unit.framework.builders import make_node, make_pod, on, snapshot_of

IN_CYCLES = (
    "signature", "filter_token", "filter_touched", "filter_pattern", "pre_filter", "add_pod", "remove_pod",
    "filter", "filter_one", "verdict", "detail", "post_filter", "post_filter_steps", "pre_score", "score_token",
    "score", "score_one", "normalize", "reserve", "unreserve", "permit",
)  # fmt: skip
IN_THE_BINDER = ("pre_bind_pre_flight", "pre_bind", "bind", "post_bind")
IN_THE_QUEUE = (
    "sort_key", "pre_enqueue", "use_objects", "events_to_register", "own_events_to_register", "hint", "own_hint", "hint_signature",
    "new_index", "add", "remove", "candidates",
)  # fmt: skip
PREEMPTS = Extender(name="http://extender", preempts=True)


def test_every_hook_of_the_framework_is_tried_somewhere() -> None:
    assert {*IN_CYCLES, *IN_THE_BINDER, *IN_THE_QUEUE} == failing.hooks()
    assert all(callable(getattr(Everything, hook)) for hook in failing.hooks())


def profile_with(plugin: Everything) -> Profile:
    """The plugin behind NodeResourcesFit, and before DefaultPreemption if it answers PostFilter itself."""
    plugins = (NodeResourcesFit(FitArgs()), plugin, DefaultPreemption(PreemptionArgs()))
    sorted_by = resolve("sorted", [Enabled(plugin=PrioritySort())]).queue_sort
    found = resolve("test", [Enabled(plugin=one) for one in plugins])
    return msgspec.structs.replace(found, queue_sort=sorted_by)


def cluster() -> Snapshot:
    """Four nodes with a pod of low priority each, one of which the plugin refuses; a pod of higher priority
    waits for room on b."""
    snapshot = snapshot_of(*(make_node(name) for name in ("a", "b", "c", "refused")))
    for name in ("a", "b", "c"):
        snapshot.nodes.place(on(make_pod(f"low-{name}", cpu="2"), name))
    snapshot.nominated.follow("uid-rival", make_pod("rival", cpu="1", priority=100, nominated="b"))
    return snapshot


class Play:
    """Cycles over one cluster, in which every hook is called for every pod."""

    def __init__(self, plugin: Everything) -> None:
        self.plugin = plugin
        self.snapshot = cluster()
        self.profile = profile_with(plugin)
        self.cycle = Cycle(self.profile, self.snapshot)
        self.asking = Cycle(self.profile, self.snapshot, extenders=[PREEMPTS])
        self.results: list[CycleResult] = []
        self.judged: list[Code] = []

    def go_through(self, name: str) -> None:
        """Schedule a pod, twice while another comes between, one of its name that fits nowhere, and one that
        has to preempt."""
        pod = make_pod(name, cpu="100m", priority=10)
        self._bound(pod)
        for node in ("a", "c"):
            self.snapshot.nodes.place(on(make_pod(f"between-{node}"), node))
            self._bound(pod)
            self.snapshot.nodes.remove(f"uid-between-{node}")
        self.results.append(self.cycle.run(make_pod(f"{name}-nowhere")))
        self.results.append(self.cycle.run(make_pod(f"{name}-preempts", cpu="3", priority=10)))
        self._with_extenders(make_pod(f"{name}-nowhere-either", priority=10))
        self.judged += [
            one_node.filter_one(self.profile, node, pod, self.snapshot).code for node in ("a", "b", "refused")
        ]

    def _bound(self, pod: Any) -> None:
        result = self.cycle.run(pod)
        if result.node:
            self.snapshot.nodes.place(on(pod, result.node))
            if self.cycle.confirm(pod, result):
                self.cycle.unreserve(pod, result.state, result.node)
            self.snapshot.nodes.remove(pod.uid)
        self.results.append(result)

    def _with_extenders(self, pod: Any) -> None:
        steps, answer = self.asking.steps(pod), None
        try:
            while True:
                steps.send(answer)
                answer = (PreemptAnswer(),)
        except StopIteration as end:
            self.results.append(end.value)


def books(snapshot: Snapshot) -> Any:
    """All that the table counts, and of whom."""
    nodes = snapshot.nodes
    pods = {name: [*nodes.pods_on(name)] for name in nodes.row_of}
    return [nodes.room.copy_taken(row) for row in nodes.row_of.values()], nodes.pod_count.tolist(), pods


def told(result: CycleResult) -> bytes:
    """As records and the queue are told of it."""
    popped = PoppedPod(namespace="default", name="p", uid="u", attempt="1-1")
    record = records.record_of(popped, result, session="s", at=0.0, duration_s=0.0, position=1)
    return msgspec.json.encode((record, records.result_of(popped, record.outcome, message=result.message)))


def outcome(result: CycleResult) -> tuple[Any, ...]:
    return result.node, result.error, result.message, result.nominated_node, result.victims


@pytest.fixture(scope="module")
def content() -> list[tuple[Any, ...]]:
    """What becomes of a pod where nothing is amiss."""
    play = Play(Everything())
    play.go_through("good")
    return [outcome(result) for result in play.results]


def others_go_on(play: Play, content: list[tuple[Any, ...]], before: Any) -> None:
    assert books(play.snapshot) == before
    assert max(len(told(result)) for result in play.results) < 2**20
    play.results.clear()
    play.go_through("good")
    assert [outcome(result) for result in play.results] == content


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hook", IN_CYCLES)
def test_a_hook_that_raises_fails_this_attempt_under_its_name(
    hook: str, fault: str, content: list[tuple[Any, ...]]
) -> None:
    plugin = failing.failing(hook, FAULTS[fault])
    play = Play(plugin)
    before = books(play.snapshot)
    play.go_through("bad")
    assert plugin.amiss, "the play does not call this hook"
    faults = play.snapshot.take_faults()
    assert faults
    assert {one.plugin for one in faults} == {"Everything"}
    seen = [result.error for result in play.results if "Everything" in result.error]
    # one says that there is no room, one that all went well, and what is for people ends no attempt
    if hook not in ("remove_pod", "unreserve", "detail"):
        assert seen
        assert "a " in fault or any(fault in error for error in seen)
    others_go_on(play, content, before)


@pytest.mark.parametrize("answer", NONSENSE)
@pytest.mark.parametrize("hook", IN_CYCLES)
def test_a_hook_that_answers_nonsense_is_as_one_that_raises(
    hook: str, answer: str, content: list[tuple[Any, ...]]
) -> None:
    plugin = failing.failing(hook, lambda: NONSENSE[answer])
    play = Play(plugin)
    before = books(play.snapshot)
    play.go_through("bad")
    assert plugin.amiss, "the play does not call this hook"
    others_go_on(play, content, before)


@pytest.mark.parametrize(
    "answer",
    ["None", "text", "an object", "below zero", "huge", "NaN", "an array of NaN", "a long array"],
)
@pytest.mark.parametrize("hook", ["filter", "filter_one", "score", "score_one", "normalize"])
def test_no_number_of_a_node_is_made_of_nonsense(hook: str, answer: str) -> None:
    if (hook, answer) in {("score", "below zero"), ("score_one", "below zero")}:
        return  # raw scores may be
    plugin = failing.failing(hook, lambda: NONSENSE[answer])
    play = Play(plugin)
    play.go_through("bad")
    assert any("Everything" in result.error for result in play.results)


def test_numbers_of_other_types_are_taken_as_they_are(content: list[tuple[Any, ...]]) -> None:
    class Small(Everything):
        def filter(self, *given: Any) -> Any:
            return super().filter(*given).astype(np.int8)

        def filter_one(self, *given: Any) -> Any:
            return np.bool_(super().filter_one(*given))

        def score(self, *given: Any) -> Any:
            return super().score(*given).astype(np.uint16)

        def score_one(self, *given: Any) -> Any:
            return np.int32(super().score_one(*given))

    play = Play(Small())
    play.go_through("good")
    assert [outcome(result) for result in play.results] == content


def test_a_rejection_must_mean_one() -> None:
    plugin = failing.failing("verdict", lambda: failing.statuses.SUCCESS)
    play = Play(plugin)
    play.go_through("bad")
    text = 'running "Everything" filter plugin: rejects a node with code 1, which means Success'
    assert text in [result.error for result in play.results]
    assert play.judged[-1] is Code.ERROR


def test_an_index_that_raises_half_way_is_thrown_away_and_made_again() -> None:
    class Counting:
        """Counts pods, one by one, and stumbles over bad ones before it has counted them all."""

        def __init__(self, table: Any) -> None:
            self.count = 0

        def add(self, pod: Any, row: int) -> None:
            if pod.name == "bad":
                raise ValueError("stumbles")
            self.count += 1

        def remove(self, pod: Any, row: int) -> None:
            self.count -= 1

    class Crowded(Everything):
        def pre_filter(self, state: Any, pod: Any, snapshot: Snapshot) -> Any:
            assert snapshot.nodes.index(Counting).count == int(snapshot.nodes.pod_count.sum())
            return super().pre_filter(state, pod, snapshot)

    play = Play(Crowded())
    good = make_pod("good", cpu="1")
    assert play.cycle.run(good).node
    play.snapshot.nodes.place(on(make_pod("bad"), "a"))
    assert [(one.plugin, one.point) for one in play.snapshot.take_faults()] == [("Counting", "index")]
    for _ in range(2):
        assert "ValueError: stumbles" in play.cycle.run(good).error
    play.snapshot.nodes.remove("uid-bad")
    assert play.cycle.run(good).node
