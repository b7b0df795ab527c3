"""The rules of VolumeZone read on manifests, one node at a time; shares no code with the plugin."""

from tests.unit.plugins.volume_binding.storage_worlds import Answer, Manifest, World

GA = {
    "failure-domain.beta.kubernetes.io/zone": "topology.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region": "topology.kubernetes.io/region",
}
KEYS = (*GA, *GA.values())
UNRESOLVABLE = "UnschedulableAndUnresolvable"


class NotKnown(Exception):
    """Why the pod's volumes are not known."""


def demands(world: World, pod: Manifest) -> list[tuple[str, set[str]]]:
    """Labels and values that a node must have, from the labels of the pod's bound volumes."""
    found: list[tuple[str, set[str]]] = []
    for volume in pod["spec"]["volumes"]:
        if "persistentVolumeClaim" not in volume:
            continue
        name = volume["persistentVolumeClaim"]["claimName"]
        claim = world.get("persistentvolumeclaims", name, pod["metadata"]["namespace"])
        if claim is None:
            raise NotKnown(f'persistentvolumeclaim "{name}" not found')
        bound = claim["spec"].get("volumeName", "")
        if not bound:
            check_class(world, claim)
            continue
        there = world.get("persistentvolumes", bound)
        if there is None:
            raise NotKnown(f'persistentvolume "{bound}" not found')
        for key in KEYS:
            if key in there["metadata"]["labels"]:
                parts = [part.strip() for part in there["metadata"]["labels"][key].split("__")]
                if all(parts):
                    found.append((key, set(parts)))
    return found


def check_class(world: World, claim: Manifest) -> None:
    name = claim["spec"].get("storageClassName", "")
    if not name:
        raise NotKnown("PersistentVolumeClaim had no pv name and storageClass name")
    storage_class = world.get("storageclasses", name)
    if storage_class is None:
        raise NotKnown(f'storageclass.storage.k8s.io "{name}" not found')
    if "volumeBindingMode" not in storage_class:
        raise NotKnown(f'VolumeBindingMode not set for StorageClass "{name}"')
    if storage_class["volumeBindingMode"] != "WaitForFirstConsumer":
        raise NotKnown("PersistentVolume had no name")


def pre_filter(world: World, pod: Manifest) -> Answer:
    try:
        return None if demands(world, pod) else ("Skip", ())
    except NotKnown as reason:
        return UNRESOLVABLE, (str(reason),)


def verdict(world: World, pod: Manifest, node: str) -> Answer:
    labels = world.nodes[node]["metadata"]["labels"]
    if not set(KEYS) & set(labels):
        return None
    for key, values in demands(world, pod):
        held = labels[key] if key in labels else labels.get(GA.get(key, key))
        if held not in values:
            return UNRESOLVABLE, ("node(s) had no available volume zone",)
    return None
