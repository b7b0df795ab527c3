"""Random small clusters with storage: the same objects as manifests, for plain readings, and as plugins see
them."""

from collections.abc import Mapping
from typing import Any

import msgspec
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from podyard.cluster.node_table import NodeTable
from podyard.cluster.pods import PodView
from podyard.framework.cycle_state import CycleState
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code, PluginFault, Status
from podyard.objects import decoding
from podyard.proto.placement import BoundPod, Usage
from tests.support import objects
from tests.support.known_objects import KnownObjects

Manifest = dict[str, Any]
Key = tuple[str, str]

NODES = ("n0", "n1", "n2")
ZONES = ("us-a-1", "us-a-2")
GA_ZONE, BETA_ZONE = "topology.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/zone"
EBS_ZONE, GCE_ZONE = "topology.ebs.csi.aws.com/zone", "topology.gke.io/zone"
HOST = "kubernetes.io/hostname"
CLAIMS, VOLUMES = ("c0", "c1", "c2"), ("v0", "v1", "v2", "v3")
CLASSES = ("made", "roomy", "static", "now", "ebs")
SIZES = ("1Gi", "2Gi", "3Gi")
OWNED = "pod-scratch"
"""The claim of the ephemeral volume `scratch` of the pod `pod`."""


class World:
    """One cluster twice."""

    def __init__(self) -> None:
        self.nodes: dict[str, Manifest] = {}
        self.placed: dict[str, tuple[Manifest, str]] = {}
        self.objects: dict[str, dict[Key, Manifest]] = {}
        self._shown = KnownObjects()
        self.snapshot = Snapshot(NodeTable(), self._shown)

    def get(self, resource: str, name: str, namespace: str = "") -> Manifest | None:
        """An object as a plain reading wants it."""
        return self.objects.get(resource, {}).get((namespace, name))

    def on(self, node: str) -> list[Manifest]:
        return [pod for pod, where in self.placed.values() if where == node]

    def carry_out(self, step: tuple[Any, ...]) -> None:
        """One of `steps`."""
        match step:
            case ("node", name, manifest):
                if manifest is None:
                    self.nodes.pop(name, None)
                    self.snapshot.nodes.remove_node(name)
                else:
                    self.nodes[name] = manifest
                    self.snapshot.nodes.set_node(decoding.decode("nodes", msgspec.json.encode(manifest)))
            case ("object", resource, key, manifest):
                found = self.objects.setdefault(resource, {})
                found.pop(key, None)
                if manifest is None:
                    self._shown.drop(resource, key)
                else:
                    self._shown.put(resource, manifest, key)
                    found[key] = manifest
            case ("pod", uid, manifest, node):
                self.placed.pop(uid, None)
                self.snapshot.nodes.remove(uid)
                if manifest is not None:
                    pod = named(manifest, uid)
                    self.placed[uid] = pod, node
                    self.snapshot.nodes.place(view(pod, node))

    def again(self) -> "World":
        """The same cluster, made from scratch."""
        other = World()
        for name, manifest in self.nodes.items():
            other.carry_out(("node", name, manifest))
        for resource, found in self.objects.items():
            for key, manifest in found.items():
                other.carry_out(("object", resource, key, manifest))
        for uid, (pod, node) in self.placed.items():
            other.carry_out(("pod", uid, pod, node))
        return other


def named(pod: Manifest, name: str) -> Manifest:
    """A pod of a kind."""
    return pod | {"metadata": pod["metadata"] | {"name": name, "uid": name}}


def view(pod: Manifest, on: str = "") -> PodView:
    """The pod as readers see it, on a node or pending."""
    meta = pod["metadata"]
    bound = BoundPod(namespace=meta["namespace"], name=meta["name"], uid=meta["uid"], node=on, usage=Usage())
    return objects.view(pod, bound=bound if on else None)


Answer = tuple[str, tuple[str, ...]] | None
"""Code and reasons, sorted; None: it takes the pod."""


def spelled(status: Status) -> Answer:
    return None if status.ok else (status.code.label, tuple(sorted(status.reasons)))


class Asked:
    """What a plugin says about a pod."""

    def __init__(self, plugin: Any, pod: PodView, snapshot: Snapshot) -> None:
        self.state = CycleState()
        try:
            self.pre_filter: Answer = spelled(plugin.pre_filter(self.state, pod, snapshot).status)
        except PluginFault as fault:
            self.pre_filter = Code.ERROR.label, (str(fault),)
        self.one_by_one: dict[str, Answer] = {}
        self.at_once: dict[str, Answer] = {}
        if self.pre_filter is not None:
            return
        rows, nodes = snapshot.nodes.rows(), snapshot.nodes
        for row in rows.tolist():
            self.one_by_one[nodes.names[row]] = self._verdict(plugin, self._one(plugin, pod, snapshot, row))
        try:
            codes = plugin.filter(self.state, pod, snapshot, rows).tolist()
        except PluginFault as fault:
            codes = [str(fault)] * len(rows)
        for row, code in zip(rows.tolist(), codes, strict=True):
            self.at_once[nodes.names[row]] = self._verdict(plugin, code)

    def _one(self, plugin: Any, pod: PodView, snapshot: Snapshot, row: int) -> int | str:
        try:
            return plugin.filter_one(self.state, pod, snapshot, row)
        except PluginFault as fault:
            return str(fault)

    def _verdict(self, plugin: Any, code: int | str) -> Answer:
        if isinstance(code, str):
            return Code.ERROR.label, (code,)
        return spelled(plugin.verdict(self.state, code)) if code else None

    @property
    def failed(self) -> bool:
        """Whether some node could not be judged: the attempt fails, whatever is said of the others."""
        return any(answer is not None and answer[0] == "Error" for answer in self.one_by_one.values())


# ---- strategies

LARGE = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""For clusters with many objects: on a busy machine they take longer to draw than Hypothesis likes."""

sizes = st.sampled_from(SIZES)
maybe = st.booleans()


def rarely(of: st.SearchStrategy[Any], otherwise: Any = None) -> st.SearchStrategy[Any]:
    return st.integers(0, 4).flatmap(lambda number: of if number == 0 else st.just(otherwise))


@st.composite
def nodes(draw: st.DrawFn, name: str) -> Manifest:
    labels: dict[str, str] = {HOST: name} if draw(maybe) else {}
    for key in (GA_ZONE, BETA_ZONE, EBS_ZONE, GCE_ZONE):
        zone = draw(st.sampled_from((*ZONES, "")))
        if zone:
            labels[key] = zone
    return {"metadata": {"name": name, "labels": labels}, "spec": {}, "status": {}}


def _term(draw: st.DrawFn) -> Manifest:
    key, values = draw(st.sampled_from(((HOST, NODES), (GA_ZONE, ZONES), (BETA_ZONE, ZONES), (EBS_ZONE, ZONES))))
    operator = draw(st.sampled_from(("In", "In", "In", "NotIn", "Exists")))
    given = draw(st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True))
    term: Manifest = {
        "matchExpressions": [{"key": key, "operator": operator} | ({} if operator == "Exists" else {"values": given})]
    }
    if draw(rarely(st.just(True))):
        field = {"key": "metadata.name", "operator": draw(st.sampled_from(("In", "NotIn"))), "values": ["n0"]}
        term["matchFields"] = [field]
    return term


@st.composite
def volumes(draw: st.DrawFn, name: str) -> Manifest:
    spec: Manifest = {
        "capacity": {"storage": draw(sizes)},
        "accessModes": draw(st.sampled_from((["ReadWriteOnce"], ["ReadWriteOnce", "ReadOnlyMany"]))),
        "storageClassName": draw(st.sampled_from(("static", "static", "made", "ebs"))),
        "volumeMode": draw(rarely(st.just("Block"), "Filesystem")),
    }
    source = draw(st.sampled_from(("csi", "csi", "awsElasticBlockStore", "gcePersistentDisk", "local")))
    handle = draw(st.sampled_from(("vol-1", "vol-2", "vol-3")))
    spec[source] = {
        "csi": {"driver": "csi.example.com", "volumeHandle": handle},
        "awsElasticBlockStore": {"volumeID": draw(rarely(st.sampled_from(("aws://z/vol-1", "aws://z/x")), handle))},
        "gcePersistentDisk": {"pdName": handle},
        "local": {"path": "/x"},
    }[source]
    if draw(maybe):
        terms = [_term(draw) for _ in range(draw(st.integers(1, 2)))]
        spec["nodeAffinity"] = {"required": {"nodeSelectorTerms": terms}}
    claim = draw(rarely(st.sampled_from(CLAIMS)))
    if claim:
        spec["claimRef"] = {"namespace": "default", "name": claim, "uid": draw(st.sampled_from(("", claim, "old")))}
    labels: dict[str, str] = {"disk": "fast"} if draw(maybe) else {}
    for key in (GA_ZONE, BETA_ZONE):
        if draw(maybe):
            labels[key] = draw(st.sampled_from((*ZONES, "__".join(ZONES), "us-a-1__", "odd__zones")))
    metadata: Manifest = {"name": name, "uid": name, "labels": labels}
    if draw(rarely(rarely(st.just(True)))):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    phase = draw(st.sampled_from(("Available", "Available", "Available", "Bound", "Released")))
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase}}


@st.composite
def claims(draw: st.DrawFn, name: str) -> Manifest:
    spec: Manifest = {"accessModes": draw(st.sampled_from((["ReadWriteOnce"], ["ReadWriteOncePod"])))}
    if draw(st.integers(0, 5)):
        spec["resources"] = {"requests": {"storage": draw(sizes)}}
    storage_class = draw(
        st.sampled_from(("static", "static", "made", "roomy", "roomy", "roomy", "ebs", "now", "unknown", ""))
    )
    if storage_class:
        spec["storageClassName"] = storage_class
    if draw(rarely(st.just(True))):
        spec["selector"] = {"matchLabels": {"disk": "fast"}}
    annotations: dict[str, str] = {}
    if draw(st.sampled_from((True, False, False))):
        spec["volumeName"] = draw(st.sampled_from((*VOLUMES, "gone")))
        if draw(st.integers(0, 5)):
            annotations["pv.kubernetes.io/bind-completed"] = "yes"
    elif draw(rarely(st.just(True))):
        annotations["volume.kubernetes.io/selected-node"] = draw(st.sampled_from((*NODES, "gone")))
    metadata: Manifest = {"name": name, "namespace": "default", "uid": name, "annotations": annotations}
    if name == OWNED or draw(rarely(st.just(True))):
        uid = draw(rarely(st.just("other"), "pod"))
        metadata["ownerReferences"] = [{"kind": "Pod", "name": "pod", "uid": uid, "controller": True}]
    if draw(rarely(rarely(st.just(True)))):
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    phase = draw(rarely(rarely(st.just("Lost")), "Pending"))
    return {"metadata": metadata, "spec": spec, "status": {"phase": phase or "Pending"}}


@st.composite
def classes(draw: st.DrawFn, name: str) -> Manifest:
    provisioner = {
        "made": "csi.example.com",
        "roomy": "roomy.example.com",
        "static": "kubernetes.io/no-provisioner",
        "now": "csi.example.com",
        "ebs": "kubernetes.io/aws-ebs",
    }[name]
    found: Manifest = {"metadata": {"name": name}, "provisioner": provisioner}
    mode = "Immediate" if name == "now" else "WaitForFirstConsumer"
    if not draw(rarely(rarely(st.just(True)))):
        found["volumeBindingMode"] = mode
    if draw(rarely(st.just(True))):
        zones = draw(st.lists(st.sampled_from(ZONES), max_size=2, unique=True))
        terms = [{"matchLabelExpressions": [{"key": GA_ZONE, "values": zones}]}, {}]
        found["allowedTopologies"] = terms[: draw(st.integers(1, 2))]
    return found


@st.composite
def csi_nodes(draw: st.DrawFn, name: str) -> Manifest:
    drivers: list[Manifest] = []
    for driver in ("csi.example.com", "ebs.csi.aws.com", "pd.csi.storage.gke.io"):
        if draw(maybe):
            limit = draw(st.sampled_from((None, 0, 1, 2, 3)))
            allocatable = {} if limit is None else {"allocatable": {"count": limit}}
            drivers.append({"name": driver, "nodeID": name} | allocatable)
    served = draw(st.sampled_from(("", "kubernetes.io/aws-ebs", "kubernetes.io/aws-ebs,kubernetes.io/gce-pd")))
    annotations = {"storage.alpha.kubernetes.io/migrated-plugins": served} if served else {}
    return {"metadata": {"name": name, "annotations": annotations}, "spec": {"drivers": drivers}}


@st.composite
def attachments(draw: st.DrawFn, name: str) -> Manifest:
    source = draw(st.sampled_from((*VOLUMES, "gone", "")))
    return {
        "metadata": {"name": name},
        "spec": {
            "attacher": draw(st.sampled_from(("csi.example.com", "csi.example.com", "ebs.csi.aws.com", ""))),
            "nodeName": draw(st.sampled_from(NODES)),
            "source": {"persistentVolumeName": source} if source else {},
        },
        "status": {"attached": True},
    }


@st.composite
def capacities(draw: st.DrawFn, name: str) -> Manifest:
    found: Manifest = {
        "metadata": {"name": name, "namespace": "default"},
        "storageClassName": draw(st.sampled_from(("roomy", "roomy", "made"))),
    }
    topology = draw(st.sampled_from((None, {}, {"matchLabels": {GA_ZONE: ZONES[0]}}, {"matchLabels": {HOST: "n1"}})))
    if topology is not None:
        found["nodeTopology"] = topology
    for field in ("capacity", "maximumVolumeSize"):
        if draw(maybe):
            found[field] = draw(sizes)
    return found


def drivers(name: str) -> st.SearchStrategy[Manifest]:
    return st.sampled_from((True, True, False)).map(
        lambda told: {"metadata": {"name": name}, "spec": {"storageCapacity": told}}
    )


DISKS: tuple[Manifest, ...] = (
    {"gcePersistentDisk": {"pdName": "vol-1"}},
    {"gcePersistentDisk": {"pdName": "vol-1", "readOnly": True}},
    {"awsElasticBlockStore": {"volumeID": "vol-1"}},
    {"awsElasticBlockStore": {"volumeID": "vol-1", "readOnly": True}},
    {"iscsi": {"iqn": "iqn.a", "targetPortal": "p", "lun": 0}},
    {"iscsi": {"iqn": "iqn.a", "targetPortal": "q", "lun": 1, "readOnly": True}},
    {"rbd": {"monitors": ["m1", "m2"], "image": "i", "pool": "p"}},
    {"rbd": {"monitors": ["m2"], "image": "i", "pool": "p", "readOnly": True}},
    {"rbd": {"monitors": ["m3"], "image": "i", "pool": "p"}},
)
claim_sources = st.sampled_from(CLAIMS).map(lambda name: {"persistentVolumeClaim": {"claimName": name}})
other_sources: st.SearchStrategy[Manifest] = st.sampled_from(
    (
        {"emptyDir": {}},
        {"csi": {"driver": "csi.example.com"}},
        {"azureFile": {"shareName": "s", "secretName": "x"}},
        {"cinder": {"volumeID": "vol-1"}},
    )
)


@st.composite
def pods(draw: st.DrawFn, *, other_space: bool = False, ephemeral: bool = True) -> Manifest:
    """A pod without a name."""
    sources = draw(st.lists(st.one_of(claim_sources, claim_sources, st.sampled_from(DISKS), other_sources), max_size=3))
    found = [source | {"name": f"volume{at}"} for at, source in enumerate(sources)]
    if ephemeral and draw(rarely(st.just(True))):
        found.append({"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}})
    space = "other" if other_space and draw(rarely(st.just(True))) else "default"
    return {"metadata": {"namespace": space}, "spec": {"volumes": found}}


MAKERS: Mapping[str, tuple[Any, tuple[str, ...], str]] = {
    "persistentvolumes": (volumes, VOLUMES, ""),
    "persistentvolumeclaims": (claims, (*CLAIMS, OWNED), "default"),
    "storageclasses": (classes, CLASSES, ""),
    "csinodes": (csi_nodes, NODES, ""),
    "csidrivers": (drivers, ("roomy.example.com", "csi.example.com"), ""),
    "csistoragecapacities": (capacities, ("k0", "k1"), "default"),
    "volumeattachments": (attachments, ("a0", "a1"), ""),
}


@st.composite
def steps(draw: st.DrawFn) -> tuple[Any, ...]:
    """Something that happens to a cluster."""
    what = draw(st.sampled_from(("node", "pod", "pod", *MAKERS)))
    if what == "node":
        name = draw(st.sampled_from(NODES))
        return "node", name, draw(st.one_of(nodes(name), st.none()))
    if what == "pod":
        uid = draw(st.sampled_from(tuple(f"p{number}" for number in range(6))))
        pod = draw(st.one_of(pods(other_space=True), pods(other_space=True), st.none()))
        return "pod", uid, pod, draw(st.sampled_from((*NODES, "unknown")))
    make, names, space = MAKERS[what]
    name = draw(st.sampled_from(names))
    return "object", what, (space, name), draw(st.one_of(make(name), make(name), st.none()))


@st.composite
def worlds(draw: st.DrawFn) -> World:
    """Nearly all objects are there."""
    world = World()
    for name in NODES[: draw(st.integers(1, 3))]:
        world.carry_out(("node", name, draw(nodes(name))))
    for resource, (make, names, space) in MAKERS.items():
        for name in names:
            if draw(st.integers(0, 5)):
                world.carry_out(("object", resource, (space, name), draw(make(name))))
    for number in range(draw(st.integers(0, 5))):
        where = draw(st.sampled_from(tuple(world.nodes)))
        world.carry_out(("pod", f"p{number}", draw(pods(other_space=True, ephemeral=False)), where))
    return world


@st.composite
def bound_worlds(draw: st.DrawFn) -> World:
    """All claims are bound, to volumes that are there; most nodes have a CSINode."""
    world = World()
    for name in NODES:
        world.carry_out(("node", name, draw(nodes(name))))
        if draw(st.integers(0, 3)):
            world.carry_out(("object", "csinodes", ("", name), draw(csi_nodes(name))))
    for name in VOLUMES:
        world.carry_out(("object", "persistentvolumes", ("", name), draw(volumes(name))))
    for name in CLAIMS:
        claim = draw(claims(name))
        claim["spec"]["volumeName"] = draw(st.sampled_from(VOLUMES))
        claim["metadata"] = claim["metadata"] | {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
        claim["metadata"].pop("deletionTimestamp", None)
        world.carry_out(("object", "persistentvolumeclaims", ("default", name), claim | {"status": {"phase": "Bound"}}))
    return world
