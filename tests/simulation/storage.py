"""The world's storage: classes, local volumes, claims, volumes that nodes attach; whoever cleans up, and
strangers who take volumes.

Volumes and claims are also written by the binder; whoever finds another version than it knew leaves it.
"""

import json
from collections.abc import Callable, Mapping
from typing import Any

from podyard.bench.checking.history import CLAIMS, CLASSES, CSI_NODES, PODS, VOLUMES
from tests.simulation.clock import Clock

Document = dict[str, Any]

LOCAL = "local"
ATTACHED = "attached"
MADE = "made"
DRIVER = "csi.example.com"
MAKER = "maker.example.com"
SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
ATTACHABLE = (1, 2, 2, 3)
"""How many volumes of the driver nodes may have, by turns."""


class Storage:
    """Part of the world; what it does are events of the clock."""

    def __init__(
        self,
        clock: Clock,
        objects: Mapping[tuple[str, str], Document],
        put: Callable[[str, str, Document], None],
        remove: Callable[[str, str, str], None],
        has_room: Callable[[], bool],
    ) -> None:
        """
        :param objects: documents that live, by resource and name
        :param put: stores a version: resource, namespace, document
        :param remove: stores the marker of a deletion: resource, namespace, name
        :param has_room: whether anything can be stored now
        """
        self._clock = clock
        self._objects = objects
        self._put = put
        self._remove = remove
        self._has_room = has_room
        self._serial = 0

    # ---- what there is

    def begin(self) -> None:
        """Make the classes."""
        for name, provisioner, mode in (
            (LOCAL, NO_PROVISIONER, "WaitForFirstConsumer"),
            (ATTACHED, DRIVER, "Immediate"),
            (MADE, MAKER, "WaitForFirstConsumer"),
        ):
            self._put(
                CLASSES,
                "",
                {
                    "apiVersion": "storage.k8s.io/v1",
                    "kind": "StorageClass",
                    "metadata": {"name": name, "uid": f"class-{name}"},
                    "provisioner": provisioner,
                    "volumeBindingMode": mode,
                },
            )

    def node_made(self, index: int) -> None:
        """What comes with a node: how many volumes it may have, and, on two of three, a local volume."""
        name = f"n{index}"
        driver = {"name": DRIVER, "nodeID": name, "allocatable": {"count": ATTACHABLE[index % len(ATTACHABLE)]}}
        metadata = {"name": name, "uid": self._uid("csi")}
        self._put(
            CSI_NODES,
            "",
            {
                "apiVersion": "storage.k8s.io/v1",
                "kind": "CSINode",
                "metadata": metadata,
                "spec": {"drivers": [driver]},
            },
        )
        if index % 3 and (VOLUMES, f"disk-{name}") not in self._objects:
            self._make_disk(f"disk-{name}", name)

    def node_gone(self, name: str) -> None:
        """Its disk stays, out of reach."""
        self._remove(CSI_NODES, "", name)

    def claim(self, name: str, *, one_pod: bool = False) -> str:
        """A claim that waits for its first pod; made if it is not there. Returns its name."""
        if (CLAIMS, name) not in self._objects:
            modes = ["ReadWriteOncePod"] if one_pod else ["ReadWriteOnce"]
            self._put(CLAIMS, "default", self._claim(name, LOCAL, modes))
        return name

    def made_claim(self, name: str) -> str:
        """A claim whose volume is made when its pod has got a node. Returns its name."""
        self._put(CLAIMS, "default", self._claim(name, MADE, ["ReadWriteOnce"]))
        return name

    def attached_claim(self, name: str) -> str:
        """A claim that is bound already, to a volume that any node can attach. Returns its name."""
        claim, volume = self._claim(name, ATTACHED, ["ReadWriteOnce"]), self._volume(f"net-{name}", ATTACHED)
        volume["spec"]["csi"] = {"driver": DRIVER, "volumeHandle": volume["metadata"]["name"]}
        self._bind(claim, volume)
        return name

    # ---- who takes, and who cleans up

    def take_one(self) -> None:
        """A stranger binds a free disk to a claim of no pod, and gives it back later."""
        free = [
            document
            for (resource, _), document in self._objects.items()
            if resource == VOLUMES
            and document["spec"]["storageClassName"] == LOCAL
            and "claimRef" not in document["spec"]
        ]
        if not free or not self._has_room():  # volume and claim together, or neither
            return
        claim = self._claim(self._uid("stranger"), LOCAL, ["ReadWriteOnce"])
        self._bind(claim, json.loads(json.dumps(self._clock.random.choice(free))))
        self._clock.later(
            self._clock.random.uniform(2, 20), lambda: self._remove(CLAIMS, "default", claim["metadata"]["name"])
        )

    def stored(self, resource: str, name: str, before: Document | None, document: Document | None) -> None:
        """A version of anything was stored: claims go with their pods, and volumes are wiped when their
        claims have gone."""
        random = self._clock.random
        if resource == PODS and document is None:
            self._clock.later(random.uniform(0.1, 2), lambda: self._without_pod(f"of-{name}"))
        elif resource == CLAIMS and document is not None and name.startswith("of-"):
            if document["spec"].get("volumeName"):
                self._clock.later(2.0, lambda: self._without_pod(name))
            elif _selected(document) and (before is None or not _selected(before)):
                self._clock.later(random.choice((0.1, 1.0, 6.0, 20.0)), lambda: self._make(name, _selected(document)))
        elif resource == CLAIMS and document is None and before is not None:
            uid = before["metadata"]["uid"]
            self._clock.later(random.uniform(0.5, 3), lambda: self._wipe(uid))
        elif resource == VOLUMES and document is not None and "claimRef" in document["spec"]:
            uid = document["spec"]["claimRef"]["uid"]
            self._clock.later(3.0, lambda: self._wipe(uid))

    def _make(self, name: str, node: str) -> None:
        """Make the volume of a claim on its node, or (one of five) say that it cannot be made there."""
        found = self._objects.get((CLAIMS, name))
        if found is None or found["spec"].get("volumeName") or _selected(found) != node:
            return
        if not self._has_room():
            self._clock.later(1.0, lambda: self._make(name, node))
            return
        claim = json.loads(json.dumps(found))
        if self._clock.random.random() < 0.2:
            del claim["metadata"]["annotations"][SELECTED_NODE]
            self._put(CLAIMS, "default", claim)
            return
        volume = self._volume(self._uid("made"), MADE)
        volume["spec"]["csi"] = {"driver": MAKER, "volumeHandle": volume["metadata"]["name"]}
        volume["spec"]["nodeAffinity"] = _only_on(node)
        self._bind(claim, volume)

    def _without_pod(self, claim: str) -> None:
        if (PODS, claim.removeprefix("of-")) not in self._objects and (CLAIMS, claim) in self._objects:
            self._remove(CLAIMS, "default", claim)

    def _wipe(self, uid: str) -> None:
        """Volumes of a claim that is no more are made anew; those that were made for it go."""
        held = {document["metadata"]["uid"] for (resource, _), document in self._objects.items() if resource == CLAIMS}
        for (resource, name), document in list(self._objects.items()):
            claim = document["spec"].get("claimRef", {}).get("uid") if resource == VOLUMES else None
            if claim is None or claim != uid or uid in held:
                continue
            self._remove(VOLUMES, "", name)
            if name.startswith("disk-"):
                self._clock.later(1.0, lambda name=name: self._anew(name))

    def _anew(self, disk: str) -> None:
        """Unless it came meanwhile with a node: whoever holds that one by now keeps it."""
        if (VOLUMES, disk) not in self._objects:
            self._make_disk(disk, disk.removeprefix("disk-"))

    # ---- documents

    def _uid(self, prefix: str) -> str:
        self._serial += 1
        return f"{prefix}-{self._serial}"

    def _make_disk(self, name: str, node: str) -> None:
        volume = self._volume(name, LOCAL)
        volume["spec"]["local"] = {"path": "/mnt"}
        volume["spec"]["nodeAffinity"] = _only_on(node)
        self._put(VOLUMES, "", volume)

    def _volume(self, name: str, kind: str) -> Document:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name, "uid": self._uid("volume")},
            "spec": {
                "storageClassName": kind,
                "capacity": {"storage": "10Gi"},
                "accessModes": ["ReadWriteOnce", "ReadWriteOncePod"],
                "persistentVolumeReclaimPolicy": "Delete",
            },
            "status": {"phase": "Available"},
        }

    def _claim(self, name: str, kind: str, modes: list[str]) -> Document:
        return {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": name, "namespace": "default", "uid": self._uid("claim")},
            "spec": {
                "storageClassName": kind,
                "accessModes": modes,
                "resources": {"requests": {"storage": "1Gi"}},
            },
            "status": {"phase": "Pending"},
        }

    def _bind(self, claim: Document, volume: Document) -> None:
        """Both sides at once: volume first, as the volume controller does."""
        metadata = claim["metadata"]
        volume["spec"]["claimRef"] = {
            "kind": "PersistentVolumeClaim",
            "apiVersion": "v1",
            "namespace": "default",
            "name": metadata["name"],
            "uid": metadata["uid"],
        }
        volume["status"] = {"phase": "Bound"}
        claim["spec"]["volumeName"] = volume["metadata"]["name"]
        metadata["annotations"] = {**metadata.get("annotations", {}), BIND_COMPLETED: "yes"}
        claim["status"] = {"phase": "Bound"}
        self._put(VOLUMES, "", volume)
        self._put(CLAIMS, "default", claim)


def _selected(claim: Document) -> str:
    """The node for which a claim's volume is to be made; empty: none yet."""
    return claim["metadata"].get("annotations", {}).get(SELECTED_NODE, "")


def _only_on(node: str) -> Document:
    here = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    return {"required": {"nodeSelectorTerms": [{"matchExpressions": [here]}]}}
