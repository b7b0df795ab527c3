"""Pods made from a template, and the name of a template.

Source: pkg/controller/controller_utils.go (GetPodFromTemplate, ComputeHash), apimachinery/pkg/util/rand
(SafeEncodeString).
"""

import copy
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final, NamedTuple

import msgspec

from podyard.cluster.keys import ObjectKey
from podyard.objects import admission
from podyard.objects.admission import ClusterLookup
from podyard.proto import subjects
from podyard.workloads.core.actions import Create, Document, Lost

POD_TEMPLATE_HASH: Final = "pod-template-hash"
LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
"""Of generated names: no vowels, so that no words come about, nothing that looks like another letter."""

STEP_BYTES: Final = 16 * 1024 * 1024
"""Of the pods that one step makes: 500 of 32 KiB, 10 of the largest."""

SUFFIX_LENGTH: Final = 5
LONGEST_BASE: Final = 58
_FNV_OFFSET: Final = 0x811C9DC5
_FNV_PRIME: Final = 0x01000193


class Maker(NamedTuple):
    """What making objects needs from outside."""

    lookup: ClusterLookup
    new_uid: Callable[[], str]
    random: Random

    def admit(self, document: Document, now: float) -> Document:
        """The document as it is stored.

        :raises AdmissionError: what the API server would refuse
        """
        return admission.admit(document, self.lookup, old=None, now=now, new_uid=self.new_uid, random=self.random)


def _as_it_is(pod: Document, number: int) -> Document:
    del number
    return pod


def pods_of(
    owner: Document,
    template: Document,
    count: int,
    maker: Maker,
    now: float,
    lost: Sequence[Lost] = (),
    *,
    adjusted: Callable[[Document, int], Document] = _as_it_is,
) -> list[Create]:
    """`count` new pods, or as many of very large ones as `STEP_BYTES` hold; the first of them replace
    one of `lost` each.

    All are alike but for name and uid, so admission is asked once.

    :param owner: apiVersion, kind and metadata of the controller
    :param adjusted: what becomes of each pod by its number from 0 on: a copy, which must be as valid
    :raises AdmissionError: if the template makes no valid pod
    """
    if count <= 0:
        return []
    admitted = maker.admit(_pod_document(owner, template), now)
    count = min(count, max(1, STEP_BYTES // len(msgspec.json.encode(admitted))))
    base = _base(owner["metadata"]["name"])
    namespace = admitted["metadata"]["namespace"]
    taken: set[str] = set()
    found: list[Create] = []
    for number in range(count):
        name = admitted["metadata"]["name"] if number == 0 else ""
        while not name or name in taken:
            name = _free_name(base, namespace, maker)
        taken.add(name)
        uid = maker.new_uid() if number else admitted["metadata"]["uid"]
        document = adjusted(_renamed(admitted, name, uid), number)
        found.append(
            Create(ObjectKey(subjects.PODS, namespace, name), document, lost[number] if number < len(lost) else None)
        )
    return found


def named_pod(
    owner: Document, template: Document, name: str, maker: Maker, now: float, lost: Sequence[Lost] = ()
) -> Create:
    """A new pod of that name.

    :raises AdmissionError: if the template makes no valid pod
    """
    document = _pod_document(owner, template)
    del document["metadata"]["generateName"]
    document["metadata"]["name"] = name
    admitted = maker.admit(document, now)
    return Create(
        ObjectKey(subjects.PODS, admitted["metadata"]["namespace"], name), admitted, lost[0] if lost else None
    )


def controller_reference(owner: Document) -> Document:
    """The reference by which an owner manages an object."""
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"],
        "controller": True,
        "blockOwnerDeletion": True,
    }


def template_hash(template: Document, collisions: int) -> str:
    """Short name of a template; another one after each collision. Equal templates have equal names in this
    project.

    The reference hashes Go's print of the struct, which nobody else can make: names differ from those of a
    Kubernetes cluster.
    """
    payload = msgspec.json.encode(template, order="deterministic")
    if collisions:
        payload += str(collisions).encode()
    value = _FNV_OFFSET
    for byte in payload:
        value = ((value ^ byte) * _FNV_PRIME) & 0xFFFFFFFF
    return "".join(LETTERS[int(digit) % len(LETTERS)] for digit in (ord(char) for char in str(value)))


def same_template(one: Document, other: Document) -> bool:
    """Whether two templates differ at most in the hash label. Source: deployment_util.go, EqualIgnoreHash."""
    return _without_hash(one) == _without_hash(other)


def _without_hash(template: Document) -> Document:
    metadata: Document = dict(template.get("metadata") or {})
    given: dict[str, str] = metadata.get("labels") or {}
    labels = {key: value for key, value in given.items() if key != POD_TEMPLATE_HASH}
    metadata.pop("creationTimestamp", None)
    metadata["labels"] = labels
    return {**template, "metadata": {key: value for key, value in metadata.items() if value}}


def _pod_document(owner: Document, template: Document) -> Document:
    given: dict[str, Any] = template.get("metadata") or {}
    spec: Document = template.get("spec") or {}
    metadata = {key: copy.deepcopy(given[key]) for key in ("labels", "annotations", "finalizers") if given.get(key)}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            **metadata,
            "generateName": owner["metadata"]["name"] + "-",
            "namespace": owner["metadata"].get("namespace", "default"),
            "ownerReferences": [controller_reference(owner)],
        },
        "spec": copy.deepcopy(spec),
    }


def _base(owner: str) -> str:
    return f"{owner}-"[:LONGEST_BASE]


def _free_name(base: str, namespace: str, maker: Maker) -> str:
    """A name that no known pod has; whoever takes it first wins, the create is a compare-and-set."""
    while True:
        name = base + "".join(maker.random.choices(LETTERS, k=SUFFIX_LENGTH))
        if maker.lookup.get(subjects.PODS, namespace, name) is None:
            return name


def _renamed(admitted: Document, name: str, uid: str) -> Document:
    """The same pod under another name. What is not changed is shared: documents are only encoded from here
    on."""
    return {**admitted, "metadata": {**admitted["metadata"], "name": name, "uid": uid}}
