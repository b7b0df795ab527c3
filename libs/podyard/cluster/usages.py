"""What agents say that their nodes use, as it was heard last; and what of it each container uses."""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podyard.memory.kept import Kept
from podyard.proto import codec, subjects
from podyard.proto.codec import MessageError
from podyard.proto.signals import FIELDS, USAGE_PERIOD_S, ContainerUsage, NodeUsage, PodUsage, UsedResource

LASTS_S: Final = 3 * USAGE_PERIOD_S
"""What was heard longer ago is too old to go by."""
MOST_BYTES: Final = 64 * 1024 * 1024
"""Of what was heard, as it came: 50,000 pods at 300 bytes are 15 MiB."""


class Heard(NamedTuple):
    """What a node's agent said last, and when that came, UTC seconds."""

    usage: NodeUsage
    at: float


class Usages:
    """What was heard last of each node, as much as fits."""

    def __init__(self) -> None:
        self._heard = Kept[str, Heard](MOST_BYTES)

    def take(self, subject: str, payload: bytes, now: float) -> None:
        """A message.

        :raises MessageError: if it cannot be used
        """
        usage = codec.decode(NodeUsage, payload)
        if subjects.usage(usage.node) != subject:
            raise MessageError("NodeUsage", f"it is about node {usage.node}, but came on {subject}")
        if any(min(pod.in_all("cpu"), pod.in_all("memory")) < 0 for pod in usage.pods):
            raise MessageError("NodeUsage", "a pod uses less than nothing")
        self.hear(usage, len(payload), now)

    def hear(self, usage: NodeUsage, size: int, now: float) -> None:
        """:param size: bytes, as it came"""
        self._heard.keep(usage.node, Heard(usage, now), size)

    def heard(self) -> dict[str, Heard]:
        """By node."""
        found = ((node, self._heard.get(node)) for node in self._heard)
        return {node: heard for node, heard in found if heard is not None}

    def fresh(self, node: str, now: float) -> NodeUsage | None:
        """What a node's agent said last; None if that is too old, or nothing."""
        heard = self._heard.get(node)
        return None if heard is None or now - heard.at > LASTS_S else heard.usage


def of_containers(pod: PodUsage, resource: UsedResource, names: Sequence[str], weights: Sequence[int]) -> list[int]:
    """What each container uses: as said, else its share of what nobody named uses.

    :param names: of all containers that run
    :param weights: by which that is shared out among them
    """
    field = FIELDS[resource]
    if not pod.containers and not pod.volumes:
        return shares(getattr(pod, field), weights)
    named: dict[str, ContainerUsage] = {part.name: part for part in pod.containers}
    own = [named.get(name) for name in names]
    found: list[int] = [0 if part is None else getattr(part, field, 0) for part in own]
    rest = pod.in_all(resource) - sum(found) - sum(getattr(part, field, 0) for part in pod.volumes)
    others = [index for index, part in enumerate(own) if part is None] or list(range(len(own)))
    for index, share in zip(others, shares(rest, [weights[index] for index in others]), strict=True):
        found[index] += share
    return found


def shares(total: int, weights: Sequence[int]) -> list[int]:
    """`total` in whole parts in proportion to `weights` (equal parts if all are 0); what is left over goes to
    the first."""
    if not weights:
        return []
    if not any(weights):
        weights = [1] * len(weights)
    parts = [total * weight // sum(weights) for weight in weights]
    parts[0] += total - sum(parts)
    return parts
