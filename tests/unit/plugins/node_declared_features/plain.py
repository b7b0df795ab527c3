"""NodeDeclaredFeatures, read plainly."""

from typing import Any

KNOWN = ("RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport")


def needed(pod: dict[str, Any]) -> set[str]:
    """Features that the node must declare."""
    spec = pod["spec"]
    found: set[str] = set()
    for container in spec.get("containers", []) + spec.get("initContainers", []):
        for rule in container.get("restartPolicyRules", []):
            if rule["action"] == "RestartAllContainers":
                found.add(KNOWN[0])
    if spec.get("hostNetwork", False) and not spec.get("hostUsers", True):
        found.add(KNOWN[1])
    return found
