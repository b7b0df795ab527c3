"""What one scheduling attempt found: kept in the binding if it bound, in DECISIONS if not."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.message import DEFAULT_SCHEDULER, Count, Int64, Message

Outcome: TypeAlias = Literal["scheduled", "unschedulable", "error", "bindError", "gated"]


class Rejection(Message, frozen=True, kw_only=True):
    """How many nodes one plugin rejected for one reason."""

    plugin: str
    reason: str
    nodes: Count
    unresolvable: Annotated[bool, Meta(description="preemption cannot help")] = False
    examples: Annotated[tuple[str, ...], Meta(description="up to 3 node names, sorted")] = ()
    nearest: Annotated[
        str, Meta(description="of an attempt that found no node: which of the nodes lacks least; empty: not told")
    ] = ""
    detail: Annotated[
        str, Meta(description="what is in the way there, with numbers and names, as of the attempt; empty: not told")
    ] = ""
    lacks: Annotated[
        str, Meta(description="of an amount: how much more would have to be free there, `500m`; empty: it is none")
    ] = ""


class NodeScore(Message, frozen=True, kw_only=True):
    """The weighted, normalised points of one feasible node."""

    node: str
    total: Int64
    plugins: Annotated[dict[str, Int64], Meta(description="points by plugin; a missing one was skipped")] = {}


class Victim(Message, frozen=True, kw_only=True):
    """A pod that is preempted for another."""

    namespace: str
    name: str
    uid: str
    priority: Int64 = 0
    pdb_violation: bool = False


class WakeUp(Message, frozen=True, kw_only=True):
    """What moved a parked pod: an event, and the plugin whose hint answered Queue."""

    event_id: Annotated[str, Meta(description="the RequeueRecord's key begins with it")] = ""
    event: Annotated[str, Meta(description="label, e.g. NodeUpdateNodeTaint, or BackoffComplete, UnschedulableTimeout")]
    object: Annotated[str, Meta(description="namespace/name of the object that changed")] = ""
    plugin: str = ""
    reason: Annotated[str, Meta(description="the hint's answer in words")] = ""
    own: Annotated[bool, Meta(description="by a hint of Podyard's own, which kube-scheduler lacks")] = False
    at: Annotated[float, Meta(description="seconds since 1970, UTC")] = 0.0
    trace: Annotated[str, Meta(description="traceparent of the event")] = ""


class AttemptRecord(Message, frozen=True, kw_only=True):
    """One attempt to schedule one pod, on `decisions.<ns>.<pod>.<uid>` (or inside the binding).

    Sent by the scheduler that made the attempt; by the queue for gated pods, and for attempts that it had to
    end itself (their scheduler died, or no binding came). Key: `attempt`; a duplicate is the same record.
    """

    namespace: str
    name: str
    uid: str
    attempt: str
    number: Annotated[Count, Meta(description="1 for the pod's first attempt")] = 1
    scheduler: Annotated[str, Meta(description="session that decided")] = ""
    profile: str = DEFAULT_SCHEDULER
    outcome: Outcome
    node: Annotated[str, Meta(description="chosen node, empty if none")] = ""
    at: Annotated[float, Meta(description="end of the attempt, seconds since 1970, UTC")]
    queued_at: Annotated[float, Meta(description="when the pod became ready for this attempt: it entered activeQ")] = (
        0.0
    )
    popped_at: Annotated[float, Meta(description="when a scheduler took it; 0: not told")] = 0.0
    parked_s: Annotated[float, Meta(description="how long it was parked or gated before it backed off")] = 0.0
    backed_off_s: Annotated[float, Meta(description="how long it backed off before it was ready")] = 0.0
    duration_us: Annotated[Count, Meta(description="of the scheduling cycle")] = 0
    position: Annotated[Count, Meta(description="CLUSTER sequence it was decided at")] = 0
    nodes_total: Count = 0
    nodes_feasible: Count = 0
    rejections: tuple[Rejection, ...] = ()
    nearest: Annotated[
        str,
        Meta(
            description="of an attempt that found no node: the one that passes most plugins of Filter, and lacks least"
        ),
    ] = ""
    scores: Annotated[tuple[NodeScore, ...], Meta(description="the best nodes, best first, at most 3")] = ()
    message: Annotated[str, Meta(description="the reference's FitError text, or the error")] = ""
    unschedulable_plugins: tuple[str, ...] = ()
    pending_plugins: tuple[str, ...] = ()
    obstacles: Annotated[
        dict[str, tuple[str, ...]],
        Meta(description="plugin -> what stands in the pod's way, for the plugin's own hints"),
    ] = {}
    nominated_node: str = ""
    victims: tuple[Victim, ...] = ()
    woken_by: WakeUp | None = None
    trace: Annotated[str, Meta(description="traceparent of the attempt's root span")] = ""
    previous_trace: Annotated[str, Meta(description="traceparent of the last attempt before whose trace is kept")] = ""


def message_id(record: AttemptRecord) -> str:
    """By what the stream of decisions knows a repetition of a record, whoever sends it.

    One outcome of one attempt of one pod is one record. A pod may be gated several times between two
    attempts: each of those records says when, too.
    """
    known = f"{record.uid}/{record.attempt}/{record.outcome}"
    return f"{known}/{record.at:.6f}" if record.outcome == "gated" else known
