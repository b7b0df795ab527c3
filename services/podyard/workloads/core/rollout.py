"""How many replicas each ReplicaSet of a Deployment gets next: pure arithmetic.

Source: pkg/controller/deployment/util/deployment_util.go (NewRSNewReplicas, ResolveFenceposts,
GetReplicaSetProportion), rolling.go (reconcileNewReplicaSet, reconcileOldReplicaSets), sync.go (scale).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

from podyard.objects.apps import Deployment, ReplicaSet
from podyard.workloads.core.replica_sets import wanted

RECREATE: Final = "Recreate"
DEFAULT_FENCEPOST: Final = "25%"


class Bounds(NamedTuple):
    """What a rollout must keep to, in pods."""

    replicas: int
    surge: int
    """How many above `replicas` there may be."""
    unavailable: int
    """How many below `replicas` may be available."""

    @property
    def most(self) -> int:
        """Pods there may be."""
        return self.replicas + self.surge

    @property
    def least_available(self) -> int:
        """Pods that must be available."""
        return self.replicas - self.unavailable


def bounds(deployment: Deployment) -> Bounds:
    """From numbers or percentages: the surge rounded up, the unavailable down; both 0 would stand still, so
    one may be missing."""
    spec = deployment.spec
    replicas = 1 if spec.replicas is None else spec.replicas
    if spec.strategy.type == RECREATE:
        return Bounds(replicas, 0, replicas)
    rolling = spec.strategy.rolling_update
    given_surge = rolling.max_surge if rolling is not None else None
    given_unavailable = rolling.max_unavailable if rolling is not None else None
    surge = scaled(DEFAULT_FENCEPOST if given_surge is None else given_surge, replicas, up=True)
    unavailable = scaled(DEFAULT_FENCEPOST if given_unavailable is None else given_unavailable, replicas, up=False)
    if surge == 0 and unavailable == 0:
        unavailable = 1
    return Bounds(replicas, surge, min(unavailable, replicas))


def scaled(value: int | str, total: int, *, up: bool) -> int:
    """A number, or a percentage of `total` rounded up or down. Source: intstr.GetScaledValueFromIntOrPercent.

    :raises ValueError: for a text that is no percentage; admission refuses those
    """
    if isinstance(value, int):
        return value
    if not value.endswith("%"):
        raise ValueError(f"{value!r} is neither a number nor a percentage")
    percent = int(value[:-1])
    return -(-percent * total // 100) if up else percent * total // 100


def new_set_size(deployment: Deployment, new: int, total: int) -> int:
    """Replicas that the new ReplicaSet should have next.

    :param new: its replicas now, 0 if it does not exist
    :param total: replicas of all ReplicaSets now
    """
    limits = bounds(deployment)
    if deployment.spec.strategy.type == RECREATE:
        return limits.replicas
    if new > limits.replicas:
        return limits.replicas
    if total >= limits.most:
        return new
    return new + min(limits.most - total, limits.replicas - new)


def shrink_old(limits: Bounds, new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> dict[str, int]:
    """New sizes of old ReplicaSets, by uid: first those pods that are not healthy anyway, then as many
    healthy as may be missing.

    :param old: oldest first
    """
    sizes = {found.metadata.uid: wanted(found) for found in old}
    new_size = wanted(new) if new is not None else 0
    new_available = new.status.available_replicas if new is not None else 0
    may_go = sum(sizes.values()) + new_size - limits.least_available - (new_size - new_available)
    if may_go <= 0:
        return {}
    before = dict(sizes)
    for found in old:
        uid = found.metadata.uid
        unhealthy = max(0, min(sizes[uid] - found.status.available_replicas, may_go))
        sizes[uid] -= unhealthy
        may_go -= unhealthy
    available = new_available + sum(found.status.available_replicas for found in old)
    may_go = available - limits.least_available
    for found in old:
        uid = found.metadata.uid
        going = max(0, min(sizes[uid], may_go))
        sizes[uid] -= going
        may_go -= going
    return {uid: size for uid, size in sizes.items() if size != before[uid]}


def spread(limits: Bounds, active: Sequence[ReplicaSet], most_before: dict[str, int]) -> dict[str, int]:
    """Sizes of several active ReplicaSets when the Deployment was scaled in the middle of a rollout: each
    keeps its share.

    :param active: those with replicas, the largest and then the newest first when growing
    :param most_before: by uid, how many pods there might have been when its size was set (annotation
        max-replicas)
    """
    sizes = {found.metadata.uid: wanted(found) for found in active}
    total = sum(sizes.values())
    to_add = limits.most - total
    if not to_add or not active:
        return {}
    added = 0
    for found in active:
        uid = found.metadata.uid
        share = _share(sizes[uid], limits.most, most_before.get(uid) or total, to_add, added)
        sizes[uid] += share
        added += share
    first = active[0].metadata.uid
    sizes[first] = max(0, sizes[first] + to_add - added)
    return sizes


def _share(size: int, most: int, most_before: int, to_add: int, added: int) -> int:
    """Source: GetReplicaSetProportion, getReplicaSetFraction: rounded to the nearest, within what is left to
    add."""
    if size == 0 or to_add == added:
        return 0
    fraction = int(size * most / most_before + 0.5) - size
    left = to_add - added
    return min(fraction, left) if to_add > 0 else max(fraction, left)
