"""What spans are about, in the words of OpenTelemetry's semantic conventions (Kubernetes, `k8s.*`), and the
name of what several services do."""

from typing import Final

from podyard.telemetry.tracing import AttributeValue

NAMESPACE: Final = "k8s.namespace.name"
POD: Final = "k8s.pod.name"
POD_UID: Final = "k8s.pod.uid"
NODE: Final = "k8s.node.name"
EVICT_SPAN: Final = "evict pod"
"""Name of the span of an eviction, whichever service evicts: people look for it by its name."""


def owner_attribute(kind: str) -> str:
    """Name of the attribute that names a workload.

    :param kind: in lower case: deployment, replicaset ...
    """
    return f"k8s.{kind}.name"


def received(subject: str) -> dict[str, AttributeValue]:
    """Of a span that works on what came over the bus."""
    return {
        "messaging.system": "nats",
        "messaging.operation.type": "process",
        "messaging.destination.name": subject,
    }


def sent(subject: str) -> dict[str, AttributeValue]:
    """Of a span that hands something over."""
    return {"messaging.system": "nats", "messaging.operation.type": "send", "messaging.destination.name": subject}


def pod_attributes(
    namespace: str, name: str, *, uid: str | None = None, node: str | None = None
) -> dict[str, AttributeValue]:
    """A pod's; without those that are None."""
    found: dict[str, AttributeValue] = {NAMESPACE: namespace, POD: name}
    if uid is not None:
        found[POD_UID] = uid
    if node is not None:
        found[NODE] = node
    return found
