"""Admitted objects as messages. Objects that differ in name and uid alone are admitted once."""

import uuid
from collections.abc import Callable
from random import Random
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

from podyard.bench.versions import AUTHOR
from podyard.bus import Outgoing
from podyard.cli.errors import InputError
from podyard.cluster import intents
from podyard.cluster.intents import Put
from podyard.cluster.keys import ObjectKey
from podyard.objects import admission
from podyard.objects.admission import ClusterLookup
from podyard.objects.documents import child, copy, mapping
from podyard.objects.errors import ObjectError
from podyard.proto import codec, subjects

Document: TypeAlias = dict[str, Any]

NAME: Final = "podyard-bench-name-of-this-object"
UID: Final = "podyard-bench-uid-of-this-object"
INDEX: Final = "podyard-bench-index-of-this-object"
"""Stand for what is filled in."""
LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
SUFFIX: Final = 5


class Mould(NamedTuple):
    """A message for any number of objects."""

    resource: str
    namespace: str
    payload: bytes
    document: Document

    def cast(self, name: str, uid: str, index: int = 0) -> Outgoing:
        """The message that creates one of them."""
        payload = self.payload.replace(NAME.encode(), name.encode()).replace(UID.encode(), uid.encode())
        if INDEX.encode() in payload:
            payload = payload.replace(INDEX.encode(), str(index).encode())
        return Outgoing(subjects.object_(self.resource, self.namespace, name), payload, expect=0)


class Names:
    """Ends of names, none of them twice."""

    def __init__(self) -> None:
        self._next = 0

    def after(self, begins: str) -> str:
        """The next name that begins so."""
        number, self._next = self._next, self._next + 1
        end = ""
        for _ in range(SUFFIX):
            number, letter = divmod(number, len(LETTERS))
            end += LETTERS[letter]
        return begins + end


def new_uid() -> str:
    """A uid that was never used before."""
    return str(uuid.uuid4())


class Admitter:
    """Admission as the API server of the reference's benchmark has it: its Priority plugin is off, so that a
    pod has the priority that it says.

    Source: kubernetes v1.36.2, test/integration/scheduler_perf/util.go, mustSetupCluster.
    """

    def __init__(self, cluster: ClusterLookup, now: Callable[[], float]) -> None:
        self._cluster = cluster
        self._now = now
        self._random = Random(0)

    def mould(self, document: Document) -> Mould:
        """A mould for objects like this one; its own name is put aside.

        :raises InputError: the API server would refuse it
        """
        said: str = document["metadata"].get("name", "")
        document["metadata"]["name"] = NAME
        admitted = self._admitted(document, None, UID, said)
        return _mould(admitted)

    def changed(self, document: Document, old: Document) -> Document:
        """What an update of an object and one of its status make of the stored one.

        :raises InputError: the API server would refuse it
        """
        name: str = old["metadata"]["name"]
        document["metadata"].pop("uid", None)
        replaced = self._admitted(document, old, "", name, "replace")
        return self._admitted(document, replaced, "", name, "status") if "status" in document else replaced

    def _admitted(
        self, document: Document, old: Document | None, uid: str, name: str, manner: admission.Manner = "apply"
    ) -> Document:
        spec = mapping(document, "spec") if document.get("kind") == "Pod" else {}
        priority: int | None = spec.pop("priority", None)
        try:
            if old is not None and priority is None and document.get("kind") == "Pod":
                priority = child(old, "spec").get("priority")
            admitted = admission.admit(
                document if priority is None or old is None else _with_priority(document, priority),
                self._cluster,
                old=old,
                now=self._now(),
                new_uid=lambda: uid,
                random=self._random,
                validation="strict",
                manner=manner,
            )
        except ObjectError as error:
            said = name or document["metadata"].get("generateName", "")
            raise InputError(f"{document.get('kind')} {said}: {str(error).replace(NAME, said)}") from error
        finally:
            if priority is not None:
                spec["priority"] = priority
        if priority is not None:
            child(admitted, "spec")["priority"] = priority
        return admitted


def as_sent(document: Document) -> bytes:
    """The payload of a mould for an object as a client sends it, its name put aside."""
    metadata = {**document["metadata"], "name": NAME}
    metadata.pop("generateName", None)
    return msgspec.json.encode({**with_class(document), "metadata": metadata})


def with_class(document: Document) -> Document:
    """A pod that says a priority, with the class of that number instead: the api has the admission plugin
    Priority, which takes no other."""
    priority = mapping(document, "spec").get("priority") if document.get("kind") == "Pod" else None
    if priority is None:
        return document
    spec = {name: value for name, value in document["spec"].items() if name != "priority"}
    return {**document, "spec": spec | {"priorityClassName": class_name(priority)}}


def class_name(priority: int) -> str:
    """Of the priority class that stands for a number."""
    return f"podyard-bench-{'minus-' if priority < 0 else ''}{abs(priority)}"


def priority_class(priority: int) -> Document:
    """That class."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": class_name(priority)},
        "value": priority,
    }


def resized(old: Document, wanted: Document) -> Document:
    """A pod with the requests and limits that another version of it has.

    Source: kubernetes v1.36.2, pkg/registry/core/pod/strategy.go, dropNonResizeUpdates.
    """
    found = copy(old)
    for field in ("containers", "initContainers"):
        resources = {one.get("name"): one.get("resources") for one in child(wanted, "spec").get(field) or ()}
        for container in child(found, "spec").get(field) or ():
            if resources.get(container["name"]) is not None:
                container["resources"] = resources[container["name"]]
    return found


def _with_priority(document: Document, priority: int) -> Document:
    return {**document, "spec": {**child(document, "spec"), "priority": priority}}


def _mould(admitted: Document) -> Mould:
    kind = admission.kind_of(admitted)
    metadata = admitted["metadata"]
    key = ObjectKey(kind.resource, metadata.get("namespace") or "", metadata["name"])
    event = intents.event_of(key, Put(admitted, ("Add",)), None, AUTHOR)
    return Mould(key.resource, key.namespace, codec.encode(event), admitted)
