"""What may help a pod whose named node was missing. Source: kube-scheduler v1.36.2,
plugins/nodename/node_name.go."""

from podyard.framework import events
from podyard.framework.events import Registration


def registrations() -> tuple[Registration, ...]:
    """Any node that is added, without a closer look: names do not change."""
    return (Registration(events.NODE_ADD),)
