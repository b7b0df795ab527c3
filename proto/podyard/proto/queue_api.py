"""Requests to the queue's leader on `svc.queue.<verb>`, and its replies. Only the leader answers; the highest
epoch counts.
"""

from typing import Annotated, Final, TypeAlias

from msgspec import Meta, structs

from podyard.proto.bounds import Digests, Name
from podyard.proto.decisions import Outcome, WakeUp
from podyard.proto.events import BareEvent
from podyard.proto.message import DEFAULT_SCHEDULER, INT64_MAX, Count, Int64, Message, PodRef
from podyard.proto.pools import Pool
from podyard.proto.requeues import HintCall

KnownEpoch: TypeAlias = Annotated[
    Count, Meta(description="the highest epoch in an answer so far; a leader of a lower one steps down")
]


MOST_ATTEMPTS: Final = 65_536
"""Attempts of one session: more than a scheduler pops in the ten seconds after which it would count as
dead.
"""

Plugins: TypeAlias = Annotated[tuple[Name, ...], Meta(max_length=256)]
"""Names of plugins: a profile has some twenty."""


class PopRequest(Message, frozen=True, kw_only=True):
    """`pop`: a scheduler asks for work. Idempotent by `pop_id`: the same id gets the same answer again.

    The leader holds the request up to `wait_s` if nothing is ready.
    """

    session: Name
    pop_id: Annotated[str, Meta(min_length=1, max_length=253)]
    digests: Digests = {}
    max_pods: Annotated[int, Meta(ge=1, le=256)] = 256
    wait_s: Annotated[float, Meta(ge=0, le=10)] = 1.0
    epoch: KnownEpoch = 0


class PoppedPod(Message, frozen=True):
    """One pod to schedule. The scheduler has the object from its own informer, once that has reached
    `PopReply.position`.
    """

    namespace: str
    name: str
    uid: str
    attempt: Annotated[str, Meta(description="attempt id; carries the epoch")]
    number: Annotated[int, Meta(ge=1, le=INT64_MAX, description="attempts so far, this one included")] = 1
    profile: str = DEFAULT_SCHEDULER
    queued_at: Annotated[float, Meta(description="when it became ready; seconds since 1970, UTC")] = 0.0
    popped_at: Annotated[float, Meta(description="seconds since 1970, UTC")] = 0.0
    woken_by: WakeUp | None = None
    trace: Annotated[str, Meta(description="traceparent of the attempt's root span")] = ""
    previous_trace: Annotated[str, Meta(description="of the last attempt before whose trace is kept")] = ""
    parked_s: Annotated[float, Meta(description="how long it was parked or gated before `queued_at`")] = 0.0
    backed_off_s: Annotated[float, Meta(description="and how long in backoffQ or errorBackoffQ")] = 0.0
    thinned: Annotated[
        str, Meta(description="the failure (`failure_of`) whose trace is not kept: one of many equal ones; empty: none")
    ] = ""


class PopReply(Message, frozen=True, kw_only=True):
    """Pods in the order in which they are to be scheduled; or why none are given."""

    epoch: Count
    position: Annotated[Count, Meta(description="CLUSTER sequence the queue had reached")] = 0
    pods: tuple[PoppedPod, ...] = ()
    refused: Annotated[
        str, Meta(description="the difference in plugins or arguments, or why the session is refused")
    ] = ""


class SessionHeartbeat(Message, frozen=True, kw_only=True):
    """`heartbeat`, every 2 s: a session's open attempts. Attempts handed out up to `last_pop` that two
    heartbeats in a row do not list go back.

    A scheduler that ends in order says so with its last one, `over`, behind its last results. A repetition
    changes nothing; a queue that does not know the field takes it for a sign of life.
    """

    session: Name
    attempts: Annotated[tuple[Name, ...], Meta(max_length=MOST_ATTEMPTS)] = ()
    last_pop: Name = ""
    held: Annotated[
        tuple[Name, ...],
        Meta(max_length=MOST_ATTEMPTS, description="`waiting` as 0.1 called it: still read, written no more"),
    ] = ()
    epoch: KnownEpoch = 0
    waiting: Annotated[
        tuple[Name, ...],
        Meta(
            max_length=MOST_ATTEMPTS,
            description="attempts whose decision waits in the binder: their bindings may take long",
        ),
    ] = ()
    over: Annotated[
        bool,
        Meta(description="the session has ended, and pops no more: what it did not decide goes back at once"),
    ] = False

    def __post_init__(self) -> None:
        if self.held and not self.waiting:
            structs.force_setattr(self, "waiting", self.held)


class AttemptResult(Message, frozen=True, kw_only=True):
    """How one attempt ended. `nominated_node` None leaves the nomination, "" ends it."""

    namespace: Name
    name: Name
    uid: Name
    attempt: Name
    outcome: Outcome
    node: Name = ""
    unschedulable_plugins: Plugins = ()
    pending_plugins: Plugins = ()
    obstacles: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="plugin -> what stands in the pod's way, for the plugin's own hints"),
    ] = {}
    nominated_node: Name | None = None
    assumed: Annotated[
        Name, Meta(description="node on which the pod was assumed and is no more: AssignedPodDelete for the others")
    ] = ""
    version: Annotated[
        Count, Meta(description="CLUSTER sequence of the pod's object as it was assumed there; 0: unknown")
    ] = 0
    message: str = ""
    gone: Annotated[
        bool, Meta(description="the pod was not tried: it is being deleted, or is no more; it is not tried again")
    ] = False
    trace: Annotated[str, Meta(description="traceparent of the attempt's root span, its flags as sampled")] = ""
    cleared: Annotated[
        tuple[PodRef, ...],
        Meta(
            max_length=MOST_ATTEMPTS,
            description="pods of lower priority whose nomination ends: this pod preempts for their node",
        ),
    ] = ()


def failure_of(result: AttemptResult) -> str:
    """What tells a failure from another one of the same pod: how it ended, and by whom. Messages do not: they
    name numbers of nodes, which change with the cluster.

    :return: empty if it is like no other: a decision that was refused, a pod for which others make room
    """
    if result.outcome == "bindError" or result.nominated_node:
        return ""
    return "/".join((result.outcome, *sorted({*result.unschedulable_plugins, *result.pending_plugins})))


class DoneRequest(Message, frozen=True, kw_only=True):
    """`done`: results of attempts. Idempotent by attempt id; a late one of a dead session is refused."""

    session: Name
    results: Annotated[tuple[AttemptResult, ...], Meta(max_length=1024)]
    epoch: KnownEpoch = 0


class ActivateRequest(Message, frozen=True, kw_only=True):
    """`activate`: move these parked pods to activeQ without asking hints.

    Sent by tools of others that know what no event says, with a scheduler's identity and an empty `session`
    (one that is named lives from then on); nothing of Podyard's sends it. A repetition changes nothing: a pod
    in activeQ stays there. One that comes after the pod was handed out has it tried once more, should that
    attempt not bind it.
    """

    session: Name = ""
    pods: Annotated[tuple[PodRef, ...], Meta(max_length=256)]


class PreemptingRequest(Message, frozen=True, kw_only=True):
    """`preempting`: an asynchronous preemption of a pod starts or ends; it ends with its session. `victim` is
    the last one.

    A start that comes after the end of its attempt's preemption is ignored, and so is one that is for an
    earlier leader: a late repetition of it would never be ended here.
    """

    session: Name
    pod: PodRef
    running: bool
    victim: PodRef | None = None
    attempt: Annotated[Name, Meta(description="the attempt that preempts; empty: unknown")] = ""
    epoch: KnownEpoch = 0


class QueueReply(Message, frozen=True, kw_only=True):
    """Answer to heartbeat, done, activate and preempting."""

    epoch: Count
    refused: Annotated[str, Meta(description="why nothing was done; empty if it was")] = ""
    unknown: Annotated[tuple[str, ...], Meta(description="attempt ids that are not open here (any more)")] = ()
    outdated: Annotated[
        bool, Meta(description="the request knows of an earlier leader only, and was ignored: to be asked again")
    ] = False


class WouldRequest(Message, frozen=True, kw_only=True):
    """`would`: what an event would do to one pod of the queue. Nothing is moved, nothing is recorded."""

    namespace: Name
    name: Name
    event: BareEvent


class WouldVerdict(Message, frozen=True, kw_only=True):
    """What one action of the event would do."""

    event: Annotated[str, Meta(description="label, e.g. NodeUpdateNodeTaint")]
    moves: bool
    to: Annotated[str, Meta(description="pool it would move to; empty if it stays")] = ""
    plugin: Annotated[str, Meta(description="whose hint decides; empty if no hint is needed")] = ""
    hints: tuple[HintCall, ...] = ()
    note: Annotated[str, Meta(description="why no hint is asked, in words")] = ""


class WouldReply(Message, frozen=True, kw_only=True):
    """One verdict an action, in order; none if the queue does not have the pod."""

    epoch: Count
    position: Count = 0
    pool: Annotated[str, Meta(description="where the pod is; empty: not in the queue")] = ""
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    verdicts: tuple[WouldVerdict, ...] = ()


class QueueListRequest(Message, frozen=True, kw_only=True):
    """`list`: what is where. Empty filters mean everything; at most `limit` pods are listed, counts are of
    all.
    """

    pool: Name = ""
    namespace: Name = ""
    name: Name = ""
    limit: Annotated[int, Meta(ge=0, le=10_000)] = 500


class QueuedPodInfo(Message, frozen=True, kw_only=True):
    """Where one pod is, since when, until when."""

    namespace: str
    name: str
    uid: str
    pool: Pool
    priority: Int64 = 0
    attempts: Int64 = 0
    since: Annotated[float, Meta(description="seconds since 1970, UTC")] = 0.0
    until: Annotated[float | None, Meta(description="end of backoff, or of the wait for its binding")] = None
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    gating_plugin: str = ""
    nominated_node: str = ""
    woken_by: WakeUp | None = None
    session: Annotated[str, Meta(description="scheduler that has it in flight")] = ""
    message: str = ""


class OutsidePod(Message, frozen=True, kw_only=True):
    """A pod without a node that is in no pool: nobody schedules it. Either `scheduler` or `node` is given."""

    namespace: str
    name: str
    uid: str
    scheduler: Annotated[str, Meta(description="its schedulerName, if no profile has that name")] = ""
    node: Annotated[str, Meta(description="its nodeName, if there is no node of that name")] = ""


class QueueListReply(Message, frozen=True, kw_only=True):
    """The queue's pools: counts of all, and up to `limit` pods in pop order, pool by pool; pods that are in
    no pool, if none was named.
    """

    epoch: Count
    position: Count = 0
    leader: str = ""
    counts: dict[str, Int64] = {}
    pods: tuple[QueuedPodInfo, ...] = ()
    left_out: Annotated[
        Count, Meta(description="pods that were asked for, above the limit or what a message can hold")
    ] = 0
    sessions: dict[str, Int64] = {}
    profiles: Annotated[tuple[str, ...], Meta(description="names of the profiles that are scheduled here")] = ()
    outside: Annotated[
        tuple[OutsidePod, ...], Meta(description="of the pods that nobody schedules the first by name, at most 256")
    ] = ()
    outside_total: Annotated[Count, Meta(description="how many there are")] = 0
