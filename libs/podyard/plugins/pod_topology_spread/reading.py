"""What the hints read of a parked pod, as a key; and the constraints that this key stands for."""

from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple

import msgspec

from podyard.objects.affinity import TopologySpreadConstraint
from podyard.objects.core import Pod

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(tuple[TopologySpreadConstraint, ...])


class ReadOfPod(NamedTuple):
    """All that the hints read of a pod, but its uid."""

    namespace: str
    constraints: bytes
    label_values: tuple[str | None, ...]
    """Its own values of the constraints' matchLabelKeys."""
    owners: Hashable = None
    """For a pod under default constraints: what their selector depends on."""


def read_of(pod: Pod, owners: Hashable) -> ReadOfPod:
    """What the hints read of `pod`."""
    own = pod.spec.topology_spread_constraints
    labels = pod.metadata.labels
    values = tuple([labels.get(key) for one in own for key in one.match_label_keys])
    return ReadOfPod(pod.metadata.namespace, _ENCODER.encode(own), values, owners)


def constraints_of(read: ReadOfPod) -> tuple[tuple[TopologySpreadConstraint, ...], Mapping[str, str]]:
    """The pod's own constraints, and those of its labels that they name."""
    listed = _DECODER.decode(read.constraints)
    keys = [key for one in listed for key in one.match_label_keys]
    values = zip(keys, read.label_values, strict=True)
    return listed, {key: value for key, value in values if value is not None}
