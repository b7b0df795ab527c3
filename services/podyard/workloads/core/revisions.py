"""Revisions of a DaemonSet or StatefulSet: a stored object for each template that it has, or had.

A template that comes back makes its revision the newest, instead of a new one.

Source: kubernetes v1.36.2, pkg/controller/daemon/update.go (constructHistory, snapshot, cleanupHistory),
pkg/controller/statefulset/stateful_set_control.go (getStatefulSetRevisions, truncateHistory),
pkg/controller/history/controller_history.go. Names differ from those of a Kubernetes cluster (see
`templates.template_hash`).
"""

from collections.abc import Container, Sequence
from typing import Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.objects.apps import ControllerRevision
from podyard.objects.documents import mapping
from podyard.workloads.core import documents, templates
from podyard.workloads.core.actions import Alter, Create, Delete, Document, Write
from podyard.workloads.core.looking import Surroundings
from podyard.workloads.core.templates import Maker

REVISIONS: Final = "controllerrevisions"
POD_LABEL: Final = "controller-revision-hash"
"""On pods: a DaemonSet's hash, the whole name of a StatefulSet's revision."""
DEFAULT_LIMIT: Final = 10
LONGEST_PREFIX: Final = 223
"""Characters of the owner's name in a revision's. Source: ControllerRevisionName."""


class Revision(NamedTuple):
    """One of them, stored or about to be."""

    name: str
    number: int
    hash: str
    template: Document
    uid: str

    @property
    def key(self) -> tuple[int, str]:
        """By which they are ordered, oldest first."""
        return self.number, self.name


class History(NamedTuple):
    """All revisions of an owner, as they will be once `writes` are written."""

    newest: Revision
    """That of the owner's template."""
    old: Sequence[Revision]
    """Oldest first."""
    writes: Sequence[Write]
    collisions: int
    """How often a name was taken by another template."""

    def named(self, name: str) -> Revision | None:
        """The revision of that name."""
        return next((one for one in (self.newest, *self.old) if one.name == name), None)


def history(around: Surroundings, owner: Document, hash_label: str, collisions: int, now: float) -> History:
    """The revisions of an owner; that of its template is made, or made the newest, if it is not.

    :param owner: the DaemonSet or StatefulSet as it is stored
    :param hash_label: the label of a revision that bears its hash
    :param collisions: how often a name was taken before
    :raises AdmissionError: if the template makes no valid revision
    """
    known = sorted(_known(around, owner["metadata"]["uid"], hash_label), key=lambda one: one.key)
    template = owner["spec"]["template"]
    same = [one for one in known if one.template == template]
    old = [one for one in known if one.template != template]
    number = max((one.number for one in old), default=0) + 1
    if not same:
        newest, made, collisions = _create(around.maker, owner, hash_label, number, collisions, now)
        return History(newest, old, [made], collisions)
    newest, twins = same[-1], same[:-1]
    writes: list[Write] = [_delete(owner, one) for one in twins]
    if newest.number < number:
        writes.append(_renumber(owner, newest, number))
        newest = newest._replace(number=number)
    return History(newest, old, writes, collisions)


def surplus(
    owner: Document, found: History, limit: int | None, live: Container[str], *, live_count: bool
) -> list[Delete]:
    """Revisions beyond the history limit that no pod has, oldest first.

    :param live: names and hashes that pods have, or that must stay
    :param live_count: whether those that stay count towards the limit
    """
    unused = [one for one in found.old if one.name not in live and one.hash not in live]
    counted = len(found.old) if live_count else len(unused)
    too_many = counted - (DEFAULT_LIMIT if limit is None else limit)
    return [_delete(owner, one) for one in unused[: max(0, too_many)]]


def _known(around: Surroundings, uid: str, hash_label: str) -> list[Revision]:
    found: list[Revision] = []
    typed: ControllerRevision
    for typed in around.ownership.controlled(uid, REVISIONS):
        metadata = typed.metadata
        document = around.document(ObjectKey(REVISIONS, metadata.namespace, metadata.name), metadata.uid)
        if document is None:
            continue
        given = {key: value for key, value in mapping(document, "data", "spec", "template").items() if key != "$patch"}
        hashed = metadata.labels.get(hash_label, metadata.name)
        found.append(Revision(metadata.name, typed.revision, hashed, given, metadata.uid))
    return found


def _create(
    maker: Maker, owner: Document, hash_label: str, number: int, collisions: int, now: float
) -> tuple[Revision, Create, int]:
    metadata, template = owner["metadata"], owner["spec"]["template"]
    prefix = metadata["name"][:LONGEST_PREFIX]
    hashed = templates.template_hash(template, collisions)
    while maker.lookup.get(REVISIONS, metadata["namespace"], f"{prefix}-{hashed}") is not None:
        collisions += 1
        hashed = templates.template_hash(template, collisions)
    labels = mapping(template, "metadata", "labels")
    document: Document = {
        "apiVersion": "apps/v1",
        "kind": "ControllerRevision",
        "metadata": {
            "name": f"{prefix}-{hashed}",
            "namespace": metadata["namespace"],
            "labels": {**labels, hash_label: hashed},
            "annotations": dict(mapping(metadata, "annotations")),
            "ownerReferences": [templates.controller_reference(owner)],
        },
        "data": {"spec": {"template": {**documents.copied(template), "$patch": "replace"}}},
        "revision": number,
    }
    admitted = maker.admit(document, now)
    made = admitted["metadata"]
    created = Create(ObjectKey(REVISIONS, made["namespace"], made["name"]), admitted)
    return Revision(made["name"], number, hashed, template, made["uid"]), created, collisions


def _key(owner: Document, revision: Revision) -> ObjectKey:
    return ObjectKey(REVISIONS, owner["metadata"]["namespace"], revision.name)


def _delete(owner: Document, revision: Revision) -> Delete:
    return Delete(_key(owner, revision), revision.uid)


def _renumber(owner: Document, revision: Revision, number: int) -> Alter:
    def alter(document: Document) -> Document:
        document["revision"] = number
        return document

    return Alter(_key(owner, revision), revision.uid, alter)
