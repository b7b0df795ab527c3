"""The objects that an op creates, out of the files that it names. Pure but for reading those.

Source: kubernetes v1.36.2, test/integration/scheduler_perf/util.go (makeBasePod, makeBaseNode),
executor.go (getCustomVolumeFactory), node_util.go; test/utils/runners.go (strategies of nodes,
CreatePodWithPersistentVolume).
"""

import copy
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeAlias

from podyard.bench.scheduler_perf.config import CreateNodes, CreatePods, text_of
from podyard.bench.scheduler_perf.templates import Template
from podyard.cli.errors import InputError
from podyard.objects import yaml_reader
from podyard.objects.api_types import definition_of
from podyard.objects.documents import is_mapping
from podyard.objects.faults import Faults
from podyard.objects.type_check import check_types
from podyard.objects.yaml_reader import YamlError

Document: TypeAlias = dict[str, Any]

SIZE: Final = {"pods": "110", "cpu": "4", "memory": "32Gi"}
AMOUNTS: Final = {"cpu": "100m", "memory": "500Mi"}
HOSTNAME: Final = "kubernetes.io/hostname"
STEP: Final = re.compile(r"\[(\d+)\]|([^.\[\]]+)")
MIGRATED: Final = "storage.alpha.kubernetes.io/migrated-plugins"


class Claimed(NamedTuple):
    """A claim and the volume that it names, both of one pod."""

    claim: Document
    volume: Document


class Files:
    """The files that ops name, relative to the one that has the cases; each is read once."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._read: dict[str, Template] = {}
        self._made: dict[str, Document] = {}
        self._typed: dict[tuple[str, str], Document] = {}

    def template(self, name: str) -> Template:
        """
        :raises InputError: it cannot be read, or has what is not understood
        """
        if name not in self._read:
            path = self._directory / name
            self._read[name] = Template(str(path), text_of(path))
        return self._read[name]

    def document(self, name: str, index: int = 0, count: int = 1) -> Document:
        """The object that a file describes: a copy.

        :raises InputError: it is no object
        """
        template = self.template(name)
        if template.varies:
            return _parsed(template, index, count)
        if name not in self._made:
            self._made[name] = _parsed(template, 0, 1)
        return copy.deepcopy(self._made[name])

    def typed(self, name: str, kind: str, index: int = 0, count: int = 1) -> Document:
        """The object of one of the kinds that the reference decodes into its own types: letters of fields'
        names may be large or small, and the kind need not be said.

        :raises InputError: it is of another kind
        """
        if self.template(name).varies:
            return _of_kind(self.document(name, index, count), kind, name)
        if (name, kind) not in self._typed:
            self._typed[name, kind] = _of_kind(self.document(name), kind, name)
        return copy.deepcopy(self._typed[name, kind])

    def typed_plain(self, name: str, kind: str) -> Document:
        """The same of a file that is taken as it is.

        :raises InputError: it has braces, or is no such object
        """
        self.plain(name)
        return self.typed(name, kind)

    def plain(self, name: str) -> Document:
        """The same of a file that is taken as it is: what stands in braces is not for this one.

        :raises InputError: it has braces, or is no object
        """
        template = self.template(name)
        if template.varies:
            raise InputError(f"{template.source}: nothing may stand in {{{{ }}}} in a file for this op")
        return self.document(name)


def _parsed(template: Template, index: int, count: int) -> Document:
    try:
        documents = [one for one in yaml_reader.read(template.render(index, count)) if one.content is not None]
    except YamlError as error:
        raise InputError(f"{template.source}: {error}") from error
    content: Any = documents[0].content if len(documents) == 1 else None
    if not is_mapping(content) or not is_mapping(content.get("metadata", {})):
        raise InputError(f"{template.source}: expected one YAML document with one object")
    found: Document = content
    found.setdefault("metadata", {})
    return found


def _of_kind(document: Document, kind: str, source: str) -> Document:
    said = (document.setdefault("apiVersion", "v1"), document.setdefault("kind", kind))
    if said != ("v1", kind):
        raise InputError(f"{source}: expected a {kind}, this is {said[0]} {said[1]}")
    while _respelt(document, kind):
        pass  # what is below a field is looked at once its name is right
    return document


def _respelt(document: Document, kind: str) -> bool:
    """Spell fields as they are spelt that differ in large and small letters; whether there was one.

    Source: sigs.k8s.io/yaml v1.6.0, UnmarshalStrict, decodes as encoding/json does."""
    found = False
    for unknown in check_types(Faults(), document, definition_of("v1", kind)):
        *above, name = STEP.findall(unknown.field)
        right = [one for one in unknown.known if one.lower() == name[1].lower()]
        if right:
            at: Any = document
            for number, word in above:
                at = at[int(number)] if number else at[word]
            at[right[0]] = at.pop(name[1])
            found = True
    return found


def namespace(name: str) -> Document:
    """A namespace with nothing but its name."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def base_node(prefix: str) -> Document:
    """The node that is created where no file says what it is like."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"generateName": prefix},
        "status": {
            "capacity": dict(SIZE),
            "allocatable": dict(SIZE),
            "phase": "Running",
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }


def base_pod() -> Document:
    """The pod that is created where no file says what it is like."""
    container = {
        "name": "pause",
        "image": "registry.k8s.io/pause:3.10.2",
        "ports": [{"containerPort": 80}],
        "resources": {"limits": dict(AMOUNTS), "requests": dict(AMOUNTS)},
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"generateName": "pod-"},
        "spec": {"containers": [container]},
    }


def nodes(op: CreateNodes, files: Files, number: int, unique: str, node_id: str) -> Iterator[Document]:
    """The nodes of an op, each followed by its CSINode if the op says what drivers take.

    :param number: of the op: it is in the names of nodes that no file describes
    :param unique: stands for a value that no other node's label has
    :param node_id: stands for the node's name
    """
    for index in range(op.count):
        if op.node_template_path is None:
            node = base_node(f"node-{number}-")
        else:
            node = files.typed(op.node_template_path, "Node", index, op.count)
        node["metadata"].setdefault("labels", {})[HOSTNAME] = node_id
        yield from _prepared(node, op, index, unique, node_id)


def _prepared(node: Document, op: CreateNodes, index: int, unique: str, node_id: str) -> Iterator[Document]:
    labels: dict[str, str] = node["metadata"].setdefault("labels", {})
    if op.node_allocatable_strategy is not None:
        strategy = op.node_allocatable_strategy
        status = node.setdefault("status", {})
        allocatable = status.setdefault("allocatable", dict(status.get("capacity", {})))
        allocatable.update(strategy.node_allocatable)
        yield node
        drivers = [
            {"name": driver, "nodeID": node_id, "allocatable": {} if one.count is None else {"count": one.count}}
            for driver, one in strategy.csi_node_allocatable.items()
        ]
        yield {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"annotations": {MIGRATED: ",".join(strategy.migrated_plugins)}},
            "spec": {"drivers": drivers},
        }
        return
    if op.label_node_prepare_strategy is not None:
        values = op.label_node_prepare_strategy.label_values
        if not values:
            raise InputError(f"labelNodePrepareStrategy of {op.label_node_prepare_strategy.label_key} has no values")
        labels[op.label_node_prepare_strategy.label_key] = values[index % len(values)]
    elif op.unique_node_label_strategy is not None:
        labels[op.unique_node_label_strategy.label_key] = unique
    yield node


def pod(op: CreatePods, files: Files, default: str | None, index: int) -> Document:
    """The pod with this number of an op.

    :param default: the file that describes pods of which the op does not say it
    """
    name = op.pod_template_path or default
    if name is None:
        return base_pod()
    return files.typed(name, "Pod", index, op.count)


def claimed(op: CreatePods, files: Files, namespace: str, index: int | str, pod: Document) -> Claimed | None:
    """Volume and claim for a pod, which gets them; None: the op has none.

    :param index: of the pod in the op, or what stands for it
    """
    if op.persistent_volume_template_path is None or op.persistent_volume_claim_template_path is None:
        return None
    claim_name = f"pvc-{index}"
    claim = files.typed_plain(op.persistent_volume_claim_template_path, "PersistentVolumeClaim")
    volume = files.typed_plain(op.persistent_volume_template_path, "PersistentVolume")
    volume_name = f"{namespace}-vol-{index}"
    volume["metadata"]["name"] = volume_name
    spec = volume.setdefault("spec", {})
    if "csi" in spec:
        spec["csi"]["volumeHandle"] = volume_name
    elif "awsElasticBlockStore" in spec:
        spec["awsElasticBlockStore"]["volumeID"] = f"vol-{index}"
    spec["claimRef"] = {
        "kind": "PersistentVolumeClaim",
        "namespace": namespace,
        "name": claim_name,
        "apiVersion": "v1",
    }
    claim["metadata"].update(name=claim_name, namespace=namespace)
    claim.setdefault("spec", {})["volumeName"] = volume_name
    pod["spec"]["volumes"] = [{"name": "vol", "persistentVolumeClaim": {"claimName": claim_name}}]
    return Claimed(claim, volume)
