"""The rules of NodeVolumeLimits read on manifests, one node at a time; shares no code with the plugin."""

from tests.unit.plugins.volume_binding import plain_migration
from tests.unit.plugins.volume_binding.plain_migration import DRIVERS, CannotTranslate
from tests.unit.plugins.volume_binding.storage_worlds import Answer, Manifest, World

IN_TREE = (*DRIVERS, "azureFile")


class Failed(Exception):
    """The node cannot be judged."""


class Missing(Exception):
    """A claim is not there."""


def considered(volume: Manifest) -> bool:
    return any(kind in volume for kind in ("persistentVolumeClaim", "ephemeral", *IN_TREE))


def pre_filter(world: World, pod: Manifest) -> Answer:
    return None if any(map(considered, pod["spec"]["volumes"])) else ("Skip", ())


def used(world: World, pod: Manifest, csi_node: bool, new: bool) -> dict[str, str]:
    """Driver by unique name of the volumes that a pod needs attached."""
    found: dict[str, str] = {}
    meta = pod["metadata"]
    for volume in pod["spec"]["volumes"]:
        if "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            name = f"{meta['name']}-{volume['name']}"
        else:
            kind = plain_migration.kind_of(volume)
            if kind and csi_node:
                try:
                    handle = plain_migration.handle(kind, volume[kind], {})
                except CannotTranslate as reason:
                    raise Failed(f"converting volume({volume['name']}) from inline to csi: {reason}") from None
                found[f"{DRIVERS[kind][1]}/{handle}"] = DRIVERS[kind][1]
            continue
        claim = world.get("persistentvolumeclaims", name, meta["namespace"])
        if claim is None:
            if new:
                where = f"{meta['namespace']}/{name}"
                raise Missing(f'looking up PVC {where}: persistentvolumeclaim "{name}" not found')
            continue
        if "ephemeral" in volume and all(
            owner["uid"] != meta["uid"] for owner in claim["metadata"].get("ownerReferences", [])
        ):
            owned = f"{meta['namespace']}/{meta['name']} (pod is not owner)"
            raise Failed(f"PVC {meta['namespace']}/{name} was not created for pod {owned}")
        driver, handle = of_claim(world, claim, csi_node)
        if driver and handle:
            found[f"{driver}/{handle}"] = driver
    return found


def of_claim(world: World, claim: Manifest, csi_node: bool) -> tuple[str, str]:
    volume = world.get("persistentvolumes", claim["spec"].get("volumeName", ""))
    if volume is None:
        storage_class = world.get("storageclasses", claim["spec"].get("storageClassName", ""))
        if storage_class is None:
            return "", ""
        driver = storage_class["provisioner"]
        if driver == "kubernetes.io/aws-ebs":
            driver = "ebs.csi.aws.com" if csi_node else ""
        return driver, f"random-{claim['metadata']['name']}"
    spec = volume["spec"]
    if "csi" in spec:
        return spec["csi"]["driver"], spec["csi"]["volumeHandle"]
    kind = plain_migration.kind_of(spec)
    if not kind or not csi_node:
        return "", ""
    try:
        return DRIVERS[kind][1], plain_migration.handle(kind, spec[kind], volume["metadata"]["labels"])
    except CannotTranslate:
        return "", ""


def attached(world: World, node: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for attachment in world.objects.get("volumeattachments", {}).values():
        spec = attachment["spec"]
        volume = world.get("persistentvolumes", spec["source"].get("persistentVolumeName", ""))
        if spec["nodeName"] == node and spec["attacher"] and volume is not None and "csi" in volume["spec"]:
            found[f"{spec['attacher']}/{volume['spec']['csi']['volumeHandle']}"] = spec["attacher"]
    return found


def verdict(world: World, pod: Manifest, node: str, mates: list[Manifest]) -> Answer:
    csi_node = world.get("csinodes", node)
    try:
        new = used(world, pod, csi_node is not None, True)
    except Missing as reason:
        return "UnschedulableAndUnresolvable", (str(reason),)
    except Failed as reason:
        return "Error", (str(reason),)
    drivers = [] if csi_node is None else csi_node["spec"]["drivers"]
    limits = {driver["name"]: driver["allocatable"]["count"] for driver in drivers if "allocatable" in driver}
    if not new or not limits:
        return None
    old: dict[str, str] = {}
    try:
        for mate in mates:
            old |= used(world, mate, True, False)
    except Failed as reason:
        return "Error", (str(reason),)
    counts: dict[str, int] = {}
    for driver in (old | {name: d for name, d in attached(world, node).items() if name not in old}).values():
        counts[driver] = counts.get(driver, 0) + 1
    more: dict[str, int] = {}
    for name, driver in new.items():
        if name not in old:
            more[driver] = more.get(driver, 0) + 1
    if any(counts.get(driver, 0) + count > limits[driver] for driver, count in more.items() if driver in limits):
        return "Unschedulable", ("node(s) exceed max volume count",)
    return None
