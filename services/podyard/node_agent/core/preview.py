"""Whom a node's eviction manager would evict: its rounds, played on a copy, while nothing gets better by
itself.

Every reading is taken for a fresh one, a collection frees what the node's signals say, and each pod takes all
the time that it is given.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from podyard.node_agent.core import readings
from podyard.node_agent.core.eviction import critical, ranking, signals
from podyard.node_agent.core.eviction.amounts import Amount
from podyard.node_agent.core.eviction.dialogue import Kill, Round
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.eviction.manager import CLEANUP_TIMEOUT_S
from podyard.node_agent.core.eviction.stats import PodStats
from podyard.node_agent.core.eviction.thresholds import Limit
from podyard.node_agent.core.levels import parse_levels
from podyard.node_agent.core.virtual_node import VirtualNode
from podyard.objects.pod import Pod
from podyard.proto.agents_api import (
    PreviewedCollection,
    PreviewedPod,
    PreviewedThreshold,
    PreviewReply,
    PreviewRequest,
    RankKey,
    SparedPod,
    State,
)
from podyard.proto.message import INT64_MAX
from podyard.proto.signals import SignalValue

ENDING: Final = "is being ended already"


def preview(
    node: VirtualNode, active: Sequence[Pod], capacity: Mapping[str, str], request: PreviewRequest, now: float
) -> PreviewReply:
    """What rounds from `now` on would come to. Neither node nor pods are changed.

    :param active: the pods of the node of which something runs or will
    :param capacity: quantities by resource, as the node's object says
    :raises ThresholdError: signals that nobody knows, amounts that are none: all of them
    """
    known = {} if node.reading is None else node.reading.signals
    given = parse_levels(request.signals, known, capacity)
    play = _Play(node.imagined(given, active, now), active, now)
    while len(play.pods) <= request.limit and play.goes_on():
        pass
    return play.reply(request.limit)


class _Play:
    """Rounds of one copy."""

    def __init__(self, node: VirtualNode, active: Sequence[Pod], now: float) -> None:
        self._node = node
        assert node.synthetic is not None, "an imagined node has one"
        self._source = node.synthetic
        self._active = list(active)
        self._ends: dict[str, float] = {}
        """When the pods end that the copy has begun to end, by uid."""
        self._begun = self._at = now
        self._conditions: tuple[str, ...] = ()
        self._thresholds: tuple[PreviewedThreshold, ...] | None = None
        self._collections: dict[tuple[str, str], PreviewedCollection] = {}
        self.pods: list[PreviewedPod] = []
        self._faults: dict[str, None] = {}

    def goes_on(self) -> bool:
        """Play one round; whether another one may do more."""
        self._source.observed_at = self._at
        self._active = [pod for pod in self._active if self._ends.get(pod.metadata.uid, math.inf) > self._at]
        ending = self._node.manager.ending
        found = self._node.synchronize(self._active, self._at)
        if self._thresholds is None:
            self._conditions = tuple(sorted(self._node.manager.conditions))
            self._thresholds = tuple(self._shown_thresholds())
        self._note(found)
        blind = found.error or found.unread
        self._faults |= dict.fromkeys((*filter(None, [blind]), *found.failures))
        if blind or any(self._node.failing(kill) for kill in found.kills):
            return False
        self.pods += [self._shown_pod(kill, ending) for kill in found.kills if kill.pod.metadata.uid not in self._ends]
        return self._went(found.kills) if found.kills else self._passes()

    def _note(self, found: Round) -> None:
        for one in found.collected:
            key = (found.starved, one.value)
            self._collections.setdefault(key, PreviewedCollection(what=one.value, resource=found.starved, at=self._at))

    def _went(self, kills: Sequence[Kill]) -> bool:
        """Pods go; the manager looks again when all of them have gone, but waits for so long only."""
        ends = {kill.pod.metadata.uid: self._at + max(kill.grace_s, 1) for kill in kills}
        self._ends |= ends
        self._at = min(max(ends.values()), self._at + CLEANUP_TIMEOUT_S)
        return True

    def _passes(self) -> bool:
        """Time passes until the manager may do more; False: it will not."""
        later = [at for at in (*self._node.manager.moments(), *self._ends.values()) if at > self._at]
        self._at = min(later, default=self._at)
        return bool(later)

    # ---- what is shown -------------------------------------------------------------------------------------

    def reply(self, limit: int) -> PreviewReply:
        """What was found, of the pods that go at most so many."""
        self._active = [pod for pod in self._active if pod.metadata.uid not in self._ends]
        spared = list(self._spared())
        beyond = len(self.pods) - limit
        left_out = beyond + len(self._active) - len(spared) if beyond > 0 else 0
        return PreviewReply(
            node=self._node.name,
            at=self._begun,
            conditions=self._conditions,
            thresholds=self._thresholds or (),
            collections=tuple(self._collections.values()),
            pods=tuple(self.pods[:limit]),
            spared=tuple(spared),
            left_out=left_out,
            faults=tuple(self._faults),
        )

    def _spared(self) -> Iterator[SparedPod]:
        for pod in self._active:
            metadata = pod.metadata
            why = critical.why_critical(pod) or (ENDING if metadata.uid in self._node.manager.ending else "")
            if why:
                yield SparedPod(namespace=metadata.namespace, name=metadata.name, uid=metadata.uid, why=why)

    def _shown_thresholds(self) -> Iterator[PreviewedThreshold]:
        manager = self._node.manager
        observed = self._source.said.signals
        since, acting = manager.first_observed, manager.thresholds_met
        for one in manager.thresholds:
            value = observed.get(one.signal)
            met = one in since
            yield PreviewedThreshold(
                signal=one.signal,
                value=_written(one.value),
                min_reclaim="" if one.min_reclaim is None else _written(one.min_reclaim),
                grace_s=one.grace_s,
                state=_state(value, met=met, acts=one in acting),
                until=since[one] + one.grace_s if met and not one.hard else 0.0,
                available=None if value is None else value.available,
                capacity=None if value is None else value.capacity,
                bound=None if value is None else _whole(one.value.amount(value.capacity)),
            )

    def _shown_pod(self, kill: Kill, ending: frozenset[str]) -> PreviewedPod:
        metadata = kill.pod.metadata
        used = requested = over = None
        own = self._stats(kill.pod).get(metadata.uid)
        if kill.signal in signals.ALL and own is not None:
            used, requested, over = map(_whole, ranking.use(kill.signal, kill.pod, own, self._layout))
        return PreviewedPod(
            namespace=metadata.namespace,
            name=metadata.name,
            uid=metadata.uid,
            at=self._at,
            signal=kill.signal,
            by=self._by(kill, ending),
            priority=kill.pod.spec.priority or 0,
            used=used,
            request=requested,
            over=over,
            grace_s=kill.grace_s,
            message=kill.message,
        )

    def _by(self, kill: Kill, ending: frozenset[str]) -> RankKey:
        """What puts the pod before the one that goes after it."""
        if kill.signal not in signals.ALL:
            return "limit"
        if kill.sooner:
            return "hurried"
        gone = {*ending, kill.pod.metadata.uid}
        others = [pod for pod in self._active if pod.metadata.uid not in gone and not critical.is_critical(pod)]
        if not others:
            return "last"
        following = self._first(kill, others)
        stats = self._stats(kill.pod, following)
        return ranking.decided_by(
            kill.signal, self._key(kill.signal, kill.pod, stats), self._key(kill.signal, following, stats)
        )

    def _first(self, kill: Kill, others: Sequence[Pod]) -> Pod:
        """The first in rank of `others`; as a rule the manager has told it."""
        by_name = {"/".join(pod.key): pod for pod in others}
        told = next((by_name[name] for name in kill.rank if name in by_name), None)
        return told or ranking.rank(kill.signal, others, self._stats(*others), self._layout)[0]

    def _key(self, signal: str, pod: Pod, stats: dict[str, PodStats]) -> ranking.Key:
        return ranking.sort_key(signal, pod, stats.get(pod.metadata.uid), self._layout)

    @property
    def _layout(self) -> Layout:
        return self._node.manager.layout or Layout.SINGLE

    def _stats(self, *pods: Pod) -> dict[str, PodStats]:
        return readings.summary(self._source.said, self._at, pods).pods


def _state(value: SignalValue | None, *, met: bool, acts: bool) -> State:
    if value is None:
        return "notObserved"
    if not met:
        return "notMet"
    return "acts" if acts else "waits"


def _written(limit: Limit) -> str:
    return limit.quantity if limit.fraction is None else f"{limit.fraction * 100:g}%"


def _whole(amount: Amount) -> int:
    """Rounded up, as a quantity's value is, and within 64 bits."""
    return max(-INT64_MAX, min(math.ceil(amount), INT64_MAX))
