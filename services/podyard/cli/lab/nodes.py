"""Virtual nodes for `up --nodes N`. Pure."""

from typing import Any, Final

ZONES: Final = ("zone-a", "zone-b", "zone-c")
RESOURCES: Final = {"cpu": "8", "memory": "16Gi", "ephemeral-storage": "100Gi", "pods": "110"}


def virtual_node(number: int) -> dict[str, Any]:
    """Manifest of the `number`-th node, from 1; zones take turns."""
    name = f"node-{number}"
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {
            "name": name,
            "labels": {
                "kubernetes.io/hostname": name,
                "kubernetes.io/os": "linux",
                "topology.kubernetes.io/zone": ZONES[(number - 1) % len(ZONES)],
            },
        },
        "status": {"capacity": dict(RESOURCES), "allocatable": dict(RESOURCES)},
    }
