"""DaemonSet: a pod on each node that takes it, bound to it by node affinity.

First each node gets its pod, or loses it; only when nothing of that is left to do, old pods are replaced.

Source: kubernetes v1.36.2, pkg/controller/daemon/daemon_controller.go (manage, podsShouldBeOnNode,
NodeShouldRunDaemonPod, updateDaemonSetStatus), update.go (rollingUpdate), util/daemonset_util.go
(AddOrUpdateDaemonPodTolerations, ReplaceDaemonSetPodNodeNameNodeAffinity, GetTargetNodeName).
"""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from podyard.objects import selectors, taints
from podyard.objects.affinity import Toleration
from podyard.objects.apps import DaemonSet
from podyard.objects.errors import SelectorError
from podyard.objects.pod import ENDED, Pod
from podyard.proto import subjects
from podyard.proto.operations import Reason
from podyard.workloads.core import documents, revisions, rollout, templates
from podyard.workloads.core import pods as pod_facts
from podyard.workloads.core.actions import Delete, Document, Told, Write
from podyard.workloads.core.looking import NOTHING, Looked, Moments, Surroundings, status_write
from podyard.workloads.core.revisions import POD_LABEL

DAEMON_SETS: Final = "daemonsets"
GENERATION_LABEL: Final = "pod-template-generation"
BURST: Final = 250
"""Most pods made or deleted in one step. Source: BurstReplicas."""
FAILED_POD: Final = Reason("FailedDaemonPod")
SUCCEEDED_POD: Final = Reason("SucceededDaemonPod")

_TOLERATED: Final = (
    (taints.NOT_READY, taints.NO_EXECUTE),
    (taints.UNREACHABLE, taints.NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", taints.NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", taints.NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", taints.NO_SCHEDULE),
    (taints.UNSCHEDULABLE, taints.NO_SCHEDULE),
)
_ON_THE_HOSTS_NETWORK: Final = ("node.kubernetes.io/network-unavailable", taints.NO_SCHEDULE)

ByNode = Mapping[str, list[PodView]]
"""Pods by the node that they are on, or for."""


class Wanted(NamedTuple):
    """Whether a node should have a pod, and whether one that it has may stay."""

    run: bool
    stay: bool


class Steps(NamedTuple):
    """What is to be done next: names of nodes that get a pod, and pods that go."""

    create: list[str]
    delete: list[PodView]


def look(around: Surroundings, key: ObjectKey, daemon_set: DaemonSet, now: float) -> Looked:
    """What there is to be done for a DaemonSet."""
    document = around.document(key, daemon_set.metadata.uid)
    if document is None or daemon_set.metadata.deletion_timestamp is not None:
        return NOTHING
    return _Look(around, key, daemon_set, document, now).found()


class _Look:
    """One look. Made, asked for what was found, thrown away."""

    def __init__(
        self, around: Surroundings, key: ObjectKey, daemon_set: DaemonSet, document: Document, now: float
    ) -> None:
        self._around = around
        self._key = key
        self._set = daemon_set
        self._document = document
        self._now = now
        self._uid = daemon_set.metadata.uid
        self._pods = around.ownership.pods_of(self._uid)
        self._by_node = _by_node(self._pods)
        self._wanted = wanted_on(daemon_set, around.nodes)
        self._history = revisions.history(around, document, POD_LABEL, daemon_set.status.collision_count or 0, now)
        self._told: list[Told] = []
        self._moments = Moments(now)

    def found(self) -> Looked:
        steps = self._manage()
        rolls = self._set.spec.update_strategy.type == "RollingUpdate"
        if rolls and not steps.create and not steps.delete:
            steps = self._replace()
        writes: list[Write] = [*self._history.writes, *self._creations(steps.create[:BURST])]
        writes += [Delete(ObjectKey(subjects.PODS, *pod.key), pod.uid) for pod in steps.delete[:BURST]]
        live = {pod.labels.get(POD_LABEL, "") for pod in self._pods}
        writes += revisions.surplus(
            self._document, self._history, self._set.spec.revision_history_limit, live, live_count=True
        )
        writes += status_write(self._key, self._uid, self._document, self._status())
        why = f"DaemonSet {self._set.metadata.name} wants a pod on {self._count_wanted()} nodes"
        return Looked(why, writes, again_at=self._moments.first, told=self._told)

    # ---- a pod for each node -------------------------------------------------------------------------------

    def _manage(self) -> Steps:
        steps = Steps([], [])
        for node, wanted in self._wanted.items():
            pods = self._by_node.get(node)
            if wanted.run and pods is None:
                steps.create.append(node)
            elif wanted.stay:
                self._keep_one(node, wanted, pods or (), steps)
            elif pods is not None:
                steps.delete.extend(pod for pod in pods if not pod.deleting)
        for node, pods in self._by_node.items():
            if node not in self._wanted:  # one that nobody bound would wait for it for ever
                steps.delete.extend(pod for pod in pods if not pod.node_name and not pod.deleting)
        if not steps.create:
            self._around.forget_lost(self._uid)
        return steps

    def _keep_one(self, node: str, wanted: Wanted, pods: Sequence[PodView], steps: Steps) -> None:
        """Of the pods on a node that may have one; an old and a new one if there may be one too many."""
        running = sorted(self._running(node, pods, steps), key=_turn)
        if not self._surges:
            steps.delete.extend(running[1:])
        elif not running and wanted.run:
            steps.create.append(node)
        elif len(running) > 1:
            self._keep_two(running, steps)

    def _keep_two(self, running: Sequence[PodView], steps: Steps) -> None:
        new, old = None, None
        for pod in running:
            if self._is_new(pod) and new is None:
                new = pod
            elif not self._is_new(pod) and old is None:
                old = pod
            else:
                steps.delete.append(pod)
        if old is not None and new is not None and (not pod_facts.is_ready(old) or self._is_available(new)):
            steps.delete.append(old)

    def _running(self, node: str, pods: Sequence[PodView], steps: Steps) -> list[PodView]:
        """Those that have not ended; the others go, failed ones of a node ever more slowly."""
        running: list[PodView] = []
        for pod in pods:
            ended = _ended(pod)
            if pod.deleting:
                continue
            if not ended:
                running.append(pod)
            elif ended == pod_facts.SUCCEEDED:
                self._tell(
                    SUCCEEDED_POD, f"Found succeeded daemon pod {_name(pod)} on node {node}, will try to delete it"
                )
                steps.delete.append(pod)
            elif self._may_go(node):
                self._tell(
                    FAILED_POD,
                    f"Found failed daemon pod {_name(pod)} on node {node}, will try to kill it",
                    warning=True,
                )
                steps.delete.append(pod)
        return running

    def _may_go(self, node: str) -> bool:
        """Whether a failed pod of that node goes now, so that another one comes."""
        key = (self._uid, str(self._set.status.observed_generation), node)
        free_at = self._around.backoffs.try_again(key, self._now)
        return free_at is None or self._moments.reached(free_at)

    def _tell(self, reason: Reason, message: str, *, warning: bool = False) -> None:
        self._told.append(Told(self._key, reason, message, warning))

    # ---- a new template ------------------------------------------------------------------------------------

    def _replace(self) -> Steps:
        """Candidates go in the order of their nodes' names; what is not available is replaced beyond the
        limits (docs/rules.md, old-daemon-pods-that-do-not-serve-cost-nothing)."""
        by_node = {node: self._by_node.get(node, []) for node in {**self._by_node, **self._running_nodes()}}
        surge, unavailable = self._limits()
        pairs = {node: self._pair(pods) for node, pods in sorted(by_node.items())}
        return self._surge(pairs, surge) if surge else self._delete_old(pairs, unavailable)

    def _delete_old(self, pairs: Mapping[str, "_Pair | None"], unavailable: int) -> Steps:
        lacking = 0
        free: list[PodView] = []
        candidates: list[PodView] = []
        for pair in pairs.values():
            if pair is None or (pair.old is None) == (pair.new is None):
                lacking += 1  # the next look makes it right
            elif pair.new is not None:
                lacking += not self._is_available(pair.new)
            elif pair.old is not None and not self._is_available(pair.old):
                free.append(pair.old)
                lacking += 1
            elif pair.old is not None:
                candidates.append(pair.old)
        return Steps([], [*free, *candidates[: max(0, unavailable - lacking)]])

    def _surge(self, pairs: Mapping[str, "_Pair | None"], surge: int) -> Steps:
        steps, candidates, misplaced = Steps([], []), list[str](), list[PodView]()
        surging, available = 0, 0
        for node, pair in pairs.items():
            if pair is None:
                surging += 1
                continue
            one = pair.old or pair.new
            available += one is not None and self._is_available(one)
            if pair.old is None:
                continue
            if pair.new is not None:
                if self._is_available(pair.new):
                    steps.delete.append(pair.old)
                else:
                    surging += 1
            elif node in self._wanted:
                ready = self._is_available(pair.old)
                if not self._wanted[node].run:
                    (misplaced if ready else steps.delete).append(pair.old)
                else:
                    (candidates if ready else steps.create).append(node)
        steps.create.extend(candidates[: max(0, surge - surging)])
        steps.delete.extend(misplaced[: max(0, available - self._count_wanted())])
        return steps

    def _pair(self, pods: Sequence[PodView]) -> "_Pair | None":
        """The old and the new pod of a node; None: there are too many of one sort."""
        living = [pod for pod in pods if not pod.deleting]
        new = [pod for pod in living if self._is_new(pod)]
        old = [pod for pod in living if not self._is_new(pod)]
        if len(new) > 1 or len(old) > 1:
            return None
        return _Pair(old[0] if old else None, new[0] if new else None)

    def _limits(self) -> tuple[int, int]:
        """How many nodes may have one pod too many, and how many may lack one."""
        rolling, count = self._set.spec.update_strategy.rolling_update, self._count_wanted()
        given = (None, None) if rolling is None else (rolling.max_surge, rolling.max_unavailable)
        surge, unavailable = (0 if one is None else rollout.scaled(one, count, up=True) for one in given)
        return surge, unavailable if surge or unavailable else 1

    # ---- writes --------------------------------------------------------------------------------------------

    def _creations(self, nodes: Sequence[str]) -> list[Write]:
        newest = self._history.newest
        labels = {GENERATION_LABEL: str(newest.number), POD_LABEL: newest.hash}
        template = pod_template(self._document["spec"]["template"], labels)

        def placed(pod: Document, number: int) -> Document:
            return {**pod, "spec": {**pod["spec"], "affinity": affinity_to(pod["spec"].get("affinity"), nodes[number])}}

        lost = self._around.take_lost(self._uid, len(nodes))
        return [
            *templates.pods_of(
                self._document, template, len(nodes), self._around.maker, self._now, lost, adjusted=placed
            )
        ]

    def _status(self) -> Document:
        current = misplaced = ready = updated = available = 0
        for node, wanted in self._wanted.items():
            pods = self._by_node.get(node)
            if not pods:
                continue
            if not wanted.run:
                misplaced += 1
                continue
            current += 1
            first = min(pods, key=_turn)
            ready += pod_facts.is_ready(first)
            available += self._is_available(first)
            updated += self._is_new(first)
        desired = self._count_wanted()
        always = {
            "currentNumberScheduled": current,
            "numberMisscheduled": misplaced,
            "desiredNumberScheduled": desired,
            "numberReady": ready,
        }
        counts = {
            "observedGeneration": self._set.metadata.generation,
            "updatedNumberScheduled": updated,
            "numberAvailable": available,
            "numberUnavailable": desired - available,
            "collisionCount": self._history.collisions,
        }
        return always | {key: count for key, count in counts.items() if count}

    # ---- facts ---------------------------------------------------------------------------------------------

    @property
    def _surges(self) -> bool:
        strategy = self._set.spec.update_strategy
        given = strategy.rolling_update.max_surge if strategy.rolling_update is not None else None
        return strategy.type == "RollingUpdate" and given is not None and rollout.scaled(given, 1, up=True) > 0

    def _running_nodes(self) -> dict[str, None]:
        return {node: None for node, wanted in self._wanted.items() if wanted.run}

    def _count_wanted(self) -> int:
        return sum(wanted.run for wanted in self._wanted.values())

    def _is_new(self, pod: PodView) -> bool:
        return pod.labels.get(POD_LABEL) == self._history.newest.hash

    def _is_available(self, pod: PodView) -> bool:
        at = pod_facts.available_at(pod, self._set.spec.min_ready_seconds, self._around.receipts, self._now)
        return self._moments.reached(at)


class _Pair(NamedTuple):
    """The pods of a node that has at most one of each sort."""

    old: PodView | None
    new: PodView | None


# ---- nodes -------------------------------------------------------------------------------------------------


def wanted_on(daemon_set: DaemonSet, nodes: Mapping[str, NodeView]) -> dict[str, Wanted]:
    """By node, in the order of their names. What is not there, or full, does not count: that is up to the
    scheduler. Source: NodeShouldRunDaemonPod."""
    spec = daemon_set.spec.template.spec
    affinity = selectors.required_node_affinity(Pod(spec=spec))
    tolerated = (
        *spec.tolerations,
        *(Toleration(key=key, operator="Exists", effect=effect) for key, effect in _tolerated(spec.host_network)),
    )
    found: dict[str, Wanted] = {}
    for name in sorted(nodes):
        node = nodes[name]
        if spec.node_name not in ("", name) or not _matches(affinity, node, name):
            found[name] = Wanted(False, False)
            continue
        given = node.node.spec.taints
        run = taints.untolerated(given, tolerated) is None
        stay = run or taints.untolerated(given, tolerated, (taints.NO_EXECUTE,)) is None
        found[name] = Wanted(run, stay)
    return found


def _tolerated(host_network: bool) -> tuple[tuple[str, str], ...]:
    """Taints that every pod of a DaemonSet tolerates: key and effect."""
    return (*_TOLERATED, _ON_THE_HOSTS_NETWORK) if host_network else _TOLERATED


def _matches(affinity: selectors.RequiredNodeAffinity, node: NodeView, name: str) -> bool:
    try:
        return affinity.matches(node.labels, name)
    except SelectorError:
        return False


# ---- pods --------------------------------------------------------------------------------------------------


def pod_template(template: Document, labels: Mapping[str, str]) -> Document:
    """A DaemonSet's template with its own tolerations and these labels."""
    found = documents.copied(template)
    found.setdefault("metadata", {}).setdefault("labels", {}).update(labels)
    spec: Document = found["spec"]
    given: list[Document] = spec.get("tolerations") or []
    for key, effect in _tolerated(spec.get("hostNetwork") is True):
        wished = {"key": key, "operator": "Exists", "effect": effect}
        same = [at for at, one in enumerate(given) if _says_the_same(one, wished)]
        if same:
            given[same[0]] = wished
        else:
            given.append(wished)
    spec["tolerations"] = given
    return found


def _says_the_same(one: Document, other: Document) -> bool:
    """But for how long. Source: Toleration.MatchToleration."""
    return all(one.get(field, "") == other.get(field, "") for field in ("key", "operator", "value", "effect"))


def affinity_to(affinity: Document | None, node: str) -> Document:
    """An affinity that leads to one node, and is else as it was."""
    found = dict(affinity or {})
    there = {"key": selectors.NODE_NAME_FIELD, "operator": selectors.IN, "values": [node]}
    required = {"nodeSelectorTerms": [{"matchFields": [there]}]}
    found["nodeAffinity"] = {
        **(found.get("nodeAffinity") or {}),
        "requiredDuringSchedulingIgnoredDuringExecution": required,
    }
    return found


def target_of(pod: PodView) -> str:
    """The node that a pod is on, or for; empty if nobody can say."""
    if pod.node_name:
        return pod.node_name
    affinity = pod.stored.spec.affinity
    node_affinity = affinity.node_affinity if affinity is not None else None
    required = node_affinity.required_during_scheduling_ignored_during_execution if node_affinity is not None else None
    for term in required.node_selector_terms if required is not None else ():
        for field in term.match_fields:
            if field.key == selectors.NODE_NAME_FIELD and field.operator == selectors.IN:
                return field.values[0] if len(field.values) == 1 else ""
    return ""


def _by_node(pods: Sequence[PodView]) -> dict[str, list[PodView]]:
    """But for those that have ended and go: with these there is nothing left to do."""
    found: dict[str, list[PodView]] = {}
    for pod in pods:
        target = target_of(pod)
        if target and not (pod.deleting and _ended(pod)):
            found.setdefault(target, []).append(pod)
    return found


def _ended(pod: PodView) -> str:
    """The phase in which it ended, empty if it did not; what lost its place has failed."""
    phase = pod_facts.phase(pod)
    if phase in ENDED:
        return phase
    return pod_facts.FAILED if pod.released else ""


def _turn(pod: PodView) -> tuple[bool, float, str]:
    """Which of several stays: one with a node, then the oldest. Source: podByCreationTimestampAndPhase."""
    return not pod.node_name, pod_facts.created_at(pod), pod.name


def _name(pod: PodView) -> str:
    return f"{pod.namespace}/{pod.name}"
