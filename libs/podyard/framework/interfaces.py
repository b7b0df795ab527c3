"""The extension points: one small Protocol each, saying when it runs and what each status does.

A plugin that raises, or answers what its extension point does not know, fails for that one pod, as ERROR
under its name: the pod is tried again after a backoff, and others go on (`answers`, `status.PluginError`).
Its faults are counted and logged by plugin and extension point.

A plugin is a class with a `name` and the methods of the points it takes part in. Filter and Score see all
nodes at once: `rows` are rows of the node table, the answer is an array aligned with it; `filter_one` and
`score_one` give the same answer for one row, cheaply, for the binder and for the few rows that changed since
an equal pod was judged. A plugin that prefers to look at one node at a time derives from
`one_at_a_time.FilterOneNode` or `ScoreOneNode`.

What is computed for one pod is shared with all pods of equal signature, and computed again only for changed
rows. So a plugin declares with `signature` all that it reads of the pod, and with `scope` whether its answer
for a row may depend on other rows.

Source: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/framework/interface.go.
"""

from __future__ import annotations

from collections.abc import Generator, Hashable, Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import msgspec
import numpy as np
from numpy.typing import NDArray

from podyard.cluster.keys import ObjectKey
from podyard.cluster.node_table import PlacedPod
from podyard.framework import status as statuses
from podyard.framework.cycle_state import CycleState
from podyard.framework.diagnosis import Diagnosis
from podyard.framework.pod_info import PodInfo
from podyard.framework.snapshot import Objects, Snapshot
from podyard.framework.status import Status
from podyard.objects.core import Pod
from podyard.proto.decisions import Victim

Rows: TypeAlias = NDArray[np.intp]
"""Rows of the node table, each once, in ascending order."""

Verdicts: TypeAlias = NDArray[np.int64]
"""Aligned with rows: 0 passes, another number is the plugin's own code for why not (`Filter.verdict` spells
it)."""

Scores: TypeAlias = NDArray[np.int64]
"""Aligned with rows."""

Scope: TypeAlias = Literal["node", "row", "cluster"]
"""`row`: the answer for a node depends on the pod's signature and on that row only. `node`: on the row's Node
alone, not on what is placed there, so the framework need not ask again for a row on which a pod was placed.
`cluster`: on other rows too (counts over a topology domain), so the framework asks again for all rows when
the plugin's token changes; without a token, after any change of the table."""


@runtime_checkable
class Plugin(Protocol):
    """What all plugins have."""

    name: ClassVar[str]
    """Unique in a registry; in records, messages and configuration."""


@runtime_checkable
class Signed(Plugin, Protocol):
    """Says which pods are alike to it. A plugin without it is taken to read everything: its pods share
    nothing."""

    def signature(self, pod: PodInfo) -> Hashable:
        """All that the plugin reads of a pod in PreFilter, Filter, PreScore and Score, as one hashable value.

        Source: framework.SignPlugin.
        """
        ...


@runtime_checkable
class ReadsTemplate(Signed, Protocol):
    """Its signature reads of a pod only namespace, labels, owner references, spec and status: it is not asked
    again for pods in which all of these are equal."""

    reads_template: ClassVar[bool]
    """True."""


@runtime_checkable
class SignsFewTemplates(Signed, Protocol):
    """What `ReadsTemplate` lists tells whether its signature of a pod is None. If that is None, the plugin is
    not asked again for pods in which all of the list is equal. For plugins that most templates do not
    concern."""

    signs_few_templates: ClassVar[bool]
    """True."""


class QueuedPod(Protocol):
    """A pod in activeQ, as QueueSort is shown it."""

    @property
    def pod(self) -> Pod: ...

    @property
    def priority(self) -> int: ...

    @property
    def queued_at(self) -> float:
        """When it entered the queue for this attempt, seconds since 1970, UTC."""
        ...


@runtime_checkable
class QueueSort(Plugin, Protocol):
    """Orders activeQ; every profile has exactly one, all profiles the same."""

    def sort_key(self, queued: QueuedPod) -> Any:
        """Pods with a smaller key are popped first. Must not change while the pod is in the queue."""
        ...


@runtime_checkable
class PreEnqueue(Plugin, Protocol):
    """Before a pod enters activeQ. Any answer but SUCCESS keeps it out, gated by this plugin, until an event
    it registered."""

    def pre_enqueue(self, pod: Pod) -> Status: ...


@runtime_checkable
class UsesObjects(Plugin, Protocol):
    """Reads other objects than the pod in PreEnqueue or in hints, where no snapshot is shown."""

    def use_objects(self, objects: Objects) -> None:
        """Called before the first pod comes: the live view, which an event has already changed when its hints
        are asked."""
        ...


class PreFilterResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of PreFilter."""

    status: Status = statuses.SUCCESS
    node_names: frozenset[str] | None = None
    """The only nodes that may take the pod, names of absent nodes possible; `None`: all nodes."""


@runtime_checkable
class PreFilter(Plugin, Protocol):
    """Before any node is looked at.

    SKIP: the plugin's Filter is not asked. UNSCHEDULABLE: no node takes the pod, the other PreFilters still
    run (preemption needs their state, docs/rules.md, prefilters-run-before-preemption). UNRESOLVABLE: the
    same, and no other PreFilter runs. ERROR ends the attempt.
    """

    def pre_filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> PreFilterResult: ...


@runtime_checkable
class FilterToken(Plugin, Protocol):
    """For a PreFilter or Filter that reads more than the pod's signature and the row: placed pods elsewhere,
    other objects."""

    def filter_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        """Equal as long as PreFilter would answer and write the same, and Filter say the same of unchanged
        rows.

        Asked in every cycle: a few version counters. If it differs, PreFilter runs again on the kept state,
        then Filter for all rows. `None`: for pods of this signature nothing but the signature and the row
        counts, now and always; the token is not asked for again. A plugin of scope `cluster` without this
        method is asked again after any change of the table.
        """
        ...


@runtime_checkable
class FilterTouched(FilterToken, Protocol):
    """Knows of which nodes a new token is about."""

    def filter_touched(self, state: CycleState, pod: PodInfo, cluster: Snapshot) -> Iterable[int] | None:
        """Asked when the token differs from that of the last PreFilter or `filter_touched`: the rows of which
        Filter may say something else since, while PreFilter would answer the same and what it wrote holds.
        `None`: it cannot tell.
        """
        ...


@runtime_checkable
class PreFilterExtensions(PreFilter, Protocol):
    """What a PreFilter state would be with a pod more or less on a node: for preemption and for nominated
    pods.

    `state` is a clone that only this trial uses. ERROR ends the trial.
    """

    def add_pod(self, state: CycleState, pod: PodInfo, added: PlacedPod, row: int, cluster: Snapshot) -> Status: ...

    def remove_pod(
        self, state: CycleState, pod: PodInfo, removed: PlacedPod, row: int, cluster: Snapshot
    ) -> Status: ...


@runtime_checkable
class Filter(Plugin, Protocol):
    """Which nodes can take the pod. Plugins are asked in order; a node that one rejected is not shown to the
    next."""

    scope: ClassVar[Scope]

    def filter(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Verdicts:
        """For each row: 0 if the node takes the pod, else a positive code."""
        ...

    def filter_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        """The same for one row."""
        ...

    def verdict(self, state: CycleState, code: int) -> Status:
        """What a code means: UNSCHEDULABLE, UNRESOLVABLE or ERROR with reasons."""
        ...


@runtime_checkable
class FilterPattern(Filter, Protocol):
    """For answers that come back, as those about zones that fill up in turn."""

    def filter_pattern(self, state: CycleState, cluster: Snapshot) -> Hashable:
        """As long as two patterns are equal, Filter says the same of the same rows, whatever is on them, and
        its codes mean the same."""
        ...


@runtime_checkable
class LooksAtRoom(Filter, Protocol):
    """For a Filter to which nothing of what is on a node counts but the room that it takes."""

    def room_wanted(self, state: CycleState) -> Sequence[tuple[str, int]]:
        """Resources with amounts above 0, cpu in milli-CPU. Filter takes a node exactly if that has as much
        of each left, and has fewer pods than it takes at most.

        Then preemption works out by sums whom a node would have to lose, where nothing else stands in the
        way: the plugin is not asked pod by pod.
        """
        ...


class Detail(NamedTuple):
    """What is in the way of a pod on one node, for people."""

    text: str
    """With numbers and names, without the node's own: `wants 10 cpu, free 7.5 of 8`."""
    row: int | None = None
    """Which of the nodes lacks least; `None`: the first by name."""
    lack: float = 1.0
    """How much is missing, to compare nodes by: of an amount the part of what the pod wants that is not
    there."""
    lacks: str = ""
    """Of an amount: how much more would have to be free there, `500m`."""


@runtime_checkable
class Detailed(Plugin, Protocol):
    """A PreFilter or Filter that says with numbers and names why it rejects."""

    def detail(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, reason: str) -> Detail | None:
        """Asked after an attempt that found no node, once for each of its reasons, and again only when the
        nodes have changed; decides nothing. It may look at all rows by arrays, one by one at a few
        (`details.MOST_LOOKED_AT`). `None`: the reason says it all.

        :param rows: nodes that it rejects for this reason, by name; none if its PreFilter rejects the pod
        """
        ...


class PostFilterResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of PostFilter. `nominated_node`: None leaves the pod's nomination as it is, empty ends it."""

    status: Status
    nominated_node: str | None = None
    victims: tuple[Victim, ...] = ()


@runtime_checkable
class PostFilter(Plugin, Protocol):
    """When no node takes the pod, e.g. preemption.

    SUCCESS: the pod may be schedulable soon (it is parked with its nomination), no further plugin is asked.
    UNSCHEDULABLE: nothing to be done; its message joins the attempt's. UNRESOLVABLE: the same, and no further
    plugin is asked. ERROR: its message is the only one that joins the attempt's, and no further plugin is
    asked.
    """

    def post_filter(
        self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis
    ) -> PostFilterResult: ...


class NodeVictims(msgspec.Struct, frozen=True, kw_only=True):
    """What preemption would do on one node."""

    pods: tuple[PlacedPod, ...]
    """Who would have to go, most important first; at least one."""
    pdb_violations: int = 0
    """How many of them break a disruption budget."""


@runtime_checkable
class PostFilterSteps(PostFilter, Protocol):
    """A PostFilter whose candidates HTTP extenders look through before it chooses; run instead of
    `post_filter` if there are some."""

    def post_filter_steps(
        self, state: CycleState, pod: PodInfo, cluster: Snapshot, diagnosis: Diagnosis
    ) -> Generator[Mapping[str, NodeVictims], Mapping[str, NodeVictims], PostFilterResult]:
        """Yields its candidates by node, once at most and not if there are none; is sent what the extenders
        left of them.

        They may have taken nodes away, chosen other victims of a node, or other nodes. An extender that fails
        is not this plugin's business.
        """
        ...


@runtime_checkable
class PreScore(Plugin, Protocol):
    """Before scoring, when at least two nodes take the pod. SKIP: the plugin's Score is not asked. Others but
    SUCCESS end the attempt."""

    def pre_score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, feasible: Rows) -> Status: ...


@runtime_checkable
class ScoreToken(Plugin, Protocol):
    """The same as `FilterToken` for a PreScore or Score."""

    def score_token(self, pod: PodInfo, cluster: Snapshot) -> Hashable:
        """Equal as long as PreScore would answer and write the same for the same feasible nodes, and Score
        say the same of unchanged rows.

        For scope `cluster`, PreScore and Score are asked again also when the set of feasible nodes is
        another, unless the token is `None`.
        """
        ...


@runtime_checkable
class Score(Plugin, Protocol):
    """How good a node is for the pod. Without NormalizeScore the points must be 0 to 100."""

    scope: ClassVar[Scope]

    def score(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows) -> Scores: ...

    def score_one(self, state: CycleState, pod: PodInfo, cluster: Snapshot, row: int) -> int:
        """The same for one row."""
        ...


@runtime_checkable
class NormalizeScore(Plugin, Protocol):
    """Brings the plugin's scores of all feasible nodes to 0 to 100."""

    def normalize(self, state: CycleState, pod: PodInfo, cluster: Snapshot, rows: Rows, scores: Scores) -> Scores:
        """
        :param rows: all feasible rows
        :param scores: what `score` said of them; not to be changed
        """
        ...


@runtime_checkable
class NormalizesByExtremes(NormalizeScore, Protocol):
    """What `normalize` makes of a score depends on the lowest and the highest of all scores only, not on
    `rows`: only what changed is normalised again, together with these two."""

    by_extremes: ClassVar[bool]
    """True."""


@runtime_checkable
class Reserve(Plugin, Protocol):
    """After a node is chosen, before the pod's room is assumed for others. Any answer but SUCCESS ends the
    attempt."""

    def reserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status: ...

    def unreserve(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None:
        """The pod does not get the node after all. Called in reverse order for all plugins, also those whose
        `reserve` was not called."""
        ...


class PermitResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of Permit. With WAIT: how long at most, in seconds, 0 to 900 (15 minutes, the reference's
    limit)."""

    status: Status = statuses.SUCCESS
    timeout_s: float = 0.0


@runtime_checkable
class Permit(Plugin, Protocol):
    """The last word before binding.

    WAIT: the pod keeps its assumed room until all plugins that said so allow it
    (`permits.WaitingPods.allow`), one rejects it, or the shortest time is up. Rejections park the pod, ERROR
    sends it to error backoff.
    """

    def permit(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PermitResult: ...


class ObjectWrite(msgspec.Struct, frozen=True, kw_only=True):
    """A new version of an object, to be written by the binder. Its `metadata.resourceVersion` names the
    version that the plugin read, and that it must still have then; without one the object must not exist."""

    resource: str
    namespace: str
    name: str
    document: dict[str, Any]


class PreBindResult(msgspec.Struct, frozen=True, kw_only=True):
    """Answer of PreBind: objects to write in the same commit as the binding; with WAIT: objects to write
    first, without the binding."""

    status: Status = statuses.SUCCESS
    writes: tuple[ObjectWrite, ...] = ()
    timeout_s: float = 0.0
    """With WAIT: seconds until the decision is refused, from the first WAIT of this plugin about it."""
    waits_for: tuple[ObjectKey, ...] = ()
    """With WAIT: objects of resources that the plugin registered events for; it is asked again when one of
    them, or of those that it writes, has changed."""


@runtime_checkable
class PreBind(Plugin, Protocol):
    """In the binder, after the judgement. A rejection is a conflict, to be tried again; ERROR makes the
    decision a bind error.

    WAIT: the writes become durable first; the pod keeps its room on the node, and the plugin is asked again,
    with the same `state`, as things change. When no plugin waits any more the node is judged once more, all
    are asked a last time, and what they want written becomes durable together with the binding. What a plugin
    wrote while it waited stays written if it comes to nothing. Another binder that takes over asks anew, with
    an empty `state`: it must find in the objects what was written already, and not write it again.
    """

    def pre_bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> PreBindResult: ...


@runtime_checkable
class PreBindPreFlight(PreBind, Protocol):
    """Says of which pods its PreBind has nothing to do.

    Source: framework.PreBindPlugin, PreBindPreFlight, of which Skip is False here.
    """

    def pre_bind_pre_flight(self, pod: PodInfo) -> bool:
        """Whether PreBind is to be asked about the pod. False: it would answer SUCCESS and want nothing
        written, whatever the node and the cluster. Asked for every decision: a look at the pod's spec."""
        ...


@runtime_checkable
class Bind(Plugin, Protocol):
    """In the binder: who binds. SUCCESS: this plugin takes it, the commit is written. SKIP: the next one.
    Others: a bind error."""

    def bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> Status: ...


@runtime_checkable
class PostBind(Plugin, Protocol):
    """In the binder, after the commit is durable. For information; cannot undo anything."""

    def post_bind(self, state: CycleState, pod: PodInfo, cluster: Snapshot, node_name: str) -> None: ...
