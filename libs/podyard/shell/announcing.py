"""Events for people about one object. Nobody waits for them: losing one loses nothing but news."""

from typing import Final

from podyard.bus import Bus
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent

_KINDS: Final = {subjects.PODS: "Pod", subjects.NODES: "Node"}
"""As their subjects name them, where readers look for those of one object; of others subjects name the
resource."""


def announce(
    bus: Bus,
    about: ObjectRef,
    *,
    reporter: str,
    reason: str,
    message: str,
    at: float,
    warning: bool = False,
    trace: str = "",
) -> None:
    """Send an event.

    :param reporter: the service whose event it is
    :param reason: one word in CamelCase
    :param at: seconds since 1970, UTC
    :param trace: traceparent of what it tells of
    """
    event = K8sEvent(
        regarding=about,
        type="Warning" if warning else "Normal",
        reason=reason,
        message=message,
        reporter=reporter,
        at=at,
        trace=trace,
    )
    kind = _KINDS.get(about.resource, about.resource)
    bus.send(subjects.k8s_event(about.namespace, kind, about.name), codec.encode(event), trace=trace)
