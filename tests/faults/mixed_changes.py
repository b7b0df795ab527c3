"""Pods and custom objects that are made, changed, bound, told about and deleted, as fast as is asked for,
past the api; and what was stored of them, by the server's acknowledgements."""

import itertools
import time
from collections.abc import Iterator
from random import Random
from typing import Any, Final, NamedTuple

import anyio

from podyard.bench import agent, cluster
from podyard.bench.versions import AUTHOR, version
from podyard.bus import Ack, Bus, Outgoing
from podyard.cluster import intents
from podyard.cluster.intents import Remove, Stored
from podyard.objects import extensions
from podyard.proto import codec, subjects
from podyard.proto.facts import PodStatusFact
from podyard.shell import writes

EVERY_S: Final = 0.02
RETRY_S: Final = 0.05
NAMES: Final = 80
"""In each namespace: a name is taken again soon."""
NAMESPACES: Final = ("default", "web", "jobs")
APPS: Final = ("blue", "green", "red")
NODES: Final = 5
WIDGETS: Final = "widgets.v1.example.com"
PODS: Final = subjects.PODS
DEFINITION: Final[dict[str, Any]] = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "widgets.example.com", "uid": "uid-widgets", "creationTimestamp": "2026-01-01T00:00:00Z"},
    "spec": {
        "group": "example.com",
        "scope": "Namespaced",
        "names": {"kind": "Widget", "plural": "widgets"},
        "versions": [
            {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
        ],
    },
}


class Change(NamedTuple):
    """A message that changed an object."""

    sequence: int
    resource: str
    namespace: str
    name: str
    app: str
    """The label that the object has since; empty: it has gone."""


class _Living:
    """An object that is there."""

    def __init__(self, uid: str, app: str) -> None:
        self.uid = uid
        self.app = app
        self.node = ""
        self.document: dict[str, Any] = {}


class _Made(NamedTuple):
    """A message about an object, and what is true once it is stored."""

    message: Outgoing
    resource: str
    namespace: str
    name: str
    living: _Living | None


class Changes:
    """What is written, and what was."""

    def __init__(self, bus: Bus, random: Random, rate: int) -> None:
        """:param rate: changes a second"""
        self.stored: list[Change] = []
        """In the order of acknowledgements."""
        self.repeated: set[str] = set()
        """`resource namespace/name` of which a message was not acknowledged, and sent again: it may be stored
        twice."""
        self._bus = bus
        self._random = random
        self._rate = rate
        self._living: dict[tuple[str, str, str], _Living] = {}
        self._number = itertools.count(1)

    @property
    def last(self) -> int:
        """The highest sequence that was acknowledged."""
        return self.stored[-1].sequence if self.stored else 0

    def document(self, resource: str, namespace: str, name: str) -> dict[str, Any] | None:
        """An object as it was stored last; None: it is not there."""
        found = self._living.get((resource, namespace, name))
        return None if found is None else found.document

    def node(self, namespace: str, name: str) -> str:
        """Where a pod is bound to; empty: nowhere."""
        return self._living[PODS, namespace, name].node

    def keys(self, resource: str) -> Iterator[tuple[str, str]]:
        """Namespace and name of the objects that are there."""
        return ((namespace, name) for kind, namespace, name in self._living if kind == resource)

    async def prepare(self) -> None:
        """Nodes, and the definition of the custom kind."""
        made = [version(subjects.NODES, cluster.node(number)) for number in range(NODES)]
        made.append(version(extensions.DEFINITIONS, DEFINITION))
        for answer in await self._bus.publish_many(made):
            assert isinstance(answer, Ack), answer

    async def run(self) -> None:
        """Write for ever; cancel to end it."""
        began, done = time.monotonic(), 0
        while True:
            passed = time.monotonic() - began
            due = int(passed * self._rate) - done
            if due > self._rate:  # the server was away: what was not written then is not made up for
                done += due - self._rate
                due = self._rate
            for start in range(0, due, NODES * 4):
                await self._store(self._batch(min(NODES * 4, due - start)))
            done += due
            await anyio.sleep(EVERY_S)

    def _batch(self, count: int) -> list[_Made]:
        """Changes of as many objects."""
        found: dict[tuple[str, str, str], _Made] = {}
        while len(found) < count:
            one = self._one()
            found.setdefault((one.resource, one.namespace, one.name), one)
        return list(found.values())

    async def _store(self, wanted: list[_Made]) -> None:
        with anyio.CancelScope(shield=True):  # what was sent is known
            while wanted:
                answers = await self._bus.publish_many([one.message for one in wanted])
                left: list[_Made] = []
                for one, answer in zip(wanted, answers, strict=True):
                    if isinstance(answer, Ack):
                        self._note(one, answer.sequence)
                    else:
                        self.repeated.add(f"{one.resource} {one.namespace}/{one.name}")
                        left.append(one)
                wanted = left
                if wanted:
                    await anyio.sleep(RETRY_S)

    def _note(self, one: _Made, sequence: int) -> None:
        key = one.resource, one.namespace, one.name
        if one.living is None:
            self._living.pop(key)
        else:
            self._living[key] = one.living
        app = "" if one.living is None else one.living.app
        self.stored.append(Change(sequence, *key, app))

    def _one(self) -> _Made:
        random = self._random
        resource = PODS if random.random() < 0.8 else WIDGETS
        key = resource, random.choice(NAMESPACES), f"o{random.randrange(NAMES)}"
        there = self._living.get(key)
        if there is None:
            return self._put(key, _Living(f"uid-{next(self._number)}", random.choice(APPS)))
        kind = random.random()
        if kind < 0.12:
            return self._deletion(key, there)
        if resource == PODS and kind < 0.5:
            return self._status(key, there) if there.node else self._binding(key, there)
        changed = _Living(there.uid, random.choice(APPS) if random.random() < 0.3 else there.app)
        changed.node = there.node
        return self._put(key, changed)

    def _put(self, key: tuple[str, str, str], living: _Living) -> _Made:
        resource, namespace, name = key
        about = {"name": name, "namespace": namespace, "uid": living.uid, "labels": {"app": living.app}}
        about["annotations"] = {"n": str(next(self._number))}
        if resource == PODS:
            document = {**cluster.pod("plain", name, living.app, 100), "metadata": about}
        else:
            document = {"apiVersion": "example.com/v1", "kind": "Widget", "metadata": about}
        living.document = document
        return _Made(version(resource, document).but(expect=None), *key, living)

    def _deletion(self, key: tuple[str, str, str], there: _Living) -> _Made:
        resource, namespace, name = key
        of = intents.ObjectKey(resource, namespace, name)
        before = Stored(0, version(resource, there.document).payload, False)
        return _Made(writes.message_of(of, Remove(), before, AUTHOR).but(expect=None), *key, None)

    def _binding(self, key: tuple[str, str, str], there: _Living) -> _Made:
        node = cluster.node_name(self._random.randrange(NODES))
        bound = _Living(there.uid, there.app)
        bound.node, bound.document = node, there.document
        return _Made(agent.binding(there.document, node).but(expect=None), *key, bound)

    def _status(self, key: tuple[str, str, str], there: _Living) -> _Made:
        _, namespace, name = key
        fact = PodStatusFact(
            namespace=namespace, name=name, uid=there.uid, node=there.node, phase="Running",
            message=str(next(self._number)),
        )  # fmt: skip
        subject = subjects.pod_status(there.node, namespace, name, there.uid)
        return _Made(Outgoing(subject, codec.encode(fact)), *key, there)
