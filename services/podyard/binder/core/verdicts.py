"""What is to become of one pending decision: decided here, done in `gathering`."""

from collections.abc import Callable, Iterable, Mapping
from enum import Enum, auto
from typing import Final, NamedTuple, TypeAlias

from podyard.binder.core import node_takes_pod, points
from podyard.binder.core.batch import CAUSE_SIZE, Batch, first_writes, subjects_of, too_many
from podyard.binder.core.node_takes_pod import Accepted, ChildTrace
from podyard.binder.core.pending import Pending
from podyard.binder.core.world import World
from podyard.framework.extenders import Extender
from podyard.framework.profile import Profile
from podyard.proto.binder_api import BindAnswer

CAUSE_WITHDRAWN: Final = "withdrawn"
CAUSE_SET_ASIDE: Final = "setAside"
"""A binder raised on an earlier decision about the pod."""


class Waits(NamedTuple):
    """A PreBind plugin waits."""

    accepted: Accepted


class Asks(NamedTuple):
    """The extender that binds is to be asked."""

    accepted: Accepted
    extender: str


class Later(Enum):
    """A mate in the batch is in the way: judged again when that is durable."""

    LATER = auto()


Verdict: TypeAlias = Accepted | BindAnswer | Waits | Asks | Later
"""Accepted: its binding is to be written. An answer: it is refused."""


class Verdicts:
    """Decides by the world as it is. Changes nothing."""

    def __init__(
        self,
        world: World,
        profiles: Mapping[str, Profile],
        child_trace: ChildTrace,
        binding_extender: Extender | None,
        set_aside: Callable[[Iterable[str]], str],
    ) -> None:
        """
        :param binding_extender: the one that binds the pods that it is interested in
        :param set_aside: why no decision about one of these pods is judged; empty: it is
        """
        self._world = world
        self._profiles = profiles
        self._child_trace = child_trace
        self._extender = binding_extender
        self._set_aside = set_aside

    def on(self, pending: Pending, batch: Batch) -> Verdict:
        """The verdict on a decision whose position is reached.

        :param batch: what is to be written with it; mates whose bindings it holds count in the world already
        """
        if reason := self._set_aside((pending.decision.uid,)):
            return node_takes_pod.refuse(pending.decision, self._world, CAUSE_SET_ASIDE, reason)
        found: Accepted | BindAnswer | None = None
        if pending.standing is not None and not pending.withdrawn:
            found = self._still_waiting(pending)
        if found is None:
            found = self._in_full(pending)
        if isinstance(found, BindAnswer):
            return found
        if pending.withdrawn:
            return error(pending, CAUSE_WITHDRAWN, "its scheduler wants it no more")
        writes = first_writes(found) if found.waits else found.writes
        if writes and (fault := too_many(writes)):
            return error(pending, CAUSE_SIZE, fault)
        if self._extender is not None and not found.waits and self._extender_binds(self._extender, pending, found):
            return Asks(found, self._extender.name)
        if writes and subjects_of(writes) & batch.touched:
            return Later.LATER
        return Waits(found) if found.waits else found

    def _in_full(self, pending: Pending) -> Accepted | BindAnswer:
        return node_takes_pod.judge(
            pending.decision,
            self._world,
            self._profiles,
            self._child_trace,
            pending.memory,
            skip=self._world.may_skip(pending),
        )

    def _still_waiting(self, pending: Pending) -> Accepted | BindAnswer | None:
        """Ask only PreBind, as long as it waits: a Filter may well say no while a volume is made, which takes
        the room it needs.

        :return: None if the decision is to be judged in full
        """
        decision, world = pending.decision, self._world
        pod = world.view.pods_by_uid.get(decision.uid)
        profile = self._profiles.get(decision.profile)
        if pod is None or profile is None or pod.deleting or pod.ended or pod.bound is not None:
            return None
        if decision.node not in world.table.row_of:
            return None
        prepared = points.prepare(
            profile, pod, world.snapshot, decision.node, decision.volumes, pending.memory, times=world.point_times
        )
        if not prepared.status.ok:
            return node_takes_pod.not_prepared(decision, prepared)
        if not prepared.waits:
            return None
        bound = node_takes_pod.as_bound(decision, pod, self._child_trace)
        return Accepted(bound, pod, waits=prepared.waits, memory=prepared.memory)

    def _extender_binds(self, extender: Extender, pending: Pending, accepted: Accepted) -> bool:
        """Whether the extender is to be asked to bind; else the binder itself does. Source: schedule_one.go,
        extendersBinding. Of a foreign decision nobody is: whoever made it has asked its own."""
        return not pending.decision.foreign and not pending.extender_bound and extender.is_interested(accepted.pod)


def error(pending: Pending, cause: str, *reasons: str) -> BindAnswer:
    """The answer that a decision cannot be carried out."""
    return node_takes_pod.answer(pending.decision, "error", cause, *reasons)
