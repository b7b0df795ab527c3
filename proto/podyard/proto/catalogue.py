"""Every message with the subject it travels on: schemas, the AsyncAPI document and golden bytes are made from
this table."""

from typing import Final, Literal, NamedTuple

import msgspec

from podyard.proto import (
    agents_api,
    binder_api,
    census,
    decisions,
    events,
    facts,
    moves,
    objects_api,
    operations,
    placement,
    queue_api,
    requeues,
    scheduler_api,
    signals,
    streams,
)


class Channel(NamedTuple):
    """One address of the bus. `messages` are what it may carry; `reply` is what a request on it gets."""

    name: str
    address: str
    """Subject with `{parameters}`."""
    messages: tuple[type[msgspec.Struct], ...]
    kind: Literal["state", "log", "request", "ephemeral"]
    stream: streams.StreamSpec | None = None
    reply: type[msgspec.Struct] | None = None


POD = "{namespace}.{pod}.{uid}"

CHANNELS: Final[tuple[Channel, ...]] = (
    Channel("object", "cluster.{resource}.{namespace}.{name}", (events.ClusterEvent,), "state", streams.CLUSTER),
    Channel("podStatus", "cluster.podstatus.{node}." + POD, (facts.PodStatusFact,), "state", streams.CLUSTER),
    Channel("nodeStatus", "cluster.nodestatus.{node}", (facts.NodeStatusFact,), "state", streams.CLUSTER),
    Channel("nodeLife", "cluster.nodelife.{node}", (facts.NodeLifeFact,), "state", streams.CLUSTER),
    Channel("nomination", "cluster.nominations." + POD, (facts.Nomination,), "state", streams.CLUSTER),
    Channel(
        "quotaUsage", "cluster.quotausage.{namespace}.{quota}.{uid}", (facts.QuotaUsageFact,), "state", streams.CLUSTER
    ),
    Channel("podScheduled", "cluster.podscheduled." + POD, (facts.PodScheduledFact,), "state", streams.CLUSTER),
    Channel("binding", "placement.bindings." + POD, (placement.Binding, placement.Tombstone), "state", streams.CLUSTER),
    Channel("commit", "placement.commits.{n}", (placement.CommitRecord,), "state", streams.CLUSTER),
    Channel("fence", "placement.fence", (placement.Fence,), "state", streams.CLUSTER),
    Channel("census", "cluster.census", (census.Census,), "state", streams.CLUSTER),
    Channel("attempt", "decisions." + POD, (decisions.AttemptRecord,), "log", streams.DECISIONS),
    Channel("requeue", "requeues.{event}", (requeues.RequeueRecord,), "log", streams.REQUEUES),
    Channel("move", "moves.{namespace}.{kind}.{name}", (moves.MoveRecord,), "log", streams.MOVES),
    Channel(
        "k8sEvent", "k8sevents.{namespace}.{kind}.{name}.{event}", (operations.K8sEvent,), "log", streams.K8SEVENTS
    ),
    Channel("lease", "leases.{service}", (operations.Lease,), "state", streams.LEASES),
    Channel("dead", "dead.{service}", (operations.DeadLetter,), "log", streams.DEAD),
    Channel("pop", "svc.queue.pop", (queue_api.PopRequest,), "request", reply=queue_api.PopReply),
    Channel("done", "svc.queue.done", (queue_api.DoneRequest,), "request", reply=queue_api.QueueReply),
    Channel("heartbeat", "svc.queue.heartbeat", (queue_api.SessionHeartbeat,), "request", reply=queue_api.QueueReply),
    Channel("activate", "svc.queue.activate", (queue_api.ActivateRequest,), "request", reply=queue_api.QueueReply),
    Channel(
        "preempting", "svc.queue.preempting", (queue_api.PreemptingRequest,), "request", reply=queue_api.QueueReply
    ),
    Channel("queueList", "svc.queue.list", (queue_api.QueueListRequest,), "request", reply=queue_api.QueueListReply),
    Channel("would", "svc.queue.would", (queue_api.WouldRequest,), "request", reply=queue_api.WouldReply),
    Channel(
        "wouldGo",
        "svc.scheduler.would",
        (scheduler_api.WouldGoRequest,),
        "request",
        reply=scheduler_api.WouldGoReply,
    ),
    Channel("bind", "svc.binder.bind", (binder_api.BindRequest,), "request", reply=binder_api.BindReply),
    Channel("apply", "svc.objects.apply", (objects_api.ApplyRequest,), "request", reply=objects_api.ObjectsReply),
    Channel(
        "applyNode",
        "svc.objects.apply.{node}",
        (objects_api.ApplyRequest,),
        "request",
        reply=objects_api.ObjectsReply,
    ),
    Channel("delete", "svc.objects.delete", (objects_api.DeleteRequest,), "request", reply=objects_api.ObjectsReply),
    Channel("evict", "svc.objects.evict", (objects_api.EvictRequest,), "request", reply=objects_api.ObjectsReply),
    Channel("reveal", "svc.objects.reveal", (objects_api.RevealRequest,), "request", reply=objects_api.RevealReply),
    Channel(
        "preview",
        "svc.agents.{node}.preview",
        (agents_api.PreviewRequest,),
        "request",
        reply=agents_api.PreviewReply,
    ),
    Channel("bareEvent", "events.{resource}.{action}", (events.BareEvent,), "ephemeral"),
    Channel("signals", "signals.{node}", (signals.NodeSignals,), "ephemeral"),
    Channel("usage", "usage.{node}", (signals.NodeUsage,), "ephemeral"),
    Channel("nodeHeartbeat", "heartbeat.{node}", (signals.NodeHeartbeat,), "ephemeral"),
)


def messages() -> tuple[type[msgspec.Struct], ...]:
    """Every message type that travels by itself, replies included, each once, by name."""
    found = {message for channel in CHANNELS for message in channel.messages}
    found |= {channel.reply for channel in CHANNELS if channel.reply is not None}
    return tuple(sorted(found, key=lambda message: message.__name__))
