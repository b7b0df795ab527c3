"""What a pod's annotations ask of its virtual containers: the constants say what each means.

All but the last are meant for the containers proper; `NAME.podyard.io/start-delay` and so on for one
container, init containers and sidecars included. An init container ends as soon as it runs, unless told.
Delays are Go durations of 0 or more.
"""

from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from podyard.objects import go_syntax
from podyard.objects.containers import Container
from podyard.objects.pod import Pod
from podyard.objects.pod_requests import is_sidecar

START_DELAY: Final = "podyard.io/start-delay"
"""Annotation of a pod: how long its virtual containers take to start, `500ms`. As run-duration, exit-code
and ready-delay also of one container: `NAME.podyard.io/start-delay`. Delays are Go durations of 0 or more."""
RUN_DURATION: Final = "podyard.io/run-duration"
"""Annotation of a pod: how long they run until they end by themselves, `5s`; without it, until ended."""
EXIT_CODE: Final = "podyard.io/exit-code"
"""Annotation of a pod: with which code they end then, 0 to 255; without it with 0."""
READY_DELAY: Final = "podyard.io/ready-delay"
"""Annotation of a pod: how long they run until they are ready, `2s`."""
STOP_DELAY: Final = "podyard.io/stop-delay"
"""Annotation of a pod: how long they take to end when asked to, `2s`, at most the grace period."""

MOST_EXIT_CODE: Final = 255

T = TypeVar("T")


class Pace(NamedTuple):
    """How fast virtual containers are, in seconds. `run_s` None: they run until they are ended."""

    start_s: float
    run_s: float | None
    stop_s: float
    exit_code: int = 0
    ready_s: float = 0.0


def pace(pod: Pod, usual: Pace) -> tuple[Pace, tuple[str, ...]]:
    """The pace of the pod's containers proper, and a sentence for each annotation that is wrong and therefore
    ignored.

    :param usual: what holds without annotations; its `run_s` only for pods of a Job, others have no end of
        their own
    """
    controller = pod.metadata.controller
    run_s = usual.run_s if controller is not None and controller.kind == "Job" else None
    found = usual._replace(run_s=run_s)
    annotations = pod.metadata.annotations
    if not annotations:
        return found, ()
    faults: list[str] = []
    found = _of(annotations, "", found, faults)
    stop_s = _read(annotations, STOP_DELAY, _seconds, faults)
    if stop_s is not None:
        found = found._replace(stop_s=stop_s)
    for container in (*pod.spec.init_containers, *pod.spec.containers):
        _of(annotations, f"{container.name}.", found, faults)
    return found, tuple(faults)


def of_no_use(pod: Pod) -> tuple[str, ...]:
    """A sentence for each annotation that asks something of virtual containers, of a pod that has none."""
    known = (START_DELAY, RUN_DURATION, EXIT_CODE, READY_DELAY, STOP_DELAY)
    return tuple(
        f"annotation {name} is ignored: the pod runs as processes"
        for name in pod.metadata.annotations
        if name.endswith(known)
    )


def of_container(pod: Pod, container: Container, found: Pace, usual: Pace, *, init: bool) -> Pace:
    """The pace of one container.

    :param found: that of the pod's containers proper
    :param init: whether it is an init container, or a sidecar
    """
    if init:
        found = usual._replace(run_s=None if is_sidecar(container) else 0.0)
    annotations = pod.metadata.annotations
    return _of(annotations, f"{container.name}.", found, []) if annotations else found


def _of(annotations: dict[str, str], prefix: str, found: Pace, faults: list[str]) -> Pace:
    """`found` with what the annotations of this prefix say."""
    start_s = _read(annotations, prefix + START_DELAY, _seconds, faults)
    run_s = _read(annotations, prefix + RUN_DURATION, _seconds, faults)
    exit_code = _read(annotations, prefix + EXIT_CODE, _code, faults)
    ready_s = _read(annotations, prefix + READY_DELAY, _seconds, faults)
    return Pace(
        found.start_s if start_s is None else start_s,
        found.run_s if run_s is None else run_s,
        found.stop_s,
        found.exit_code if exit_code is None else exit_code,
        found.ready_s if ready_s is None else ready_s,
    )


def _read(annotations: dict[str, str], name: str, read: Callable[[str], T], faults: list[str]) -> T | None:
    text = annotations.get(name)
    if text is None:
        return None
    try:
        return read(text)
    except ValueError as error:
        faults.append(f"annotation {name} is ignored: {error}")
        return None


def _seconds(text: str) -> float:
    try:
        seconds = go_syntax.parse_duration(text)
    except ValueError as error:
        raise ValueError(f"{error}; write a duration such as 500ms or 1m30s") from error
    if seconds < 0:
        raise ValueError(f"{text} is below 0")
    return seconds


def _code(text: str) -> int:
    if not (
        text.isascii() and text.isdigit() and len(text) <= len(str(MOST_EXIT_CODE)) and int(text) <= MOST_EXIT_CODE
    ):
        raise ValueError(f"{text!r} is no exit code; write a number from 0 to {MOST_EXIT_CODE}")
    return int(text)
