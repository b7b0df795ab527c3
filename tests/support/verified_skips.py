"""The binder skips filters that would say yes (`binder.core.skipping`). Here they are asked after all.

monkeypatch.setattr(node_takes_pod, "judge", verified_skips.judge)
verified_skips.verify(True)  # in this process, until it is said otherwise
"""

from typing import Any, Final

from podyard.binder.core import node_takes_pod
from podyard.binder.core.node_takes_pod import Accepted
from podyard.framework.status import Status
from podyard.proto.binder_api import BindAnswer, Decision

_PLAIN: Final = node_takes_pod.judge


class WrongSkip(AssertionError):
    """The filters were skipped and would have said no."""

    def __init__(self, decision: Decision, status: Status) -> None:
        self.decision = decision
        self.status = status
        super().__init__(f"{decision.attempt} on {decision.node}, decided at {decision.position}: {status}")


def judge(
    decision: Decision, world: Any, profiles: Any, *rest: Any, skip: bool = False, **more: Any
) -> Accepted | BindAnswer:
    """As the binder does; then ask all filters about what it has skipped them for.

    :raises WrongSkip: if they say no
    """
    verdict = _PLAIN(decision, world, profiles, *rest, skip=skip, **more)
    if skip and isinstance(verdict, Accepted):
        profile = profiles[decision.profile]
        status = node_takes_pod.one_node.filter_one(profile, decision.node, verdict.pod, world.snapshot)
        if not status.ok:
            raise WrongSkip(decision, status)
    return verdict


def verify(on: bool) -> None:
    """Whether skips are verified in this process."""
    node_takes_pod.judge = judge if on else _PLAIN
