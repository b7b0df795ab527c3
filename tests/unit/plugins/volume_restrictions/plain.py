"""The rules of VolumeRestrictions read on manifests, one node at a time; shares no code with the plugin."""

from tests.unit.plugins.volume_binding.storage_worlds import Answer, Manifest, World

DISK = "Unschedulable", ("node(s) had no available disk",)
ONE_POD = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
IN_USE = "Unschedulable", (ONE_POD,)


def claim_names(pod: Manifest) -> list[str]:
    return [v["persistentVolumeClaim"]["claimName"] for v in pod["spec"]["volumes"] if "persistentVolumeClaim" in v]


def has_disk(pod: Manifest) -> bool:
    kinds = {"gcePersistentDisk", "awsElasticBlockStore", "iscsi", "rbd"}
    return any(kinds & set(volume) for volume in pod["spec"]["volumes"])


def one_pod_claims(world: World, pod: Manifest) -> set[str] | str:
    """Names of the pod's claims that only one pod may use, or why that is not known."""
    found: set[str] = set()
    for name in claim_names(pod):
        claim = world.get("persistentvolumeclaims", name, pod["metadata"]["namespace"])
        if claim is None:
            return f'persistentvolumeclaim "{name}" not found'
        if "ReadWriteOncePod" in claim["spec"]["accessModes"]:
            found.add(name)
    return found


def conflicts(world: World, pod: Manifest) -> int:
    """How many of them a pod on a node that is there uses."""
    names = one_pod_claims(world, pod)
    assert not isinstance(names, str)
    space = pod["metadata"]["namespace"]
    users = [other for other, node in world.placed.values() if node in world.nodes]
    return sum(
        any(other["metadata"]["namespace"] == space and name in claim_names(other) for other in users) for name in names
    )


def pre_filter(world: World, pod: Manifest) -> Answer:
    names = one_pod_claims(world, pod)
    if isinstance(names, str):
        return "UnschedulableAndUnresolvable", (names,)
    return None if has_disk(pod) or conflicts(world, pod) else ("Skip", ())


def clash(one: Manifest, other: Manifest) -> bool:
    if "gcePersistentDisk" in one and "gcePersistentDisk" in other:
        a, b = one["gcePersistentDisk"], other["gcePersistentDisk"]
        if a["pdName"] == b["pdName"] and not (a.get("readOnly") and b.get("readOnly")):
            return True
    ebs = [volume["awsElasticBlockStore"]["volumeID"] for volume in (one, other) if "awsElasticBlockStore" in volume]
    if len(ebs) == 2 and ebs[0] == ebs[1]:
        return True
    if "iscsi" in one and "iscsi" in other:
        a, b = one["iscsi"], other["iscsi"]
        if a["iqn"] == b["iqn"] and not (a.get("readOnly") and b.get("readOnly")):
            return True
    if "rbd" in one and "rbd" in other:
        a, b = one["rbd"], other["rbd"]
        same = a["pool"] == b["pool"] and a["image"] == b["image"] and set(a["monitors"]) & set(b["monitors"])
        if same and not (a.get("readOnly") and b.get("readOnly")):
            return True
    return False


def verdict(world: World, pod: Manifest, node: str, in_use: int, mates: list[Manifest]) -> Answer:
    """One node; `in_use` and `mates` as a trial may have changed them."""
    for volume in pod["spec"]["volumes"]:
        for mate in mates:
            if any(clash(volume, other) for other in mate["spec"]["volumes"]):
                return DISK
    return IN_USE if in_use > 0 else None
