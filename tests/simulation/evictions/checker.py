"""Judges what is stored of evictions, at every prefix of CLUSTER. It shares no code with what evicts.

When a pod begins to go by an eviction:

- no more than one budget selects it, if it was ready
- if it was ready when its budget was counted, as many pods stay ready as the budget wants: ready by their
  agent's word, and not on their way out
- whatever it is charged to allowed one, and allows one less

And always:

- a budget is charged with the eviction of a pod, in one batch, once a pod
- a cycle of the descheduler evicts no more than its limit
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import msgspec

from podyard.bus import _heads
from podyard.proto import codec, headers, subjects
from podyard.proto.events import ClusterEvent
from podyard.proto.facts import PodStatusFact
from tests.memory_nats.stream import Stored

BUDGETS = "poddisruptionbudgets"
EVICTED = "EvictionByEvictionAPI"
Document = dict[str, Any]


class Read:
    """One stored message, read."""

    def __init__(self, message: Stored) -> None:
        self.message = message
        self.resource = self.who = self.why = self.trace = ""
        self.document: Document | None = None
        self.status: PodStatusFact | None = None
        lines = _heads.parse(message.head) if message.head else {}
        self.deleted = lines.get(headers.OPERATION) == headers.DELETED
        parts = message.subject.split(".")
        if parts[:2] == ["cluster", "podstatus"]:
            self.status = codec.decode(PodStatusFact, message.payload)
        elif parts[0] == "cluster" and len(parts) == 4:
            event = codec.decode(ClusterEvent, message.payload)
            self.resource, self.who, self.why = subjects.decode(parts[1]), event.who, event.why
            self.document = msgspec.json.decode(bytes(event.object))
            self.trace = lines.get(headers.TRACEPARENT, "")


class EvictionChecker:
    """`violations` holds sentences; empty is good."""

    def __init__(self, limit: int) -> None:
        """:param limit: evictions of one cycle of the descheduler"""
        self.violations: list[str] = []
        self.by_who: Counter[str] = Counter()
        self.charged = 0
        self._limit = limit
        self._pods: dict[str, Document] = {}
        """Those that are there, by uid."""
        self._ready_since: dict[str, int] = {}
        """By uid: sequence from which on its agent says so."""
        self._budgets: dict[str, tuple[Document, int]] = {}
        """By name, with the version's sequence."""
        self._of_cycle: Counter[str] = Counter()
        self._charged: set[str] = set()

    def stored(self, batch: Sequence[Read]) -> None:
        """What was stored at once."""
        evicted = [one for one in batch if self._is_eviction(one)]
        charges = [one for one in batch if one.resource == BUDGETS and self._is_charge(one)]
        for one in evicted:
            self._evicted(one, charges, [other for other in batch if other.resource == BUDGETS])
        names = {one.document["metadata"]["name"] for one in evicted if one.document is not None}
        for one in charges:
            self._judge_charge(one, names)
        for one in batch:
            self._note(one)

    def _note(self, read: Read) -> None:
        if read.status is not None:
            ready = any(one.type == "Ready" and one.status == "True" for one in read.status.conditions)
            if not ready:
                self._ready_since.pop(read.status.uid, None)
            else:
                self._ready_since.setdefault(read.status.uid, read.message.sequence)
        elif read.document is not None and read.resource == "pods":
            uid = read.document["metadata"]["uid"]
            if read.deleted:
                self._pods.pop(uid, None)
            else:
                self._pods[uid] = read.document
        elif read.document is not None and read.resource == BUDGETS:
            self._budgets[read.document["metadata"]["name"]] = read.document, read.message.sequence

    def _is_eviction(self, read: Read) -> bool:
        """Whether a pod begins to go here, by the eviction API."""
        if read.resource != "pods" or read.document is None:
            return False
        uid = read.document["metadata"]["uid"]
        before = self._pods.get(uid)
        if before is None or "deletionTimestamp" in before["metadata"]:
            return False
        if read.deleted:
            return read.who in ("person", "descheduler")
        return any(one.get("reason") == EVICTED for one in read.document.get("status", {}).get("conditions", []))

    def _is_charge(self, read: Read) -> bool:
        return read.why.startswith("eviction of ") and self._allowed(read.document) != self._allowed(
            self._budgets[subjects.decode(read.message.subject.split(".")[3])][0]
        )

    def _evicted(self, read: Read, charges: list[Read], held: list[Read]) -> None:
        assert read.document is not None
        uid, name = read.document["metadata"]["uid"], read.document["metadata"]["name"]
        where = f"@{read.message.sequence}: {name} is evicted by {read.who}"
        self.by_who[read.who] += 1
        if read.who == "descheduler":
            trace = read.trace.split("-")[1] if read.trace else ""
            self._of_cycle[trace] += 1
            if self._of_cycle[trace] > self._limit:
                self._wrong(f"{where}, the {self._of_cycle[trace]}th of its cycle: over its limit")
        mine = {key: one for key, one in self._budgets.items() if self._selects(one[0], read.document)}
        since = self._ready_since.get(uid)
        if since is None or not mine:
            return
        if len(mine) > 1 and len(held) < len(mine):
            self._wrong(f"{where}, which has the budgets {sorted(mine)}")
            return
        for key, (budget, version) in mine.items():
            is_held = any(one.message.subject.endswith(f".{key}") for one in held)
            if is_held and since > version:
                continue  # not counted as healthy when its budget was counted
            left = sum(
                1
                for other, pod in self._pods.items()
                if other != uid
                and other in self._ready_since
                and "deletionTimestamp" not in pod["metadata"]
                and self._selects(budget, pod)
            )
            if left < budget["spec"]["minAvailable"]:
                how = "charged" if charges else "not charged"
                self._wrong(f"{where}, {how}: {left} ready pods are left, the budget {key} wants more")

    def _judge_charge(self, read: Read, names: set[str]) -> None:
        assert read.document is not None
        key = read.document["metadata"]["name"]
        before = self._budgets[key][0]
        pod = read.why.removeprefix("eviction of ")
        self.charged += 1
        if pod not in names:
            self._wrong(f"@{read.message.sequence}: {key} is charged for {pod}, which does not go")
        if pod in self._charged:
            self._wrong(f"@{read.message.sequence}: {key} is charged twice for {pod}")
        self._charged.add(pod)
        if self._allowed(before) < 1 or self._allowed(read.document) != self._allowed(before) - 1:
            allowed = f"{self._allowed(before)}, then {self._allowed(read.document)}"
            self._wrong(f"@{read.message.sequence}: {key} is charged for {pod} and allows {allowed}")

    @staticmethod
    def _allowed(budget: Document | None) -> int:
        return (budget or {}).get("status", {}).get("disruptionsAllowed", 0)

    @staticmethod
    def _selects(budget: Document, pod: Document) -> bool:
        return budget["spec"]["selector"]["matchLabels"].items() <= pod["metadata"].get("labels", {}).items()

    def _wrong(self, text: str) -> None:
        self.violations.append(text)
