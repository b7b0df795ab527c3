"""What an agent says of a pod's containers, as the joined object has it."""

from collections.abc import Iterable, Sequence

from podyard.objects.containers import (
    Container,
    ContainerState,
    ContainerStateRunning,
    ContainerStateTerminated,
    ContainerStateWaiting,
    ContainerStatus,
    ResourceRequirements,
)
from podyard.proto.facts import ContainerEnd, ContainerFact


def joined(told: Iterable[ContainerFact], declared: Sequence[Container]) -> tuple[ContainerStatus, ...]:
    """The statuses of containers, with the images that their pod declares."""
    images = {container.name: container.image for container in declared}
    return tuple(_joined(one, images.get(one.name, "")) for one in told)


def _joined(told: ContainerFact, image: str) -> ContainerStatus:
    has = told.resources
    return ContainerStatus(
        name=told.name,
        image=image,
        ready=told.ready,
        started=bool(told.started_at),
        restart_count=told.restarts,
        state=_state(told),
        last_state=ContainerState() if told.last is None else _terminated(told.last),
        allocated_resources={} if has is None else has.requests,
        resources=None if has is None else ResourceRequirements(requests=has.requests, limits=has.limits),
    )


def _state(told: ContainerFact) -> ContainerState:
    if told.end is not None:
        return _terminated(told.end)
    if told.started_at:
        return ContainerState(running=ContainerStateRunning(started_at=told.started_at))
    return ContainerState(waiting=ContainerStateWaiting(reason=told.reason, message=told.message))


def _terminated(end: ContainerEnd) -> ContainerState:
    return ContainerState(
        terminated=ContainerStateTerminated(
            exit_code=end.exit_code,
            reason=end.reason,
            started_at=end.started_at or None,
            finished_at=end.finished_at or None,
        )
    )
