"""What is created and deleted when, in seconds of the replay. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

from podyard.bench.replay.rows import NodeRow, PodRow, Recorded
from podyard.cli.errors import InputError


class Due(NamedTuple):
    """Something to do to one pod."""

    at: float
    """Seconds from the beginning of the replay."""
    pod: int
    """Number of the pod in the plan."""


class Plan(NamedTuple):
    """A replay."""

    nodes: tuple[NodeRow, ...]
    pods: tuple[PodRow, ...]
    creations: tuple[Due, ...]
    """In order of time, and of the file."""
    deletions: tuple[Due, ...]
    """In order of time; none: pods stay."""
    begins: int
    """Second of the recording at which the replay begins."""
    speedup: float

    @property
    def seconds(self) -> float:
        """From the beginning to the last thing to do."""
        return max((one[-1].at for one in (self.creations, self.deletions) if one), default=0.0)

    def recorded_at(self, at: float) -> float:
        """The second of the recording that a second of the replay stands for."""
        return self.begins + at * self.speedup


def plan(recorded: Recorded, speedup: float, *, begins: int = 0, stay: bool = False, one_node_in: int = 1) -> Plan:
    """The plan of a replay.

    :param speedup: seconds of the recording in one of the replay
    :param begins: second of the recording at which it begins; pods that live then are created first, those
        that have ended are left out
    :param stay: nothing is deleted
    :param one_node_in: of so many equal nodes one is kept
    :raises InputError: nothing is left to replay
    """
    pods = tuple(sorted((pod for pod in recorded.pods if pod.deleted > begins or not begins), key=_creation))
    nodes = tuple(thinned(recorded.nodes, one_node_in))
    if not pods:
        raise InputError(
            f"--from {begins}: no pod is left", f"the last one ends at {max(pod.deleted for pod in recorded.pods)}"
        )
    ends = sorted((pod.deleted, number) for number, pod in enumerate(pods))
    return Plan(
        nodes=nodes,
        pods=pods,
        creations=tuple(Due(max(0, pod.created - begins) / speedup, number) for number, pod in enumerate(pods)),
        deletions=() if stay else tuple(Due((at - begins) / speedup, number) for at, number in ends),
        begins=begins,
        speedup=speedup,
    )


def thinned(nodes: Iterable[NodeRow], one_in: int) -> Iterable[NodeRow]:
    """Of each kind of node the first, and then one in so many: every kind remains."""
    seen: dict[tuple[int, int, int, str], int] = {}
    for node in nodes:
        kind = (node.cpu_milli, node.memory_mib, node.gpus, node.model)
        count = seen[kind] = seen.get(kind, 0) + 1
        if (count - 1) % one_in == 0:
            yield node


def _creation(pod: PodRow) -> int:
    return pod.created
