"""What a pod's annotations ask of its virtual containers.

- `podyard.io/start-delay: 500ms`    how long they take to start
- `podyard.io/run-duration: 5s`      how long they run until the pod has succeeded; without it, until ended
- `podyard.io/stop-delay: 2s`        how long they take to end when asked to, at most the grace period

Values are Go durations of 0 or more.
"""

from typing import Final, NamedTuple

from podyard.objects import go_syntax
from podyard.objects.pod import Pod

START_DELAY: Final = "podyard.io/start-delay"
RUN_DURATION: Final = "podyard.io/run-duration"
STOP_DELAY: Final = "podyard.io/stop-delay"


class Pace(NamedTuple):
    """How fast a pod's virtual containers are, in seconds. `run_s` None: they run until they are ended."""

    start_s: float
    run_s: float | None
    stop_s: float


def pace(pod: Pod, usual: Pace) -> tuple[Pace, tuple[str, ...]]:
    """The pod's pace, and a sentence for each annotation that is wrong and therefore ignored.

    :param usual: what holds without annotations; its `run_s` only for pods of a Job, others have no end of
        their own
    """
    controller = pod.metadata.controller
    run_s = usual.run_s if controller is not None and controller.kind == "Job" else None
    annotations = pod.metadata.annotations
    if not annotations:
        return Pace(usual.start_s, run_s, usual.stop_s), ()
    faults: list[str] = []
    start_s = _seconds(annotations, START_DELAY, faults)
    own_run_s = _seconds(annotations, RUN_DURATION, faults)
    stop_s = _seconds(annotations, STOP_DELAY, faults)
    found = Pace(
        usual.start_s if start_s is None else start_s,
        run_s if own_run_s is None else own_run_s,
        usual.stop_s if stop_s is None else stop_s,
    )
    return found, tuple(faults)


def _seconds(annotations: dict[str, str], name: str, faults: list[str]) -> float | None:
    text = annotations.get(name)
    if text is None:
        return None
    try:
        seconds = go_syntax.parse_duration(text)
    except ValueError as error:
        faults.append(f"annotation {name} is ignored: {error}; write a duration such as 500ms or 1m30s")
        return None
    if seconds < 0:
        faults.append(f"annotation {name} is ignored: {text} is below 0")
        return None
    return seconds
