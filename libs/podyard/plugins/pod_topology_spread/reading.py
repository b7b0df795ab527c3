"""What the hints read of a parked pod, as a key; and the constraints that this key stands for."""

from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple

import msgspec

from podyard.objects.affinity import NodeSelector, TopologySpreadConstraint
from podyard.objects.core import Pod

_ENCODER: Final = msgspec.json.Encoder()
_DECODER: Final = msgspec.json.Decoder(tuple[TopologySpreadConstraint, ...])


class Needs(NamedTuple):
    """What a pod needs of its node: only nodes that have it count for constraints that honor it."""

    selector: tuple[tuple[str, str], ...] = ()
    """Labels of its node selector."""
    affinity: NodeSelector | None = None
    """Its required node affinity."""


class ReadOfPod(NamedTuple):
    """All that the hints read of a pod, but its uid."""

    namespace: str
    constraints: bytes
    label_values: tuple[str | None, ...]
    """Its own values of the constraints' matchLabelKeys."""
    owners: Hashable = None
    """For a pod under default constraints: what their selector depends on."""
    needs: Needs = Needs()


def needs_of(pod: Pod) -> Needs:
    """What `pod` needs of its node."""
    selector, affinity = pod.spec.node_selector, pod.spec.affinity
    node_affinity = None if affinity is None else affinity.node_affinity
    return Needs(
        tuple(sorted(selector.items())) if selector else (),
        None if node_affinity is None else node_affinity.required_during_scheduling_ignored_during_execution,
    )


def read_of(pod: Pod, owners: Hashable) -> ReadOfPod:
    """What the hints read of `pod`."""
    own = pod.spec.topology_spread_constraints
    labels = pod.metadata.labels
    values = tuple([labels.get(key) for one in own for key in one.match_label_keys])
    return ReadOfPod(pod.metadata.namespace, _ENCODER.encode(own), values, owners, needs_of(pod))


def constraints_of(read: ReadOfPod) -> tuple[tuple[TopologySpreadConstraint, ...], Mapping[str, str]]:
    """The pod's own constraints, and those of its labels that they name."""
    listed = _DECODER.decode(read.constraints)
    keys = [key for one in listed for key in one.match_label_keys]
    values = zip(keys, read.label_values, strict=True)
    return listed, {key: value for key, value in values if value is not None}
