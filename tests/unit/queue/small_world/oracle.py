"""What must hold, judged from what is stored, one pod and one node at a time."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from podyard.binder.core.world import World as Truth
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.framework import one_node
from podyard.proto.placement import CommitRecord
from podyard.queue.core import changes
from podyard.queue.core.leader import Leader
from tests.unit.queue.small_world.log import follows_all, listed
from tests.unit.queue.small_world.surroundings import profile_of

if TYPE_CHECKING:
    from tests.unit.queue.small_world.world import World


def truth_of(world: World) -> Truth:
    """The cluster as it is stored, listed by somebody who has seen nothing before."""
    view = ClusterView()
    listed(world.log, view, follows_all)
    truth = Truth(view)
    truth.rebuild()
    return truth


def is_pending(pod: PodView) -> bool:
    """Whether the queue is to have the pod."""
    return changes.is_pending(pod, [profile_of("oracle").name])


def feasible(truth: Truth, pod: PodView) -> list[str]:
    """Nodes that would take the pod as things are."""
    profile = profile_of("oracle")
    return [name for name in truth.view.nodes if one_node.filter_one(profile, name, pod, truth.snapshot).ok]


def check_rest(world: World) -> None:
    """Who could run runs, who waits is parked, and every attempt has ended."""
    truth, leader = truth_of(world), world.queue.leader
    assert leader is not None
    pending = {uid: pod for uid, pod in truth.view.pods_by_uid.items() if is_pending(pod)}
    assert set(leader.queue.pods) == set(pending), "the queue has other pods than those that are pending"
    for uid, pod in pending.items():
        place = leader.queue.pods[uid].pool
        if not pod.stored.spec.scheduling_gates:
            nodes = feasible(truth, pod)
            assert not nodes, f"{uid} fits {nodes}, and stays {told(leader, uid)}"
            assert place == "unschedulable", f"{uid} waits in {place or 'no pool'}"
        else:
            assert place == "gated", f"{uid} has a gate and is in {place or 'no pool'}"
    left = world.handed - set(world.ended)
    assert not left, f"attempts without an end: {sorted(left)}"
    assert leader.queue.in_flight.listing() == [], "events are kept for nobody"


def told(leader: Leader, uid: str) -> dict[str, Any]:
    """What the queue knows of a pod."""
    pod = leader.queue.pods[uid]
    return {
        "pool": pod.pool,
        "rejectors": sorted(pod.rejectors),
        "message": pod.message,
        "attempts": pod.attempts,
        "since": pod.timestamp,
    }


def unrest(world: World) -> str:
    """What still goes on."""
    leader = world.queue.leader
    if leader is None:
        return "nobody leads the queue"
    pods = [f"{uid} in {pod.pool}, attempt {pod.attempt}" for uid, pod in leader.queue.pods.items()]
    schedulers = [
        f"{one.session}: over {one.over}, {one.core.unanswered} unanswered, open {one.core.open_attempts()}, idle {one.idle}"
        for one in world.schedulers
    ]
    readers = [
        one.behind for one in (world.queue.reader, world.binder.reader, *(one.reader for one in world.schedulers))
    ]
    binder = f"binder {world.binder.core.phase.name}, idle {world.binder.core.idle}"
    return f"no rest: {pods}, in flight {leader.queue.in_flight.uids()}, {schedulers}, {binder}, behind {readers}"


def check_always(world: World) -> None:
    """No pod is in two places, none is bound twice, no node has more than it can take."""
    leader = world.queue.leader
    if leader is not None and not world.queue.over:
        check_places(leader)
    check_commits(world)


def check_places(leader: Leader) -> None:
    """Every pod of the queue is in exactly one pool."""
    queue = leader.queue
    places: dict[str, list[str]] = {uid: [] for uid in queue.pods}
    pools = (
        ("activeQ", queue.active),
        ("backoffQ", queue.backing_off),
        ("errorBackoffQ", queue.errors),
        ("parked", queue.parked),
        ("binding", leader.binding.values()),
        (
            "inFlight",
            [one.pod for one in leader.attempts.values() if one.state == "open" and one.pod.uid in queue.pods],
        ),
    )
    for pool, pods in pools:
        for pod in pods:
            places[pod.uid].append(pool)
    wrong = {uid: found for uid, found in places.items() if len(found) != 1}
    assert not wrong, f"pods that are not in one place: {wrong}"


def check_commits(world: World) -> None:
    """Replay the commit records that are new since the last time."""
    log = world.log
    for record in log.commits[world.replayed :]:
        _replay(world, record)
    world.replayed = len(log.commits)


def _replay(world: World, record: CommitRecord) -> None:
    for bound in record.bindings:
        world.bindings[bound.uid] += 1
        assert world.bindings[bound.uid] == 1, f"{bound.uid} is bound twice"
        world.live[bound.uid] = (bound.node, bound.usage.requests.get("cpu", 0))
    used: Counter[str] = Counter()
    for uid, (node, cpu) in world.live.items():
        now = world.log.size_at(uid, record.position)
        used[node] += cpu if now is None else now
    for bound in record.bindings:
        room = world.largest[bound.node]
        assert used[bound.node] <= room, f"{bound.node} has {room}m cpu, {used[bound.node]}m are bound"
    for release in record.releases:
        world.live.pop(release.uid, None)
