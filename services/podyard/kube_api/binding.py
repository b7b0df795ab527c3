"""Bindings that somebody else's scheduler asks for: a decision to the binder, like any of Podyard's own
schedulers, and the answer once the outcome is known.
"""

import itertools
from collections.abc import Awaitable, Callable
from typing import Final

import anyio
import msgspec

from podyard.bus.connection import Bus
from podyard.bus.errors import BusError, TemporaryError
from podyard.cluster.pods import PodView
from podyard.kube_api.core import bindings
from podyard.proto import codec, subjects
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest, Decision, NumberRange
from podyard.proto.codec import MessageError
from podyard.proto.decisions import AttemptRecord
from podyard.proto.message import DEFAULT_SCHEDULER

BIND_S: Final = 30.0
"""How long the binder is asked. Volumes may be made meanwhile."""
WITHDRAW_S: Final = 5.0
"""How long it may take after that to have it say that nothing comes of it any more."""
TRY_S: Final = 5.0
"""Until a request is sent again: the binder holds none for longer."""
WAITING_S: Final = 1.0
"""Between two questions about a decision that waits for its volumes."""
PAUSE_S: Final = 0.2
"""After a request that was not answered, or refused as a whole."""
SEEN_S: Final = 10.0
"""How long until a binding has come back: much longer than it takes, or the answer is told before."""


class Binding:
    """Has pods bound. Owned by the service's event loop."""

    def __init__(
        self,
        bus: Bus,
        session: str,
        reached: Callable[[int], Awaitable[None]],
        decided_at: Callable[[PodView, str], int],
        now: Callable[[], float],
    ) -> None:
        """
        :param session: unique to this process' start: decisions are known by it and their number
        :param reached: awaits that this instance has read so far
        :param decided_at: up to where the binder must have read to judge about a pod and a node
        :param now: seconds since 1970, UTC
        """
        self._bus = bus
        self._session = session
        self._reached = reached
        self._decided_at = decided_at
        self._now = now
        self._numbers = itertools.count(1)

    async def bind(self, pod: PodView, node: str, who: str) -> None:
        """Have a pod bound to a node. What is not clear in time is withdrawn.

        :param who: decided it
        :raises ApiError: it is not bound, and why; or nobody knows
        """
        decision = self._decision(pod, node, who)
        answer = await self._answer(decision, BIND_S)
        if isinstance(answer, str):
            answer = await self._answer(msgspec.structs.replace(decision, withdrawn=True), WITHDRAW_S)
        if isinstance(answer, str):
            raise bindings.unclear(pod.name, answer)
        refused = bindings.refusal(answer, pod.name, node)
        if refused is not None:
            raise refused
        with anyio.move_on_after(SEEN_S):
            await self._reached(answer.committed_at)

    def _decision(self, pod: PodView, node: str, who: str) -> Decision:
        number, position = next(self._numbers), self._decided_at(pod, node)
        attempt = f"{self._session}-{number}"
        profile = pod.stored.spec.scheduler_name or DEFAULT_SCHEDULER
        record = AttemptRecord(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            attempt=attempt,
            scheduler=self._session,
            profile=profile,
            outcome="scheduled",
            node=node,
            at=self._now(),
            position=position,
            message=f"decided outside of Podyard, by {who}",
        )
        return Decision(
            namespace=pod.namespace,
            name=pod.name,
            uid=pod.uid,
            attempt=attempt,
            node=node,
            number=number,
            position=position,
            profile=profile,
            record=record,
            foreign=True,
        )

    async def _answer(self, decision: Decision, limit_s: float) -> BindAnswer | str:
        """The binder's answer; if there is none in time, why. It is asked again while nobody answers, and
        while the decision waits: of a repetition it says what has become of the first."""
        own = NumberRange(first=decision.number, last=decision.number)
        request = BindRequest(session=self._session, decisions=(decision,))
        why, ends = "", anyio.current_time() + limit_s
        while (left_s := ends - anyio.current_time()) > 0:
            try:
                reply = await self._ask(request, min(left_s, TRY_S))
            except TemporaryError as error:
                why, pause_s = str(error), error.delay_s
            except (BusError, MessageError) as error:
                why, pause_s = str(error), PAUSE_S
            else:
                answer = next(iter(reply.answers), None)
                if answer is None:
                    why, pause_s = f"the binder refuses: {reply.refused}", PAUSE_S
                elif answer.result != "waiting":
                    return answer
                else:
                    why, pause_s = f"{answer.cause}: {'; '.join(answer.reasons)}", WAITING_S
                    request = msgspec.structs.replace(request, outstanding=(own,))
            await anyio.sleep(min(pause_s, max(0.0, ends - anyio.current_time())))
        return why

    async def _ask(self, request: BindRequest, timeout_s: float) -> BindReply:
        answer = await self._bus.request(subjects.BINDER_BIND, codec.encode(request), timeout_s=timeout_s)
        return codec.decode(BindReply, answer.payload)
