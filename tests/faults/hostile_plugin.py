"""A plugin that does all that a plugin can do amiss, each thing to one pod: the pod's name says which.

`HARMS` is each hook that is asked about a pod, with each fault and each nonsense of `tests.support.failing`;
harm 17 is done to `bad-p-17`. What else that name says sees to it that the hook is called: the pod fits
nowhere, has to preempt, or is refused after its room was taken.

A profile names it `tests.faults.hostile_plugin:Hostile`. Services write the harms that they did into the file
that `MET` names, by the pod's name.
"""

import functools
import itertools
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.interfaces import PermitResult
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Status
from tests.support import failing
from tests.support.failing import FAULTS, NONSENSE, NOWHERE, Everything

MET: Final = "HOSTILE_MET"
"""Environment variable: where to write which harms were met."""
UNLUCKY: Final = "unlucky"
"""In a pod's name: refused by Permit, again and again."""
PREEMPTS: Final = "preempts"
"""In a pod's name: there is no room for it but that of others."""
AT_START: Final = frozenset({"events_to_register", "own_events_to_register", "use_objects"})
"""Asked once, about no pod: a profile with such a plugin does not start
(`tests/unit/queue/test_plugins_that_fail.py`)."""
OF_INDEXES: Final = ("new_index", "add", "remove", "candidates")
"""Asked where many pods are parked. An index that fails is given up, so a queue meets one harm: what is in
the file that `AT_INDEX` names, as `hook: what`."""
AT_INDEX: Final = "HOSTILE_INDEX"

ADDED: Final[Mapping[str, str]] = {
    **dict.fromkeys(("verdict", "detail", "post_filter", "post_filter_steps"), NOWHERE),
    **dict.fromkeys(("hint", "own_hint", "hint_signature"), NOWHERE),
    **dict.fromkeys(("add_pod", "remove_pod"), PREEMPTS),
    **dict.fromkeys(("unreserve", "filter_one", "filter_touched", "filter_pattern", "score_one"), UNLUCKY),
}
"""What else the name of a pod says, by the hook that it is to meet."""


class Harm(NamedTuple):
    """One thing that is done amiss."""

    hook: str
    what: str
    pod: str
    """Name of the pod to which it is done."""


def _answering(answer: Any) -> Callable[[], Any]:
    return lambda: answer


AMISS: Final[Mapping[str, Callable[[], Any]]] = {
    **FAULTS,
    **{what: _answering(answer) for what, answer in NONSENSE.items()},
}
"""What a hook may do, by its name."""


def _harms() -> Iterator[Harm]:
    numbers = itertools.count()
    for hook in sorted(failing.hooks() - AT_START - {*OF_INDEXES}):
        for what in AMISS:
            more = f"-{ADDED[hook]}" if hook in ADDED else ""
            yield Harm(hook, what, f"bad-p-{next(numbers)}{more}")


HARMS: Final = tuple(_harms())


def _number(given: Any) -> int | None:
    """The harm that an argument of a hook asks for; None: it is about no bad pod."""
    name = failing.name_of(given)
    if name is None or not name.startswith("bad-p-"):
        return None
    return int(name.split("-")[2])


def _note(what: str) -> None:
    if path := os.environ.get(MET):
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{what}\n")


def _at_index() -> tuple[str, str]:
    path = os.environ.get(AT_INDEX)
    hook, _, what = Path(path).read_text(encoding="utf-8").partition(": ") if path else ("", "", "")
    return hook, what


def _hostile(hook: str) -> Callable[..., Any]:
    content: Callable[..., Any] = getattr(Patient, hook)

    @functools.wraps(content)
    def misbehaving(self: Everything, *given: Any) -> Any:
        for number in map(_number, given):
            if number is not None and HARMS[number].hook == hook:
                _note(HARMS[number].pod)
                return AMISS[HARMS[number].what]()
        return content(self, *given)

    @functools.wraps(content)
    def misbehaving_index(self: Everything, *given: Any) -> Any:
        at, what = _at_index()
        if at != hook:
            return content(self, *given)
        _note(f"{at}:{what.replace(' ', '-')}")
        return AMISS[what]()

    return misbehaving_index if hook in OF_INDEXES else misbehaving


class Patient(Everything):
    """Says why it rejects, and refuses the unlucky."""

    def verdict(self, state: CycleState, code: int) -> Status:
        return statuses.unschedulable("not here", obstacles=("a wall",))

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult:
        return PermitResult(status=statuses.error("not today")) if UNLUCKY in pod.name else PermitResult()


Hostile: Final = type(
    "Hostile", (Patient,), {hook: _hostile(hook) for hook in failing.hooks() - AT_START} | {"name": "Hostile"}
)
"""Every hook of it does what the name of the pod says."""

Stepless: Final = type("Stepless", (), {"name": "Stepless", "post_filter": _hostile("post_filter")})
"""For where extenders preempt: who has `post_filter_steps` is not asked for `post_filter` there."""
