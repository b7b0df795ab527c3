"""Which zones and regions a volume's labels name.

Source: kube-scheduler v1.36.2, plugins/volumezone/volume_zone.go (getPVTopologies),
cloud-provider/volume/helpers/zones.go.
"""

from typing import Final, NamedTuple

from podyard.objects.core import PersistentVolume
from podyard.objects.csi_migration import BETA_REGION, BETA_ZONE, REGION, ZONE, ZONE_SEPARATOR

LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
SUCCESSOR: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}
"""A node that has no beta label is looked at for the one that took its place."""


class Topology(NamedTuple):
    """A volume can be reached where label `key` has one of `values`."""

    key: str
    values: frozenset[str]


def topologies_of(volume: PersistentVolume) -> tuple[Topology, ...]:
    """What the volume's labels demand of a node. A label with an empty zone in it is ignored."""
    found: list[Topology] = []
    for key in LABELS:
        label = volume.metadata.labels.get(key)
        if label is None:
            continue
        values = frozenset(part.strip() for part in label.split(ZONE_SEPARATOR))
        if "" not in values:
            found.append(Topology(key, values))
    return tuple(found)
