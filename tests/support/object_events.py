"""Objects as they are stored: what a test writes into CLUSTER by itself."""

import json
from typing import Any

import msgspec

from podyard.proto import subjects
from podyard.proto.events import ClusterEvent


def event_of(resource: str, namespace: str, document: dict[str, Any], who: str) -> tuple[str, ClusterEvent]:
    """Subject and message of an object's version."""
    metadata = document["metadata"]
    event = ClusterEvent(
        resource=resource,
        namespace=namespace,
        name=metadata["name"],
        uid=metadata["uid"],
        who=who,
        object=msgspec.Raw(json.dumps(document).encode()),
    )
    return subjects.object_(resource, namespace, metadata["name"]), event
