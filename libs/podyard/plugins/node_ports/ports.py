"""When two pods ask for the same port of a node, and which nodes have it taken.

Source: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/framework/types.go
(HostPortInfo.CheckConflict).
"""

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.framework.interfaces import Rows
from podyard.proto.placement import HostPort

ANY_ADDRESS: Final = "0.0.0.0"
"""Host IP of a port that is taken on all of the node's addresses; also what a port without a host IP
means."""

PortKey: TypeAlias = tuple[str, int]
"""(protocol, port number)."""

NOBODY: Final[dict[int, dict[str, int]]] = {}


def conflict(wanted: HostPort, used: HostPort) -> bool:
    """Whether both cannot be on one node: same protocol and number, and the same address or one of them all
    addresses."""
    if wanted.port != used.port or wanted.protocol != used.protocol:
        return False
    return wanted.ip == used.ip or ANY_ADDRESS in (wanted.ip, used.ip)


def fits(wanted: Sequence[HostPort], used: Iterable[HostPort]) -> bool:
    """Whether all wanted ports are free beside the used ones."""
    return not any(conflict(one, other) for other in used for one in wanted)


class PortsInUse:
    """Which rows have which ports taken, by how many pods for each address.

    Invariant: holds exactly the ports of the pods on live rows; no empty entries.
    """

    __slots__ = ("_table", "_taken")

    def __init__(self, table: NodeTable) -> None:
        self._table = table
        self._taken: dict[PortKey, dict[int, dict[str, int]]] = {}

    def add(self, pod: PlacedPod, row: int) -> None:
        """A pod came to this row."""
        for port in pod.usage.ports:
            addresses = self._taken.setdefault((port.protocol, port.port), {}).setdefault(row, {})
            addresses[port.ip] = addresses.get(port.ip, 0) + 1

    def remove(self, pod: PlacedPod, row: int) -> None:
        """A pod left this row."""
        for port in pod.usage.ports:
            key = (port.protocol, port.port)
            rows = self._taken[key]
            addresses = rows[row]
            addresses[port.ip] -= 1
            if not addresses[port.ip]:
                del addresses[port.ip]
            if not addresses:
                del rows[row]
            if not rows:
                del self._taken[key]

    def conflicting(self, wanted: Sequence[HostPort], rows: Rows) -> NDArray[np.bool_]:
        """For each of `rows` whether one of the wanted ports is taken there."""
        taken = np.zeros(self._table.capacity, dtype=np.bool_)
        for port in wanted:
            users = self._taken.get((port.protocol, port.port), NOBODY)
            if port.ip == ANY_ADDRESS:
                taken[list(users)] = True
            else:
                taken[[row for row, ips in users.items() if port.ip in ips or ANY_ADDRESS in ips]] = True
        return taken[rows]
