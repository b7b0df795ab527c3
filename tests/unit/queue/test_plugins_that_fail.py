"""A plugin that raises, or answers nonsense, in any hook that the queue calls: no pod is lost, and others go
on as ever.
"""

from typing import Any

import pytest

from podyard.framework import events
from podyard.framework.event_registry import EventRegistry, RegistrationError
from podyard.framework.hint_sharing import signers_of
from podyard.framework.profile import Enabled, resolve
from podyard.objects.core import Pod
from podyard.proto import codec
from podyard.proto.actions import ActionType
from podyard.queue import assembly, records
from podyard.queue.core.effects import Judged
from podyard.queue.core.gates import Gates, PreemptionGate
from podyard.queue.core.messages import Incoming
from podyard.queue.core.pod_heap import PodHeap
from podyard.queue.core.queued_pod import QueuedPod
from podyard.queue.core.scheduling_queue import MAX_UNSCHEDULABLE_S, SchedulingQueue
from podyard.queue.core.waking import NAMED_SKIPS
from tests.support import failing
from tests.support.failing import FAULTS, NONSENSE, Everything
from tests.unit.queue.play import node_event, queued

IN_THE_QUEUE = (
    "sort_key",
    "pre_enqueue",
    "hint",
    "own_hint",
    "hint_signature",
    "new_index",
    "add",
    "remove",
    "candidates",
)
OBSTACLES = {"Everything": ("a wall",)}
MANY = NAMED_SKIPS + 1
"""Parked pods for which indexes are asked."""


def queue_of(plugin: Everything) -> SchedulingQueue:
    profile = resolve("default-scheduler", [Enabled(plugin=plugin)])
    gates = Gates({profile.name: assembly.gates_of(profile, PreemptionGate(lambda uid: False))})
    return SchedulingQueue(
        {profile.name: EventRegistry.of_profile(profile)},
        gates,
        sort_key=plugin.sort_key,
        sorter=plugin.name,
        signers={profile.name: signers_of(profile)},
    )


class Play:
    """Many pods, the last of them bad, through every pool of a queue."""

    def __init__(self, plugin: Everything) -> None:
        self.queue = queue_of(plugin)
        self.now = 0.0
        names = [*(f"good-{number:03}" for number in range(MANY)), "bad"]
        self.pods = {name: queued(name, 0.0) for name in names}
        self.records: list[bytes] = []

    def pop_all(self) -> list[str]:
        return [pod.key[1] for pod in iter(self.queue.pop, None)]

    def go_through(self) -> list[list[str]]:
        """In and out; rejected, looked at by an event that helps nobody, flushed, and out again. Returns what
        was popped each time.
        """
        queue = self.queue
        for pod in self.pods.values():
            queue.add(pod, self.now)
        popped = [self.pop_all()]
        for pod in self.pods.values():
            queue.fail(pod.uid, self.now, unschedulable=("Everything",), obstacles=OBSTACLES)
        for action in (ActionType.ADD, ActionType.UPDATE_NODE_LABEL):
            queue.move_all(node_event(action=action), self.now)
        self.now += MAX_UNSCHEDULABLE_S + 60
        timeout = Incoming(event=events.UNSCHEDULABLE_TIMEOUT, id="timeout")
        queue.flush_unschedulable(timeout, self.now)
        self.now += 60
        queue.flush_backoff(self.now)
        popped.append(self.pop_all())
        for effect in queue.take_effects():
            if isinstance(effect, Judged):
                self.records.append(codec.encode(records.requeue_record(effect)))
        return popped


def good(names: list[str]) -> list[str]:
    return [name for name in names if name.startswith("good")]


@pytest.fixture(scope="module")
def content() -> list[list[str]]:
    """The order of the pods where nothing is amiss."""
    return Play(Everything()).go_through()


def test_the_play_pops_every_pod_twice(content: list[list[str]]) -> None:
    assert [len(names) for names in content] == [MANY + 1, MANY + 1]


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("hook", IN_THE_QUEUE)
def test_a_hook_that_raises_costs_nobody_else_anything(hook: str, fault: str, content: list[list[str]]) -> None:
    plugin = failing.failing(hook, FAULTS[fault], always=hook in ("new_index", "candidates"))
    play = Play(plugin)
    popped = play.go_through()
    assert plugin.amiss, "the play does not call this hook"
    assert [good(names) for names in popped] == [good(names) for names in content]
    faults = play.queue.faults.take()
    assert faults
    assert {one.plugin for one in faults} == {"Everything"}
    assert max(map(len, play.records), default=0) < 2**20
    if hook != "pre_enqueue":
        assert all("bad" in names for names in popped)


@pytest.mark.parametrize("answer", NONSENSE)
@pytest.mark.parametrize("hook", IN_THE_QUEUE)
def test_a_hook_that_answers_nonsense_costs_nobody_else_anything(
    hook: str, answer: str, content: list[list[str]]
) -> None:
    plugin = failing.failing(hook, lambda: NONSENSE[answer], always=hook in ("new_index", "candidates"))
    play = Play(plugin)
    popped = play.go_through()
    assert plugin.amiss, "the play does not call this hook"
    assert [sorted(good(names)) for names in popped] == [sorted(good(names)) for names in content]
    if hook != "pre_enqueue":
        assert all("bad" in names for names in popped)


@pytest.mark.parametrize("what", [*FAULTS, *NONSENSE])
@pytest.mark.parametrize("hint", ["hint", "own_hint"])
def test_a_hint_that_fails_is_one_that_says_queue(what: str, hint: str) -> None:
    plugin = failing.failing(hint, FAULTS.get(what, lambda: NONSENSE[what]))
    queue = queue_of(plugin)
    pod = queued("bad")
    queue.add(pod, 0.0)
    queue.pop()
    queue.fail(pod.uid, 0.0, unschedulable=("Everything",), obstacles=OBSTACLES)
    queue.take_effects()
    queue.move_all(node_event(), 100.0)
    (judged,) = queue.take_effects()
    assert isinstance(judged, Judged)
    call = judged.moved[0].hints[-1]
    assert (call.answer, pod.pool) == ("Error", "activeQ")
    assert call.reason.startswith("the hint failed: ")


def test_a_pod_whose_gate_failed_is_tried_again_with_the_flush() -> None:
    fails = True

    class Moody(Everything):
        def pre_enqueue(self, pod: Pod) -> Any:
            if fails:
                raise ValueError("not today")
            return super().pre_enqueue(pod)

    queue = queue_of(Moody())
    pod = queued("p")
    queue.add(pod, 0.0)
    assert (pod.pool, pod.message) == ("gated", "PreEnqueue failed: ValueError: not today")
    fails = False
    later = MAX_UNSCHEDULABLE_S + 1
    queue.flush_unschedulable(Incoming(event=events.UNSCHEDULABLE_TIMEOUT, id="timeout"), later)
    assert pod.pool == "activeQ"


def test_a_pod_without_a_sort_key_comes_behind_all_others() -> None:
    queue = queue_of(failing.failing("sort_key", FAULTS["ValueError"]))
    pods = [queued("bad-low"), queued("bad-high", priority=9), queued("good-low"), queued("good-high", priority=5)]
    for pod in pods:
        queue.add(pod, 0.0)
    assert [pod.key[1] for pod in iter(queue.pop, None)] == ["good-high", "good-low", "bad-high", "bad-low"]


class Evil:
    """A key that compares so many times."""

    left = 0

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __lt__(self, other: "Evil") -> bool:
        Evil.left -= 1
        if Evil.left < 0:
            raise RuntimeError("no more")
        return self.rank < other.rank


@pytest.mark.parametrize("comparisons", range(0, 60, 3))
def test_no_pod_is_lost_at_whatever_comparison_keys_fail(comparisons: int) -> None:
    told: list[Exception] = []
    heap = PodHeap(lambda pod: pod.key, told.append)
    Evil.left = comparisons
    pods = [queued(f"p{number:02}") for number in range(20)]
    out: list[QueuedPod] = []
    for number, pod in enumerate(pods):
        heap.push(Evil(number * 7 % 20), pod)
        if number % 5 == 4:
            assert heap.remove(pods[number - 2])
            out.append(pods[number - 2])
            first = heap.pop()
            assert first is not None
            out.append(first)
    assert set(heap) | set(out) == set(pods)
    out += iter(heap.pop, None)
    assert told
    assert sorted(pod.uid for pod in out) == sorted(pod.uid for pod in pods)
    Evil.left = 1000
    heap.push(Evil(0), pods[0])
    heap.push(Evil(1), pods[1])
    assert len(told) == 1, "an empty heap takes keys again"


@pytest.mark.parametrize("what", [*FAULTS, *NONSENSE])
@pytest.mark.parametrize("hook", ["events_to_register", "own_events_to_register"])
def test_registrations_that_cannot_be_had_are_told_at_the_start(what: str, hook: str) -> None:
    if what == "nothing":
        return  # no event helps
    plugin = failing.failing(hook, FAULTS.get(what, lambda: NONSENSE[what]), always=True)
    profile = resolve("default-scheduler", [Enabled(plugin=plugin)])
    with pytest.raises(RegistrationError, match="plugin 'Everything'"):
        EventRegistry.of_profile(profile)
