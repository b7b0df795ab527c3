"""What the binder looks at before it commits, switched off one by one, where pods want just that."""

from functools import cache
from typing import Any

from msgspec.structs import replace

from podyard.binder.core import gathering, node_takes_pod
from podyard.binder.core import world as binder_world
from podyard.binder.core.skipping import Skipping
from podyard.cluster.pods import PodView
from podyard.framework.profile import Profile
from podyard.proto.binder_api import Decision
from podyard.proto.placement import BoundPod
from tests.simulation import pods
from tests.simulation.pods import NOTHING_SPECIAL
from tests.simulation.sabotaged import Patch, Sabotage, slow
from tests.simulation.simulation import Simulation
from tests.support import verified_skips


def _blind(*plugins: str, **shares: float) -> Patch:
    """The binder does not ask these plugins; and that many pods want what they guard."""

    def patch(simulation: Simulation) -> None:
        if shares:
            simulation.world.shares = NOTHING_SPECIAL._replace(**shares)
        asked = node_takes_pod.one_node.filter_one

        @cache
        def less(at: int, profile: Any) -> Profile:
            kept = {
                point: tuple(one for one in getattr(profile.it, point) if one.name not in plugins)
                for point in ("pre_filter", "filter")
            }
            return replace(profile.it, **kept)

        node_takes_pod.one_node.filter_one = lambda profile, *rest: asked(less(id(profile), _Same(profile)), *rest)

    return patch


class _Same:
    """A profile as a key: it cannot be hashed. All are the same one to a cache that asks for its address
    first."""

    def __init__(self, it: Profile) -> None:
        self.it = it

    def __hash__(self) -> int:
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Same)


def _cordons(simulation: Simulation) -> None:
    """NodeUnschedulable is not asked, and nodes are changed all the time."""
    _blind("NodeUnschedulable")(simulation)
    simulation.world.changes = 300


def _affinity(simulation: Simulation) -> None:
    """InterPodAffinity is not asked, and many small groups want to be together."""
    _blind("InterPodAffinity", together=0.7)(simulation)
    pods.TEAMS = 50


def _overload(simulation: Simulation) -> None:
    """Neither the quick look at the table nor NodeResourcesFit."""
    _blind("NodeResourcesFit")(simulation)
    node_takes_pod.shortages = lambda *_: ()  # type: ignore[assignment]


def _ports(simulation: Simulation) -> None:
    """Neither the quick look at host ports nor NodePorts."""
    _blind("NodePorts", ports=0.6)(simulation)
    node_takes_pod.taken_ports = lambda *_: []  # type: ignore[assignment]


def _wrong_usage(simulation: Simulation) -> None:
    """A binding says that the pod takes less than it requests."""
    made = node_takes_pod.as_bound

    def bound(decision: Decision, pod: PodView, child_trace: Any) -> BoundPod:
        told = made(decision, pod, child_trace)
        return replace(told, usage=replace(told.usage, requests={**told.usage.requests, "cpu": 1}))

    node_takes_pod.as_bound = bound


def _ignores_resizes(simulation: Simulation) -> None:
    """A bound pod takes what its binding says, whatever it requests by now; and pods are resized all the
    time."""
    usage = PodView.usage.fget
    assert usage is not None
    # type: ignore[method-assign,assignment]
    PodView.usage = property(lambda pod: usage(pod) if pod.bound is None else pod.bound.usage)
    simulation.world.resizes = 200
    simulation.world.shares = NOTHING_SPECIAL


def _keeps_room(simulation: Simulation) -> None:
    """The binder's table does not give back the room of what is released."""
    binder_world.World.free = lambda self, uid: None  # type: ignore[method-assign]
    follow = binder_world.World._follow_pod

    def deaf(self: Any, change: Any) -> None:
        if change.release is None:
            follow(self, change)

    binder_world.World._follow_pod = deaf  # type: ignore[method-assign]


def _forgets_mates(simulation: Simulation) -> None:
    """What was accepted, and is not in the view yet, does not count for the next."""
    binder_world.World.hold = lambda *_: None  # type: ignore[method-assign]


def _always_skips(simulation: Simulation) -> None:
    """The filters are skipped without a proof that the scheduler's answer still holds."""
    verified_skips.verify(False)
    Skipping.covers = lambda *_: True  # type: ignore[method-assign]
    simulation.world.shares = NOTHING_SPECIAL._replace(alone=0.3, even=0.3)


def _nothing_is_foreign(simulation: Simulation) -> None:
    """Changes of objects after a decision's position do not keep its filters from being skipped. Nodes change
    all the time, and schedulers learn it late."""
    verified_skips.verify(False)
    Skipping.foreign = lambda *_: None  # type: ignore[method-assign]
    simulation.world.shares = NOTHING_SPECIAL
    simulation.world.changes = 600
    slow(simulation, "scheduler", 0.5)


def _does_not_wait_for_positions(simulation: Simulation) -> None:
    """Decisions are judged by what the binder has read, however little.

    Nothing comes of it: judged by less, a decision is refused or fits what the record says; a pod not yet
    read counts as gone, and the scheduler, which knows better, lets the queue try it again.
    """
    gathering.Gatherer._is_ahead = lambda *_: False  # type: ignore[method-assign]
    slow(simulation, "binder", 0.05)


SABOTAGES: dict[str, Sabotage] = {
    "judgement of room": Sabotage(_overload, ("overload",)),
    "judgement of ports": Sabotage(_ports, ("host port",)),
    "judgement of anti-affinity": Sabotage(_blind("InterPodAffinity", alone=0.6), ("anti-affinity",)),
    "judgement of affinity": Sabotage(_affinity, ("required affinity",), 3),
    "judgement of spread": Sabotage(_blind("PodTopologySpread", even=0.6), ("spread",)),
    "judgement of cordons": Sabotage(_cordons, ("cordoned",)),
    "judgement of volume limits": Sabotage(_blind("NodeVolumeLimits", attached=0.6), ("volume limit",)),
    "judgement of one-pod claims": Sabotage(_blind("VolumeRestrictions", one_pod_volume=0.5), ("ReadWriteOncePod",)),
    "proof of skips": Sabotage(_always_skips, ("anti-affinity", "spread"), 2),
    "proof of skips, of objects": Sabotage(_nothing_is_foreign, ("cordoned",)),
    "usage as requested": Sabotage(_wrong_usage, ("and requests",)),
    "resizes count": Sabotage(_ignores_resizes, ("overload",)),
    "room given back": Sabotage(_keeps_room, ("not the sum",)),
    "own writes count": Sabotage(_forgets_mates, ("overload",), 3),
    "wait for the position": Sabotage(_does_not_wait_for_positions, ()),
}
