"""The rules of VolumeBinding read on manifests, one node at a time; shares no code with the plugin."""

from itertools import pairwise

from tests.unit.framework.oracle import requirement_holds
from tests.unit.plugins.volume_binding import plain_migration
from tests.unit.plugins.volume_binding.plain_migration import CannotTranslate
from tests.unit.plugins.volume_binding.storage_worlds import Answer, Manifest, World

UNRESOLVABLE = "UnschedulableAndUnresolvable"
AFFINITY = "node(s) didn't match PersistentVolume's node affinity"
NOTHING = "node(s) didn't find available persistent volumes to bind"
ROOM = "node(s) did not have enough free storage"
GONE = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
UNITS = {"1Gi": 1, "2Gi": 2, "3Gi": 3}


class Rejected(Exception):
    """Why PreFilter rejects the pod."""


def claims_of(world: World, pod: Manifest) -> list[Manifest]:
    """The pod's claims, in the order of its volumes."""
    meta, found = pod["metadata"], []
    for volume in pod["spec"]["volumes"]:
        if "persistentVolumeClaim" in volume:
            name = volume["persistentVolumeClaim"]["claimName"]
        elif "ephemeral" in volume:
            name = f"{meta['name']}-{volume['name']}"
        else:
            continue
        claim = world.get("persistentvolumeclaims", name, meta["namespace"])
        if claim is None and "ephemeral" in volume:
            raise Rejected(f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{name}"')
        if claim is None:
            raise Rejected(f'persistentvolumeclaim "{name}" not found')
        if claim["status"]["phase"] == "Lost":
            bound = claim["spec"].get("volumeName", "")
            raise Rejected(f'persistentvolumeclaim "{name}" bound to non-existent persistentvolume "{bound}"')
        if "deletionTimestamp" in claim["metadata"]:
            raise Rejected(f'persistentvolumeclaim "{name}" is being deleted')
        owners = [owner["uid"] for owner in claim["metadata"].get("ownerReferences", [])]
        if "ephemeral" in volume and owners != [meta["uid"]]:
            where = f"{meta['namespace']}/{meta['name']}"
            raise Rejected(f"PVC {meta['namespace']}/{name} was not created for pod {where} (pod is not owner)")
        found.append(claim)
    return found


def bound(claim: Manifest) -> bool:
    annotated = "pv.kubernetes.io/bind-completed" in claim["metadata"]["annotations"]
    return annotated and bool(claim["spec"].get("volumeName"))


def class_of(world: World, claim: Manifest) -> Manifest | None:
    return world.get("storageclasses", claim["spec"].get("storageClassName", ""))


def pre_filter(world: World, pod: Manifest) -> Answer:
    try:
        found = claims_of(world, pod)
    except Rejected as reason:
        return UNRESOLVABLE, (str(reason),)
    if not found:
        return "Skip", ()
    immediate = False
    for claim in found:
        if bound(claim):
            continue
        storage_class = class_of(world, claim)
        if storage_class is not None and "volumeBindingMode" not in storage_class:
            return "Error", (f'VolumeBindingMode not set for StorageClass "{storage_class["metadata"]["name"]}"',)
        waits = storage_class is not None and storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
        immediate |= not waits or bool(claim["spec"].get("volumeName"))
    return (UNRESOLVABLE, ("pod has unbound immediate PersistentVolumeClaims",)) if immediate else None


def reachable(world: World, volume: Manifest, node: str) -> bool:
    """Asked of a node without a name, as the reference does."""
    return any_term(plain_migration.terms(world, volume, node), world.nodes[node]["metadata"]["labels"])


def any_term(terms: list[Manifest] | None, labels: dict[str, str]) -> bool:
    if terms is None:
        return True
    for term in terms:
        holds = all(requirement_holds(item, labels.get(item["key"])) for item in term["matchExpressions"])
        if holds and all(item["operator"] == "NotIn" for item in term.get("matchFields", [])):
            return True
    return False


def size(claim: Manifest) -> int:
    return UNITS[claim["spec"]["resources"]["requests"]["storage"]] if "resources" in claim["spec"] else 0


def ours(volume: Manifest, claim: Manifest) -> bool:
    reference = volume["spec"].get("claimRef")
    meta = claim["metadata"]
    return (
        reference is not None
        and (reference["namespace"], reference["name"]) == (meta["namespace"], meta["name"])
        and reference["uid"] in ("", meta["uid"])
    )


def match(world: World, claim: Manifest, node: str, taken: set[str]) -> Manifest | None:
    """The volume for a claim; of equal ones the first by name."""
    smallest: Manifest | None = None
    of_class = [
        volume
        for _, volume in sorted(world.objects.get("persistentvolumes", {}).items())
        if volume["spec"]["storageClassName"] == claim["spec"].get("storageClassName", "")
    ]
    for volume in sorted(of_class, key=lambda volume: UNITS[volume["spec"]["capacity"]["storage"]]):
        meta, spec = volume["metadata"], volume["spec"]
        if meta["name"] in taken or ("claimRef" in spec and not ours(volume, claim)):
            continue
        if UNITS[spec["capacity"]["storage"]] < size(claim) or spec["volumeMode"] != "Filesystem":
            continue
        if "deletionTimestamp" in meta:
            continue
        # the reference does not translate in-tree volumes here
        fits = any_term(
            spec["nodeAffinity"]["required"]["nodeSelectorTerms"] if "nodeAffinity" in spec else None,
            world.nodes[node]["metadata"]["labels"],
        )
        if ours(volume, claim):
            return volume if fits else None
        if volume["status"]["phase"] != "Available" or not fits:
            continue
        if "selector" in claim["spec"] and meta["labels"].get("disk") != "fast":
            continue
        if set(claim["spec"]["accessModes"]) - set(spec["accessModes"]):
            continue
        if smallest is None:
            smallest = volume
    return smallest


def makes(world: World, claim: Manifest, node: str) -> str:
    """Why no volume can be made for the claim on the node; empty if one can."""
    storage_class = class_of(world, claim)
    assert storage_class is not None
    labels = world.nodes[node]["metadata"]["labels"]
    if storage_class["provisioner"] == "kubernetes.io/no-provisioner":
        return NOTHING
    terms = storage_class.get("allowedTopologies", [])
    if terms and not any(
        expression["values"] and labels.get(expression["key"]) in expression["values"]
        for term in terms
        for expression in term.get("matchLabelExpressions", [])
    ):
        return NOTHING
    driver = world.get("csidrivers", storage_class["provisioner"])
    if driver is None or not driver["spec"]["storageCapacity"] or "resources" not in claim["spec"]:
        return ""
    for capacity in world.objects.get("csistoragecapacities", {}).values():
        limit = capacity.get("maximumVolumeSize", capacity.get("capacity"))
        if capacity["storageClassName"] != storage_class["metadata"]["name"] or "nodeTopology" not in capacity:
            continue
        near = all(labels.get(key) == value for key, value in capacity["nodeTopology"].get("matchLabels", {}).items())
        if near and limit is not None and UNITS[limit] >= size(claim):
            return ""
    return ROOM


def verdict(world: World, pod: Manifest, node: str) -> Answer:
    found = claims_of(world, pod)
    reasons: list[str] = []
    for claim in found:
        if not bound(claim):
            continue
        volume = world.get("persistentvolumes", claim["spec"]["volumeName"])
        if volume is None:
            reasons.append(GONE)
            break
        try:
            if not reachable(world, volume, node):
                reasons.append(AFFINITY)
                break
        except CannotTranslate as reason:
            return "Error", (str(reason),)
    why = unbound(world, [claim for claim in found if not bound(claim)], node)
    reasons += [why] if why else []
    return (UNRESOLVABLE, tuple(sorted(reasons))) if reasons else None


def unbound(world: World, claims: list[Manifest], node: str) -> str:
    key = "volume.kubernetes.io/selected-node"
    selected = [claim for claim in claims if key in claim["metadata"]["annotations"]]
    if any(claim["metadata"]["annotations"][key] != node for claim in selected):
        return NOTHING
    left = sorted((claim for claim in claims if key not in claim["metadata"]["annotations"]), key=size)
    assert all(size(a) <= size(b) for a, b in pairwise(left))
    taken: set[str] = set()
    to_make = list(selected)
    for claim in left:
        volume = match(world, claim, node, taken)
        if volume is None:
            to_make.append(claim)
        else:
            taken.add(volume["metadata"]["name"])
    return next(filter(None, (makes(world, claim, node) for claim in to_make)), "")
