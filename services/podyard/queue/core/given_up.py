"""What a scheduler had promised a pod and promises no more, as events for those who wait for it."""

from typing import Final

import msgspec

from podyard.framework import events
from podyard.framework.events import ClusterEvent
from podyard.objects import claims
from podyard.objects.core import Pod
from podyard.proto.actions import ActionType
from podyard.proto.queue_api import AttemptResult
from podyard.queue.core.messages import Incoming
from podyard.queue.core.queued_pod import QueuedPod

VOLUMES_GIVEN_BACK: Final = ClusterEvent(events.PERSISTENT_VOLUME, ActionType.UPDATE)
"""Stands for the end of what a scheduler had promised a pod besides its room."""


def events_of(result: AttemptResult, pod: QueuedPod | None) -> list[Incoming]:
    """The room on the node that the result names is free, and the volumes that were promised with it.

    Hints look at the pod as it was assumed: by labels that it has lost since it kept others out until now.
    Without that version (the pod is gone, or this queue has not read so far) no hint can look at it: all say
    Queue.

    Of volumes no object tells, and the reference says nothing to those who wait for one; here they are told
    as if volumes had changed, by an event without objects.

    :param pod: None: the queue does not have it any more
    """
    assumed = None if pod is None else pod.version(result.version)
    old = None if assumed is None else on_node(assumed, result.assumed)
    told = Incoming(
        event=events.ASSIGNED_POD_DELETE,
        old=old,
        missed=old is None,
        id=f"dropped-{result.attempt}",
        object_name=f"{result.namespace}/{result.name}",
        why=f"its place on {result.assumed} was given up: {result.message or result.outcome}",
        trace=result.trace,
    )
    if pod is not None and not claims.has_claims(pod.pod):
        return [told]
    volumes = msgspec.structs.replace(told, event=VOLUMES_GIVEN_BACK, old=None, missed=True, id=f"{told.id}-volumes")
    return [told, volumes]


def on_node(pod: Pod, node: str) -> Pod:
    """The pod as it was assumed on a node."""
    return msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, node_name=node))
