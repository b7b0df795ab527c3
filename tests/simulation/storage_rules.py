"""May this pod be on that node, as to its volumes? And who holds which volume? Plainly, on documents, as
`rules`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from podyard.objects import quantity
from tests.simulation.history import CLAIMS, CLASSES, CSI_NODES, VOLUMES, Document, State

ONE_POD = "ReadWriteOncePod"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
SELECTED_NODE = "volume.kubernetes.io/selected-node"


class User(NamedTuple):
    """A pod that is on a node."""

    pod: Document
    node: str


def claims(pod: Document) -> list[str]:
    """Names of the claims that a pod uses."""
    return [
        volume["persistentVolumeClaim"]["claimName"]
        for volume in pod["spec"].get("volumes", ())
        if "persistentVolumeClaim" in volume
    ]


def why_not(pod: Document, node: Document, state: State, others: Sequence[User], *, bound: bool) -> str:
    """Why a pod with these claims may not be on `node`; empty if it may.

    :param bound: its claims must be bound; else it is enough that they can be
    """
    for name in claims(pod):
        why = _claim(name, node, state, bound=bound) or _one_pod(name, state, others)
        if why:
            return why
    return _limits(pod, node, state, others)


def _claim(name: str, node: Document, state: State, *, bound: bool) -> str:
    claim = state.get(CLAIMS, name)
    if claim is None:
        return f"claim {name} is not there"
    volume_name = claim["spec"].get("volumeName")
    if volume_name:
        volume = state.get(VOLUMES, volume_name)
        if volume is None:
            return f"claim {name} is bound to a volume that is not there"
        return "" if reaches(volume, node) else f"claim {name}: its volume is elsewhere"
    if bound:
        return f"claim {name} is not bound"
    kind = state.get(CLASSES, claim["spec"].get("storageClassName", ""))
    if kind is None or kind["volumeBindingMode"] != "WaitForFirstConsumer":
        return f"claim {name} waits for its volume"
    if kind["provisioner"] != NO_PROVISIONER:
        selected = claim["metadata"].get("annotations", {}).get(SELECTED_NODE)
        return "" if selected in (None, node["metadata"]["name"]) else f"claim {name}: a volume is made elsewhere"
    if any(suits(volume, claim) and reaches(volume, node) for volume in state.all(VOLUMES).values()):
        return ""
    return f"claim {name}: no volume"


def _one_pod(name: str, state: State, others: Sequence[User]) -> str:
    claim = state.get(CLAIMS, name)
    if claim is None or ONE_POD not in claim["spec"]["accessModes"]:
        return ""
    return f"{ONE_POD} claim {name} in use" if any(name in claims(one.pod) for one in others) else ""


def _limits(pod: Document, node: Document, state: State, others: Sequence[User]) -> str:
    attached = set(_attached(pod, state))
    if not attached:
        return ""
    name = node["metadata"]["name"]
    csi_node = state.get(CSI_NODES, name)
    drivers = () if csi_node is None else csi_node["spec"]["drivers"]
    there = {one for other in others if other.node == name for one in _attached(other.pod, state)}
    counts = Counter(driver for driver, _ in there | attached)
    asked = {driver for driver, _ in attached - there}
    for driver in drivers:
        limit = driver["allocatable"]["count"]
        if driver["name"] in asked and counts[driver["name"]] > limit:
            return f"volume limit of {driver['name']}: {counts[driver['name']]} of {limit}"
    return ""


def _attached(pod: Document, state: State) -> Iterator[tuple[str, str]]:
    """Driver and claim of each volume that a node has to attach for the pod: each claim has a volume of its
    own."""
    for name in claims(pod):
        claim = state.get(CLAIMS, name)
        if claim is None:
            continue
        volume = state.get(VOLUMES, claim["spec"].get("volumeName", ""))
        kind = state.get(CLASSES, claim["spec"].get("storageClassName", ""))
        if volume is not None:
            if "csi" in volume["spec"]:
                yield volume["spec"]["csi"]["driver"], name
        elif kind is not None and kind["provisioner"] != NO_PROVISIONER:
            yield kind["provisioner"], name


def suits(volume: Document, claim: Document) -> bool:
    """Whether a volume is free, or for this claim, and what the claim wants."""
    held = volume["spec"].get("claimRef")
    if held is not None and held.get("uid") != claim["metadata"]["uid"]:
        return False
    wanted = quantity.value(claim["spec"]["resources"]["requests"]["storage"])
    return (
        volume["spec"]["storageClassName"] == claim["spec"]["storageClassName"]
        and set(claim["spec"]["accessModes"]) <= set(volume["spec"]["accessModes"])
        and quantity.value(volume["spec"]["capacity"]["storage"]) >= wanted
    )


def reaches(volume: Document, node: Document) -> bool:
    """Whether a node is one of those that a volume's affinity names, all by their host names."""
    terms = volume["spec"].get("nodeAffinity", {}).get("required", {}).get("nodeSelectorTerms")
    if terms is None:
        return True
    labels = node["metadata"]["labels"]
    return any(all(labels.get(one["key"]) in one["values"] for one in term["matchExpressions"]) for term in terms)


def broken(resource: str, before: Document | None, now: Document, state: State) -> str:
    """What a new version of a volume or claim breaks: each has one other side, for ever; empty if nothing.

    :param before: the version before, if there is one
    :param state: after the batch that wrote it
    """
    same = before is not None and before["metadata"]["uid"] == now["metadata"]["uid"]
    old, name = (before if same and before is not None else {"spec": {}}), now["metadata"]["name"]
    if resource == VOLUMES:
        was, held = (one["spec"].get("claimRef", {}).get("uid") for one in (old, now))
        return f"volume {name} is bound to two claims: {was}, then {held}" if was and was != held else ""
    was, volume_name = (one["spec"].get("volumeName") for one in (old, now))
    if was and was != volume_name:
        return f"claim {name} is bound to two volumes: {was}, then {volume_name}"
    volume = state.get(VOLUMES, volume_name) if volume_name else None
    if volume is not None and volume["spec"].get("claimRef", {}).get("uid") != now["metadata"]["uid"]:
        return f"volume {volume_name} is bound to two claims: {name} is not the one that it names"
    return ""
