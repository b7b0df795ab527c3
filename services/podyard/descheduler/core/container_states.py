"""What the statuses of a pod's containers tell of why they do not run.

Source: pkg/descheduler/pod/pods.go.
"""

from collections.abc import Iterable, Iterator

from podyard.objects.containers import ContainerStatus
from podyard.objects.pod import Pod


def statuses(pod: Pod, *, init: bool = False, ephemeral: bool = False) -> Iterator[ContainerStatus]:
    """Of the containers; of init and ephemeral ones, if they are asked for."""
    yield from pod.status.container_statuses
    if init:
        yield from pod.status.init_container_statuses
    if ephemeral:
        yield from pod.status.ephemeral_container_statuses


def waiting_reasons(found: Iterable[ContainerStatus]) -> Iterator[str]:
    """Why containers wait."""
    return (one.state.waiting.reason for one in found if one.state.waiting is not None)


def terminated_reasons(found: Iterable[ContainerStatus]) -> Iterator[str]:
    """Why containers have ended."""
    return (one.state.terminated.reason for one in found if one.state.terminated is not None)


def exit_codes(found: Iterable[ContainerStatus]) -> Iterator[int]:
    """How containers have ended."""
    return (one.state.terminated.exit_code for one in found if one.state.terminated is not None)
