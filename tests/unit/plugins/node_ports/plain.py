"""NodePorts, read plainly: a node keeps, by address, the set of (protocol, port) in use."""

from typing import Any

Manifest = dict[str, Any]


def wanted(pod: Manifest) -> list[tuple[str, str, int]]:
    """(address, protocol, port) of containers and of init containers that go on running."""
    spec = pod["spec"]
    running = [
        *spec.get("containers", []),
        *(one for one in spec.get("initContainers", []) if one.get("restartPolicy") == "Always"),
    ]
    return [
        (port.get("hostIP") or "0.0.0.0", port.get("protocol") or "TCP", port["hostPort"])
        for container in running
        for port in container.get("ports", [])
        if port.get("hostPort", 0) > 0
    ]


def fits(pod: Manifest, placed: list[Manifest]) -> bool:
    """Whether all ports of the pod are free."""
    used: dict[str, set[tuple[str, int]]] = {}
    for other in placed:
        for address, protocol, port in wanted(other):
            used.setdefault(address, set()).add((protocol, port))
    for address, protocol, port in wanted(pod):
        looked_at = used if address == "0.0.0.0" else ("0.0.0.0", address)
        if any((protocol, port) in used.get(one, set()) for one in looked_at):
            return False
    return True
