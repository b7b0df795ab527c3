"""What a preemption does to others, as far as the scheduler can do it by itself."""

from collections.abc import Sequence

from podyard.cluster.pods import PodView
from podyard.proto.decisions import Victim
from podyard.scheduler.core.asking_again import AskingAgain
from podyard.scheduler.core.assumptions import WAITS, Phase
from podyard.scheduler.core.outcomes import Way
from podyard.scheduler.core.placing import Placing
from podyard.scheduler.core.requests import Requests
from podyard.scheduler.core.settling import Settling


class Clearing:
    """Makes way on a node. Source: kube-scheduler v1.36.2, preemption/executor.go (prepareCandidateAsync)."""

    def __init__(self, placing: Placing, settling: Settling, requests: Requests, asking_again: AskingAgain) -> None:
        self._placing = placing
        self._settling = settling
        self._requests = requests
        self._asking_again = asking_again

    def clear(self, pod: PodView, node: str, victims: Sequence[Victim], now: float) -> Way:
        """End nominations of lower priority, send back victims that are only assumed. Others are to be
        deleted.

        Victims that end already need no push.
        """
        why = f"preempted by {pod.namespace}/{pod.name} on {node}"
        cleared = self._placing.end_nominations(node, below=pod.priority)
        sent_back, doomed = list[Victim](), list[Victim]()
        for victim in victims:
            placed = self._placing.table.placed(victim.uid)
            if placed is not None and not placed.deleting:
                (sent_back if self._send_back(victim.uid, why, now) else doomed).append(victim)
        return Way(tuple(doomed), tuple(sent_back), cleared)

    def _send_back(self, uid: str, why: str, now: float) -> bool:
        """A pod that waits at Permit, or that the binder was not asked for yet, loses its node and goes to
        backoff (docs/rules.md, binding-victim-is-not-deleted).

        One that waits in the binder is withdrawn: who carries the preemption out awaits the binder's word, as
        about any pod that it was asked for.

        :return: False if it is bound, or the binder may bind it any moment
        """
        assumption = self._placing.assumptions.get(uid)
        phase = None if assumption is None else assumption.phase
        if phase is not Phase.AT_PERMIT and not self._requests.withdraw(uid):
            if assumption is not None and phase in WAITS:
                self._asking_again.withdraw(assumption, now)
            return False
        self._settling.give_up(uid, "bindError", why, now)
        return True
