"""The pods of files: those in them, and those that workloads in them would make. Pure.

A workload's pod is its template with what its controller adds that plugins read. What is known only once the
workload is stored, it lacks: the hash label of a Deployment's ReplicaSet, and that ReplicaSet.
"""

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final, NamedTuple, TypeAlias

from podyard.cli.errors import InputError
from podyard.objects import documents
from podyard.objects.manifests import Manifest
from podyard.workloads.core import daemon_sets

Document: TypeAlias = dict[str, Any]

TEMPLATES: Final[Mapping[str, tuple[str, ...]]] = {
    "Deployment": ("spec", "template"),
    "ReplicaSet": ("spec", "template"),
    "ReplicationController": ("spec", "template"),
    "StatefulSet": ("spec", "template"),
    "DaemonSet": ("spec", "template"),
    "Job": ("spec", "template"),
    "CronJob": ("spec", "jobTemplate", "spec", "template"),
}
"""Where a workload has its pod's template."""
_OWNERS: Final = frozenset(("ReplicaSet", "ReplicationController", "StatefulSet"))
"""Who owns pods itself, so that plugins find its selector by its name."""
_NO_UID: Final = "00000000-0000-0000-0000-000000000000"
"""Of an owner that is not stored; nobody looks owners up by it here."""


class Candidate(NamedTuple):
    """A pod that could be made."""

    about: str
    """Kind and name in the file."""
    document: Document
    notes: tuple[str, ...] = ()
    """What people should know of how it came about, a sentence each."""


class Claim(NamedTuple):
    """A claim that a StatefulSet would make for its first pod."""

    namespace: str
    name: str


def about(manifest: Manifest) -> str:
    """How people are told of an object of a file."""
    generated: str = documents.mapping(manifest.document, "metadata").get("generateName", "")
    return f"{manifest.kind.kind} {manifest.name or generated}"


def claims(manifests: Collection[Manifest]) -> list[Claim]:
    """Those of the first pods of StatefulSets."""
    return [
        Claim(manifest.namespace, name)
        for manifest in manifests
        if manifest.kind.kind == "StatefulSet"
        for _, name in _claims(manifest.document)
    ]


def of(manifest: Manifest, taken: Collection[tuple[str, str]], stored: Collection[Claim]) -> Candidate | None:
    """The pod of one object of a file; None: it has none.

    :param taken: namespaces and names of pods that are there
    :param stored: claims that are there
    :raises InputError: a workload without a template
    """
    kind = manifest.kind.kind
    if kind == "Pod":
        return _pod(manifest, taken)
    path = TEMPLATES.get(kind)
    if path is None or manifest.kind.custom:
        return None
    template = documents.copy(documents.mapping(manifest.document, *path))
    if not template:
        raise InputError(str(manifest.fault(".".join(path), "is missing: it has no template of pods")))
    notes: list[str] = []
    made = _from_template(manifest, template)
    if kind == "DaemonSet":
        notes.append("a DaemonSet puts one on each node that takes it")
    if kind == "StatefulSet":
        notes += _with_claims(manifest, made, stored)
    return Candidate(about(manifest), made, tuple(notes))


def _pod(manifest: Manifest, taken: Collection[tuple[str, str]]) -> Candidate:
    document = documents.copy(manifest.document)
    metadata: Document = document["metadata"]
    name = manifest.name
    if (manifest.namespace, name) not in taken:
        return Candidate(about(manifest), document)
    metadata["generateName"] = f"{metadata.pop('name')}-"
    note = f"there is a pod of this name already: this is about one more (`podyard explain pod {name} --nodes`)"
    return Candidate(about(manifest), document, (note,))


def _from_template(manifest: Manifest, template: Document) -> Document:
    kind = manifest.kind.kind
    if kind == "DaemonSet" and template.get("spec"):
        template = daemon_sets.pod_template(template, {})
    metadata = {key: one for key, one in documents.mapping(template, "metadata").items() if key in _TAKEN_OVER}
    metadata |= {"namespace": manifest.namespace, "generateName": f"{manifest.name}-"}
    if kind in _OWNERS:
        owner = {"apiVersion": manifest.document["apiVersion"], "kind": kind, "name": manifest.name, "uid": _NO_UID}
        metadata["ownerReferences"] = [owner | {"controller": True}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": template.get("spec")}


_TAKEN_OVER: Final = frozenset(("labels", "annotations", "finalizers"))
"""Of a template's metadata. Source: pkg/controller/controller_utils.go, GetPodFromTemplate."""


def _with_claims(manifest: Manifest, pod: Document, stored: Collection[Claim]) -> Iterator[str]:
    """Its volumes of claims: those that are not there yet are left empty, and told."""
    spec = pod["spec"]
    if not documents.is_mapping(spec):
        return
    volumes: list[Document] = []
    for template, name in _claims(manifest.document):
        if Claim(manifest.namespace, name) in stored:
            volumes.append({"name": template, "persistentVolumeClaim": {"claimName": name}})
        else:
            volumes.append({"name": template, "emptyDir": {}})
            yield f"judged without its claim {name}, which is made with the pod"
    mine = {volume["name"] for volume in volumes}
    if volumes:
        spec["volumes"] = [
            *volumes,
            *(one for one in documents.mappings(spec, "volumes") if one.get("name") not in mine),
        ]


def _claims(stateful_set: Document) -> list[tuple[str, str]]:
    """Of its first pod: names of templates, and of claims. Source: pkg/controller/statefulset, getClaims."""
    spec = documents.mapping(stateful_set, "spec")
    first: Any = documents.mapping(spec, "ordinals").get("start") or 0
    templates = [
        documents.mapping(one, "metadata").get("name") for one in documents.mappings(spec, "volumeClaimTemplates")
    ]
    pod = f"{documents.mapping(stateful_set, 'metadata').get('name')}-{first}"
    return [(name, f"{name}-{pod}") for name in templates if isinstance(name, str)]
