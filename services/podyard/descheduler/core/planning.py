"""Where the pods of a cycle would go: each is placed by its own scheduling profile, on one table.

The table is the cluster as the cycle's listing found it. A pod that is to go is taken out of it, and what
comes in its place is put where the scheduler would put it: all Filters, then all scores, of the profile that
the pod names (docs/rules.md, a-plan-places-what-comes-again). Room that it frees and takes is booked there,
so that the next one sees it. Pods that wait for room already get it first, if they are as important.

Nobody is preempted for what comes, and HTTP extenders are not asked: that could only be done by doing it.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.cluster.nominations import Nominations
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.descheduler.core.state import ENDED
from podyard.framework import one_node
from podyard.framework.cycle import Choice, Cycle
from podyard.framework.profile import Profile
from podyard.framework.snapshot import Snapshot
from podyard.objects import times
from podyard.objects.errors import QuantityError
from podyard.objects.pod import Pod, PodStatus
from podyard.proto.message import DEFAULT_SCHEDULER

MOST_WAITING: Final = 200
"""Pods without a node that get room before those that are moved, the most important and oldest; others are
left out; semi-arbitrary."""
MOST_ASKED: Final = 20
"""Kinds of waiting pods that a node is asked about when a pod leaves it; semi-arbitrary."""
REASONS: Final = 3
"""Of why nothing takes a pod; those of most nodes."""
_LATER: Final = "-planned"
"""Ends the uid of what comes in a pod's place."""
_NEW: Final = PodStatus(phase="Pending")


class Place(NamedTuple):
    """What would become of a pod that goes; the plan's table stands as if it had gone already, until it is
    told whether it has."""

    pod: Pod
    choice: Choice | None
    """None: nothing comes in its place."""
    comes: PodView | None = None
    """What comes."""
    went: PlacedPod | None = None
    """What was on its node."""
    let_in: tuple[PlacedPod, ...] = ()
    """Who gets room before."""

    @property
    def node(self) -> str:
        """Where what comes would go; empty: nowhere, or nothing comes."""
        return "" if self.choice is None else self.choice.node

    @property
    def trouble(self) -> str:
        """Why nothing takes what comes, or nobody can say; empty if something does."""
        if self.choice is None or self.choice.node:
            return ""
        if self.choice.error:
            return f"nobody can say where it would go: {self.choice.error}"
        return f"it would stay pending: {_told(self.choice)}"


class Plan:
    """Of one cycle. `place` and then `book` or `drop`, pod by pod."""

    def __init__(self, view: ClusterView, profiles: Mapping[str, Profile], now: float) -> None:
        """
        :param view: nobody changes it
        :param profiles: made for this plan, by name
        """
        self._now = now
        self.coming: dict[str, list[Pod]] = {}
        """What was booked, as `framework.Target` has it."""
        self.table = NodeTable()
        for node in view.nodes.values():
            try:
                self.table.set_node(node.node)
            except QuantityError:  # nobody can say what it has: nothing goes there
                self.table.remove_node(node.name)
        for pod in view.pods_by_uid.values():
            if pod.bound is not None and _is_counted(pod):
                self.table.place(pod)
        nominated = Nominations(view.pods_by_uid.values(), frozenset(profiles))
        self._snapshot = Snapshot(self.table, view, nominated=nominated)
        self._profiles = profiles
        self._cycles = {name: Cycle(profile, self._snapshot) for name, profile in profiles.items()}
        self._waiting = self._still_waiting(_waiting(view.pods.values(), profiles))

    def place(self, pod: Pod) -> Place:
        """Where what comes in the pod's place would go, if the pod went now."""
        went = self.table.remove(pod.metadata.uid)
        if pod.status.phase in ENDED or pod.metadata.controller is None:
            return Place(pod, None, went=went)
        comes = _again(pod, self._now)
        let_in = self._let_in(pod.spec.node_name, comes.priority)
        return Place(pod, self._choice(comes), comes, went, tuple(let_in))

    def book(self, place: Place) -> None:
        """It went."""
        for pod in place.let_in:
            del self._waiting[pod.uid]
        if place.comes is not None and place.node:
            self.table.place(_on(place.comes, place.node))
            self.coming.setdefault(place.node, []).append(place.pod)
        elif place.comes is not None and len(self._waiting) < MOST_WAITING:
            self._waiting[place.comes.uid] = place.comes
        for pod in self._let_in(place.pod.spec.node_name, None):
            del self._waiting[pod.uid]

    def drop(self, place: Place) -> None:
        """It stays."""
        for pod in place.let_in:
            self.table.remove(pod.uid)
        if place.went is not None:
            self.table.place(place.went)

    # ---- inside --------------------------------------------------------------------------------------------

    def _choice(self, pod: PodView) -> Choice:
        name = _profile_of(pod)
        cycle = self._cycles.get(name)
        if cycle is None:
            return Choice(error=f"there is no scheduling profile called {name}")
        return cycle.choice(pod)

    def _still_waiting(self, pods: Sequence[PodView]) -> dict[str, PodView]:
        """Those that nothing takes now; the others are booked."""
        left: dict[str, PodView] = {}
        for pod in pods:
            node = self._choice(pod).node
            if node:
                self.table.place(_on(pod, node))
            else:
                left[pod.uid] = pod
        return left

    def _let_in(self, node: str, least: int | None) -> list[PlacedPod]:
        """Put pods that wait on a node that has become freer. Where it refuses one it refuses the others of
        the same controller.

        :param least: the priority that they have at least; None: any
        """
        found: list[PlacedPod] = []
        refused: set[str] = set()
        for pod in tuple(self._waiting.values()):
            controller = pod.stored.metadata.controller
            alike = pod.uid if controller is None else controller.uid
            if alike in refused or (least is not None and pod.priority < least):
                continue
            if one_node.filter_one(self._profiles[_profile_of(pod)], node, pod, self._snapshot).ok:
                found.append(_on(pod, node))
                self.table.place(found[-1])
                continue
            refused.add(alike)
            if len(refused) >= MOST_ASKED:
                break
        return found


def _again(pod: Pod, now: float) -> PodView:
    """What its controller makes in the pod's place: the same, as it was before it had a node."""
    uid = pod.metadata.uid + _LATER
    metadata = replace(pod.metadata, uid=uid, creation_timestamp=times.rfc3339(now), deletion_timestamp=None)
    spec = replace(pod.spec, node_name="")
    return PodView(Pod(metadata=metadata, spec=spec, status=_NEW), pod.key, uid, 0)


def _is_counted(pod: PodView) -> bool:
    """Whether anybody can say what it takes."""
    try:
        usage = pod.usage
    except QuantityError:
        return False
    del usage
    return True


def _on(pod: PodView, node: str) -> PlacedPod:
    return pod.with_placement(pod.bound_to(node), None)


def _profile_of(pod: PodView) -> str:
    return pod.stored.spec.scheduler_name or DEFAULT_SCHEDULER


def _waiting(pods: Iterable[PodView], profiles: Mapping[str, Profile]) -> list[PodView]:
    """Pods that a scheduler looks for a place for, the most important and oldest first."""
    found = [pod for pod in pods if _waits(pod) and _profile_of(pod) in profiles]
    found.sort(key=lambda pod: (-pod.priority, pod.stored.metadata.creation_timestamp or "", pod.key))
    return found[:MOST_WAITING]


def _waits(pod: PodView) -> bool:
    if pod.bound is not None or pod.released or pod.deleting or pod.ended or pod.unknown_place:
        return False
    return not pod.stored.spec.scheduling_gates and not pod.stored.spec.node_name


def _told(choice: Choice) -> str:
    """The plugins that refuse, with how many nodes."""
    told = [f"{one.plugin} refuses {_nodes(one.nodes)}: {one.reason}" for one in choice.rejections[:REASONS]]
    return "; ".join(told) or choice.message


def _nodes(count: int) -> str:
    return f"{count} node" if count == 1 else f"{count} nodes"
