"""What may help a pod whose host ports are taken on every node.

Source: kube-scheduler v1.36.2, plugins/nodeports/node_ports.go (isSchedulableAfterPodDeleted).
"""

from collections.abc import Hashable, Iterable
from typing import Any, cast

from podyard.framework import events
from podyard.framework.events import ClusterEvent, HintResult, Registration
from podyard.objects import host_ports, pod_requests
from podyard.objects.core import Pod
from podyard.plugins import hinted
from podyard.plugins.hint_indexes import KeyIndex
from podyard.proto.actions import ActionType


def after_pod_deleted(pod: Pod, old: object | None, new: object | None) -> HintResult:
    """Queue if a pod left its node (or its nomination) and had a port that this pod wants."""
    gone = hinted.gone(Pod, old, None)
    name = "/".join(gone.key)
    node = hinted.place_of(gone)
    if not node:
        return events.skip(f"{name} was on no node")
    freed, wanted = pod_requests.host_ports(gone), pod_requests.host_ports(pod)
    if not freed:
        return events.skip(f"{name} had no host port")
    for port in freed:
        for one in wanted:
            if host_ports.conflict(one, port):
                return events.queue(
                    f"{name} freed port {host_ports.spelled(port)} on {node}, the pod needs {host_ports.spelled(one)}"
                )
    listed = ", ".join(map(host_ports.spelled, freed))
    return events.skip(f"{name} freed {listed} on {node}, none of which the pod needs")


def _index() -> KeyIndex[Any]:
    """By protocol and port number: addresses are left to the hint."""
    return KeyIndex(_wanted, _freed)


def _wanted(signature: Any) -> Iterable[Hashable] | None:
    """Of a pod that could not be read nothing is known."""
    if not isinstance(signature, tuple):
        return None
    ports = cast("Iterable[tuple[str, int, str]]", signature)
    return [(protocol, port) for protocol, port, _ in ports]


def _freed(old: object | None, new: object | None) -> Iterable[Hashable] | None:
    if not isinstance(old, Pod):
        return None
    return [(port.protocol, port.port) for port in pod_requests.host_ports(old)]


def registrations() -> tuple[Registration, ...]:
    """Pods that leave, and any node that is added."""
    return (
        Registration(ClusterEvent(events.POD, ActionType.DELETE), after_pod_deleted, _index),
        Registration(events.NODE_ADD),
    )
