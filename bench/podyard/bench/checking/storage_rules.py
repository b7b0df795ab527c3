"""May this pod be on that node, as to its volumes? And who holds which volume? Plainly, on documents, as
`rules`."""

from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Final

from podyard.bench.checking.history import CLAIMS, CLASSES, CSI_NODES, VOLUMES, Document, State
from podyard.bench.checking.selecting import claims, namespace, takes
from podyard.bench.checking.standing import Standing
from podyard.objects import quantity
from podyard.objects.documents import mapping, mappings

ONE_POD: Final = "ReadWriteOncePod"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
TAKEN_OVER: Final = {
    "awsElasticBlockStore": "ebs.csi.aws.com",
    "azureDisk": "disk.csi.azure.com",
    "cinder": "cinder.csi.openstack.org",
    "gcePersistentDisk": "pd.csi.storage.gke.io",
}
"""Drivers in the place of plugins. Source: csi-translation-lib v0.36.2, plugins."""
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"


def why_not(pod: Document, node: Document, state: State, others: Standing, *, bound: bool) -> str:
    """Why a pod with these claims may not be on `node`; empty if it may.

    :param bound: its claims must be bound; else it is enough that they can be
    """
    place = namespace(pod)
    for name in claims(pod):
        why = _claim(place, name, node, state, bound=bound) or _one_pod(place, name, state, others)
        if why:
            return why
    return _limits(pod, node, state, others)


def _claim(place: str, name: str, node: Document, state: State, *, bound: bool) -> str:
    claim = state.get(CLAIMS, place, name)
    if claim is None:
        return f"claim {name} is not there"
    volume_name = claim["spec"].get("volumeName")
    if volume_name:
        volume = state.get(VOLUMES, "", volume_name)
        if volume is None:
            return f"claim {name} is bound to a volume that is not there"
        return "" if reaches(volume, node) else f"claim {name}: its volume is elsewhere"
    if bound:
        return f"claim {name} is not bound"
    kind = state.get(CLASSES, "", claim["spec"].get("storageClassName", ""))
    if kind is None or kind["volumeBindingMode"] != "WaitForFirstConsumer":
        return f"claim {name} waits for its volume"
    if kind["provisioner"] != NO_PROVISIONER:
        selected = mapping(claim, "metadata", "annotations").get(SELECTED_NODE)
        return "" if selected in (None, node["metadata"]["name"]) else f"claim {name}: a volume is made elsewhere"
    if any(suits(volume, claim) and reaches(volume, node) for volume in state.all(VOLUMES).values()):
        return ""
    return f"claim {name}: no volume"


def _one_pod(place: str, name: str, state: State, others: Standing) -> str:
    claim = state.get(CLAIMS, place, name)
    if claim is None or ONE_POD not in claim["spec"]["accessModes"]:
        return ""
    return f"{ONE_POD} claim {name} in use" if others.users[place, name] else ""


def _limits(pod: Document, node: Document, state: State, others: Standing) -> str:
    attached = set(_attached(pod, state))
    if not attached:
        return ""
    name = node["metadata"]["name"]
    csi_node = state.get(CSI_NODES, "", name)
    drivers = [] if csi_node is None else mappings(csi_node["spec"], "drivers")
    there = {one for other in others.on(name) for one in _attached(other.pod, state)}
    counts = Counter(driver for driver, *_ in there | attached)
    asked = {driver for driver, *_ in attached - there}
    for driver in drivers:
        limit = mapping(driver, "allocatable").get("count")
        if limit is not None and driver["name"] in asked and counts[driver["name"]] > limit:
            return f"volume limit of {driver['name']}: {counts[driver['name']]} of {limit}"
    return ""


def _attached(pod: Document, state: State) -> Iterator[tuple[str, str, str]]:
    """Driver, namespace and claim of each volume that a node has to attach for the pod: each claim has a
    volume of its own."""
    place = namespace(pod)
    for name in claims(pod):
        claim = state.get(CLAIMS, place, name)
        if claim is None:
            continue
        volume = state.get(VOLUMES, "", claim["spec"].get("volumeName", ""))
        kind = state.get(CLASSES, "", claim["spec"].get("storageClassName", ""))
        if volume is not None:
            if "csi" in volume["spec"]:
                yield volume["spec"]["csi"]["driver"], place, name
            for plugin, driver in TAKEN_OVER.items():
                if plugin in volume["spec"]:
                    yield driver, place, name
        elif kind is not None and kind["provisioner"] != NO_PROVISIONER:
            yield kind["provisioner"], place, name


def suits(volume: Document, claim: Document) -> bool:
    """Whether a volume is free, or for this claim, and what the claim wants."""
    held = volume["spec"].get("claimRef")
    if held is not None and not _names(held, claim):
        return False
    wanted = quantity.value(claim["spec"]["resources"]["requests"]["storage"])
    return (
        (volume["spec"].get("storageClassName") or "") == (claim["spec"].get("storageClassName") or "")
        and set(claim["spec"]["accessModes"]) <= set(volume["spec"]["accessModes"])
        and quantity.value(volume["spec"]["capacity"]["storage"]) >= wanted
    )


def _names(held: Mapping[str, str], claim: Document) -> bool:
    """Whether a volume's claimRef is this claim: by its uid, or by its name where it says no uid."""
    if held.get("uid"):
        return held["uid"] == claim["metadata"]["uid"]
    return (held.get("namespace"), held.get("name")) == (namespace(claim), claim["metadata"]["name"])


def reaches(volume: Document, node: Document) -> bool:
    """Whether a node is one of those that a volume's affinity names."""
    wanted = mapping(volume, "spec", "nodeAffinity", "required")
    return not wanted or takes(wanted, node)


def broken(resource: str, before: Document | None, now: Document, state: State) -> str:
    """What a new version of a volume or claim breaks: each has one other side, for ever; empty if nothing.

    :param before: the version before, if there is one
    :param state: after the batch that wrote it
    """
    same = before is not None and before["metadata"]["uid"] == now["metadata"]["uid"]
    old: Document = before if same and before is not None else {}
    name: str = now["metadata"]["name"]
    if resource == VOLUMES:
        was, held = (mapping(one, "spec", "claimRef").get("uid") for one in (old, now))
        return f"volume {name} is bound to two claims: {was}, then {held}" if was and was != held else ""
    was, volume_name = (mapping(one, "spec").get("volumeName") for one in (old, now))
    if was and was != volume_name:
        return f"claim {name} is bound to two volumes: {was}, then {volume_name}"
    volume = state.get(VOLUMES, "", volume_name) if volume_name else None
    if volume is not None and not _names(mapping(volume, "spec", "claimRef"), now):
        return f"volume {volume_name} is bound to two claims: {name} is not the one that it names"
    return ""
