"""Which nodes have which host ports taken."""

from collections.abc import Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from podyard.cluster.node_table import NodeTable, PlacedPod
from podyard.framework.interfaces import Rows
from podyard.objects.host_ports import ANY_ADDRESS
from podyard.proto.placement import HostPort

PortKey: TypeAlias = tuple[str, int]
"""(protocol, port number)."""

NOBODY: Final[dict[int, dict[str, int]]] = {}


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
