"""When two pods ask for the same port of a node.

Source: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/framework/types.go
(HostPortInfo.CheckConflict).
"""

from collections.abc import Iterable, Sequence
from typing import Final

from podyard.proto.placement import HostPort

ANY_ADDRESS: Final = "0.0.0.0"
"""Host IP of a port that is taken on all of the node's addresses; also what a port without a host IP
means."""


def conflict(wanted: HostPort, used: HostPort) -> bool:
    """Whether both cannot be on one node: same protocol and number, and the same address or one of them all
    addresses."""
    if wanted.port != used.port or wanted.protocol != used.protocol:
        return False
    return wanted.ip == used.ip or ANY_ADDRESS in (wanted.ip, used.ip)


def spelled(port: HostPort) -> str:
    """`8080/TCP`, with the address if it is not all of them."""
    address = "" if port.ip == ANY_ADDRESS else f"{port.ip}:"
    return f"{address}{port.port}/{port.protocol}"


def fits(wanted: Sequence[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether all wanted ports are free beside the used ones."""
    return not any(conflict(one, other) for other in used for one in wanted)
