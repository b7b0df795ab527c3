"""What becomes of in-tree volumes under their CSI drivers, read on manifests; shares no code with the
plugins."""

import re
from typing import Any

from tests.unit.plugins.volume_binding.storage_worlds import BETA_ZONE, GA_ZONE, Manifest, World

DRIVERS = {
    "awsElasticBlockStore": ("kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone"),
    "gcePersistentDisk": ("kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone"),
    "cinder": ("kubernetes.io/cinder", "cinder.csi.openstack.org", "topology.cinder.csi.openstack.org/zone"),
}


class CannotTranslate(Exception):
    """Why not."""


def kind_of(source: Manifest) -> str:
    """The field of an in-tree volume that a driver serves, or empty."""
    return next((kind for kind in DRIVERS if kind in source), "")


def handle(kind: str, source: Any, labels: dict[str, str]) -> str:
    if kind == "awsElasticBlockStore":
        given = source["volumeID"]
        if not given.startswith("aws://"):
            return given
        found = "/".join(given.removeprefix("aws://").split("/")[1:]).strip("/")
        if not re.fullmatch("vol-[^/]*", found):
            raise CannotTranslate(
                f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({given})"
            )
        return found
    if kind == "cinder":
        return source["volumeID"]
    zones = (labels.get(BETA_ZONE) or labels.get(GA_ZONE) or "").split("__")
    if len(zones) == 1:
        return f"projects/UNSPECIFIED/zones/{zones[0] or 'UNSPECIFIED'}/disks/{source['pdName']}"
    for zone in zones:
        if zone.count("-") != 2:
            wanted = "zone in unexpected format, expected: {locale}-{region}-{zone}"
            raise CannotTranslate(f"failed to get region from zones: {wanted}, got: {zone}")
    (region,) = {zone.rpartition("-")[0] for zone in zones}
    return f"projects/UNSPECIFIED/regions/{region}/disks/{source['pdName']}"


def served(world: World, node: str, kind: str) -> bool:
    csi_node = world.get("csinodes", node) or {"metadata": {}}
    listed = (csi_node["metadata"].get("annotations") or {}).get("storage.alpha.kubernetes.io/migrated-plugins", "")
    return bool(kind) and DRIVERS[kind][0] in listed.split(",")


def terms(world: World, volume: Manifest, node: str) -> list[Manifest] | None:
    """Node selector terms of a volume as that node is asked; None: reachable from everywhere."""
    spec, labels = volume["spec"], volume["metadata"]["labels"]
    found = spec["nodeAffinity"]["required"]["nodeSelectorTerms"] if "nodeAffinity" in spec else None
    kind = kind_of(spec)
    if not served(world, node, kind):
        return found
    try:
        handle(kind, spec[kind], labels)
    except CannotTranslate as reason:
        raise CannotTranslate(f"could not translate pv: {reason}") from None
    keys = [item["key"] for term in found or [] for item in term["matchExpressions"]]
    told = [key for key in (GA_ZONE, BETA_ZONE) if key in keys] or [
        key for key in (GA_ZONE, BETA_ZONE) if key in labels
    ]
    zone, driver_key = (told or [GA_ZONE])[0], DRIVERS[kind][2]
    valued = [i for t in found or [] for i in t["matchExpressions"] if i["key"] == zone and i.get("values")]
    zones = sorted({part.strip() for part in labels.get(zone, "").split("__")} - {""})
    if valued:
        return [
            term
            | {
                "matchExpressions": [
                    item | {"key": driver_key} if item["key"] == zone else item for item in term["matchExpressions"]
                ]
            }
            for term in found or []
        ]
    if not zones:
        return found
    more = {"key": driver_key, "operator": "In", "values": zones}
    return [
        term | {"matchExpressions": [*term["matchExpressions"], more]} for term in found or [{"matchExpressions": []}]
    ]
