"""What was moved, and what came of it: the memory of the descheduler."""

from typing import Annotated, Literal, TypeAlias

from msgspec import Meta

from podyard.proto.bounds import Moment, Name, Text, Word
from podyard.proto.message import Message

MoveOutcome: TypeAlias = Literal["moving", "pending", "running", "back", "refused"]
"""moving: evicted, and nothing has come in its place yet. pending: what came has no node. running: on another
node. back: on the node that it left. refused: it stayed."""


class MoveRecord(Message, frozen=True, kw_only=True):
    """One pod that a plugin of the descheduler wanted to go, on `moves.<ns>.<kind>.<name>` of the workload at
    the top of its owners; the last 20 of each, a week. Written by the descheduler: when it happens, and again
    with the same `id` when more is known; the last one counts. Read by it and by people."""

    id: Annotated[Name, Meta(description="of the move; several records of one move have the same")]
    namespace: Name
    kind: Annotated[Name, Meta(description="of the workload: Deployment, ReplicaSet, ... or Pod")]
    name: Name
    owner: Annotated[Name, Meta(description="name of the pod's own controller, e.g. of the ReplicaSet")] = ""
    owner_uid: Name = ""
    pod: Name
    uid: Name
    from_node: Name
    at: Moment
    profile: Name
    plugin: Name
    reason: Text = ""
    planned_node: Annotated[Name, Meta(description="where it was planned to go; empty without a plan")] = ""
    plan_problem: Annotated[
        Text, Meta(description="why it should have stayed by the plan; with `plan: obey` it would have")
    ] = ""
    outcome: MoveOutcome = "moving"
    problem: Annotated[Text, Meta(description="why it stayed")] = ""
    to_pod: Annotated[Name, Meta(description="the pod that came in its place")] = ""
    to_uid: Name = ""
    to_node: Name = ""
    known_at: Annotated[Moment, Meta(description="when the outcome was seen")] = 0.0
    undoes: Annotated[
        Word, Meta(description="profile/plugin whose move this one undid: back to where that one had taken it from")
    ] = ""
    trace: Annotated[str, Meta(description="traceparent of the eviction")] = ""
