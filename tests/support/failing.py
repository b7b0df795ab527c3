"""A plugin that takes part in everything, and its like that do amiss in one method for pods whose names begin
with `bad`.

Every method of the framework's protocols is a hook (`hooks`): tests go through all of them, so that a new one
is tested or the tests say that it is not.
"""

import functools
import inspect
from collections.abc import Callable, Generator, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Final

import numpy as np

from podyard.framework import event_registry, events, hint_sharing, interfaces
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState, StateKey
from podyard.framework.events import ClusterEvent, HintResult, OwnRegistration, Registration
from podyard.framework.interfaces import (
    Detail,
    NodeVictims,
    PermitResult,
    PostFilterResult,
    PreBindResult,
    PreFilterResult,
    Rows,
    Scope,
    Scores,
    Verdicts,
)
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from podyard.objects.core import Pod
from podyard.proto.actions import ActionType

WHOSE: Final[StateKey[str]] = StateKey("Whose")
NOWHERE: Final = "nowhere"
"""In a pod's name: this plugin takes it on no node."""
REFUSED: Final = "refused"
"""In a node's name: this plugin takes no pod there."""
NODE_CHANGES: Final = ClusterEvent(events.NODE, ActionType.ALL)


class Everything:
    """Has every hook, and is content with everything, but for `NOWHERE` and `REFUSED`."""

    name: ClassVar[str] = "Everything"
    scope: ClassVar[Scope] = "row"

    def __init__(self) -> None:
        self.tokens = 0
        self.amiss = 0
        """How often it did amiss."""
        self.refuses = False
        """For tests that place their pods themselves: on a node that it refuses."""

    # ---- the cycle

    def signature(self, pod: PodInfo) -> Hashable:
        return pod.name

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        self.tokens += 1
        return self.tokens

    def filter_touched(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> Iterable[int] | None:
        return ()

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        return Detail("as it likes")

    def filter_pattern(self, state: CycleState, cluster: Snapshot) -> Hashable:
        return state.read(WHOSE)

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult:
        state.write(WHOSE, pod.name)
        return PreFilterResult()

    def add_pod(self, state: CycleState, pod: PodInfo, added: Any, row: int, cluster: Snapshot) -> Status:
        return statuses.SUCCESS

    def remove_pod(self, state: CycleState, pod: PodInfo, removed: Any, row: int, cluster: Snapshot) -> Status:
        return statuses.SUCCESS

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        return np.array([self._code(pod, cluster, row) for row in rows.tolist()], dtype=np.int64)

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return self._code(pod, cluster, row)

    def _code(self, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return int(NOWHERE in pod.name or REFUSED in cluster.nodes.names[row])

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable("not here")

    def post_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Any) -> PostFilterResult:
        return PostFilterResult(status=statuses.unschedulable("no help"))

    def post_filter_steps(
        self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Any
    ) -> Generator[Mapping[str, NodeVictims], Mapping[str, NodeVictims], PostFilterResult]:
        yield {}
        return PostFilterResult(status=statuses.unschedulable("no help"))

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status:
        return statuses.SUCCESS

    def score_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        return 0

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores:
        return rows.astype(np.int64)

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        return row

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        return np.minimum(scores, 100)

    def reserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status:
        return statuses.SUCCESS

    def unreserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None:
        return None

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult:
        return PermitResult()

    # ---- the binder

    def pre_bind_pre_flight(self, pod: PodInfo) -> bool:
        return True

    def pre_bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PreBindResult:
        return PreBindResult()

    def bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status:
        return statuses.SKIP

    def post_bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None:
        return None

    # ---- the queue

    def sort_key(self, queued: Any) -> Any:
        return (-queued.priority, queued.queued_at)

    def pre_enqueue(self, pod: Pod) -> Status:
        return statuses.SUCCESS

    def use_objects(self, objects: Any) -> None:
        return None

    def events_to_register(self) -> Sequence[Registration]:
        return (Registration(NODE_CHANGES, self.hint, self.new_index),)

    def own_events_to_register(self) -> Sequence[OwnRegistration]:
        return (OwnRegistration(NODE_CHANGES, self.own_hint),)

    def own_hint(self, pod: Pod, obstacles: tuple[str, ...], old: object | None, new: object | None) -> HintResult:
        return events.skip("no help either")

    def hint(self, pod: Pod, old: object | None, new: object | None) -> HintResult:
        return events.skip("no help")

    def hint_signature(self, pod: Pod) -> Hashable:
        return pod.metadata.name

    def new_index(self) -> "EverythingIndex":
        return EverythingIndex(self)

    def add(self, signature: Hashable) -> None:
        """Of the index of its hints, as the next two."""

    def remove(self, signature: Hashable) -> None:
        return None

    def candidates(self, old: object | None, new: object | None) -> Iterable[Hashable] | None:
        return None


class EverythingIndex:
    """An index whose methods are the plugin's, so that they are replaced as those are."""

    def __init__(self, plugin: Everything) -> None:
        self.add = plugin.add
        self.remove = plugin.remove
        self.candidates = plugin.candidates


def hooks() -> set[str]:
    """The methods of all protocols that a plugin may have, and of what it registers; but for `room_wanted`,
    which is asked of a plugin that is alone in looking at what is on nodes
    (`tests/unit/plugins/default_preemption/test_room_trial.py`)."""
    modules = (interfaces, event_registry, events, hint_sharing)
    protocols = {
        one
        for module in modules
        for one in vars(module).values()
        if inspect.isclass(one) and getattr(one, "_is_protocol", False) and one.__module__ == module.__name__
    } - {interfaces.QueuedPod}
    found = {
        name
        for one in protocols
        for name, value in vars(one).items()
        if inspect.isfunction(value) and not name.startswith("_")
    }
    return (found | {"hint", "own_hint", "new_index"}) - {"room_wanted"}


def failing(hook: str, amiss: Callable[[], Any], always: bool = False) -> Everything:
    """Everything, but in one hook it does what `amiss` does.

    :param always: whoever it is asked about; else for pods whose names begin with `bad`
    """
    content: Callable[..., Any] = getattr(Everything, hook)

    @functools.wraps(content)
    def misbehaving(self: Everything, *given: Any) -> Any:
        if always or any(_is_bad(one) for one in given):
            self.amiss += 1
            return amiss()
        return content(self, *given)

    return type("Everything", (Everything,), {hook: misbehaving})()


def _is_bad(given: Any) -> bool:
    """Whether an argument of a hook tells that it is about a bad pod."""
    name = name_of(given)
    return name is not None and name.startswith("bad")


def name_of(given: Any) -> str | None:
    """The name of the pod that an argument of a hook is about; None: of none."""
    if isinstance(given, CycleState):
        given = given.find(WHOSE) or ""
    pod = getattr(given, "pod", given)
    name = pod.metadata.name if isinstance(pod, Pod) else pod
    return name if isinstance(name, str) else None


class UnspeakableError(Exception):
    """It has no words."""

    def __str__(self) -> str:
        raise RuntimeError("no words")


def _raising(fault: Exception) -> Callable[[], Any]:
    def amiss() -> Any:
        raise fault

    return amiss


def _without_end() -> Any:
    return _without_end()


FAULTS: Final[dict[str, Callable[[], Any]]] = {
    "ValueError": _raising(ValueError("out of order")),
    "StopIteration": _raising(StopIteration("over")),
    "ExceptionGroup": _raising(ExceptionGroup("several", [KeyError("a"), ValueError("b")])),
    "UnspeakableError": _raising(UnspeakableError()),
    "a half of a character": _raising(RuntimeError("\ud800")),
    "a long story": _raising(RuntimeError("x" * 10_000_000)),
    "RecursionError": _without_end,
}
"""What plugins may raise, by what is seen of it."""

NONSENSE: Final[dict[str, Any]] = {
    "None": None,
    "nothing": (),
    "text": "nonsense",
    "a list": ["nonsense"],
    "an object": object(),
    "below zero": -1,
    "huge": 10**30,
    "NaN": float("nan"),
    "an array of NaN": np.array([float("nan")]),
    "a long array": np.zeros(100_000, dtype=np.int64),
    "obstacles": Status(obstacles=([],)),  # pyright: ignore[reportArgumentType] - nonsense
    "a status without text": Status(reasons=(5,)),  # pyright: ignore[reportArgumentType] - nonsense
    "a status of no code": Status(code=99),  # pyright: ignore[reportArgumentType] - nonsense
    "half a character": statuses.unschedulable("\ud800"),
    "a long status": statuses.unschedulable("x" * 10_000_000),
    "a waiting status": statuses.wait("never"),
    "names of nodes": PreFilterResult(node_names=["a", {}]),  # pyright: ignore[reportArgumentType] - nonsense
    "no node": PostFilterResult(status=statuses.SUCCESS, nominated_node=5),  # pyright: ignore[reportArgumentType] - nonsense
    "no victims": PostFilterResult(status=statuses.SUCCESS, nominated_node="a", victims=(None,)),  # pyright: ignore[reportArgumentType] - nonsense
    "no time": PermitResult(status=statuses.wait(), timeout_s=float("nan")),
    "no writes": PreBindResult(writes=(object(),)),  # pyright: ignore[reportArgumentType] - nonsense
    "no end": PreBindResult(status=statuses.wait(), timeout_s=float("inf"), waits_for=([],)),  # pyright: ignore[reportArgumentType] - nonsense
    "no answer": HintResult(None, None),  # pyright: ignore[reportArgumentType] - nonsense
}
"""What plugins may answer, by what it is; some of it is good for some hooks."""


def __getattr__(name: str) -> Any:
    """`RaisesIn_<hook>`: a class of plugins that raise in one hook, for profiles that name them by module and
    class.
    """
    hook = name.removeprefix("RaisesIn_")
    if hook == name or hook not in hooks():
        raise AttributeError(name)
    return type(failing(hook, FAULTS["ValueError"]))
