"""ImageLocality, read plainly: the scheduler cache's image states, changed by one node event at a time."""

from typing import Any

Manifest = dict[str, Any]
MIB = 1024 * 1024


class Cache:
    """Image name -> [size, nodes that have it]; the size is what the first node said, until the last one is
    gone."""

    def __init__(self) -> None:
        self.states: dict[str, tuple[int, set[str]]] = {}
        self.nodes: dict[str, Manifest] = {}

    def set_node(self, node: Manifest) -> None:
        name = node["metadata"]["name"]
        self.remove_node(name)
        self.nodes[name] = node
        for image in node["status"].get("images", []):
            for alias in image["names"]:
                self.states.setdefault(alias, (image["sizeBytes"], set()))[1].add(name)

    def remove_node(self, name: str) -> None:
        old = self.nodes.pop(name, None)
        if old is None:
            return
        for image in old["status"].get("images", []):
            for alias in image["names"]:
                if alias in self.states:
                    self.states[alias][1].discard(name)
                    if not self.states[alias][1]:
                        del self.states[alias]

    def score(self, name: str, pod: Manifest) -> int:
        """0 to 100."""
        spec = pod["spec"]
        containers = [*spec.get("initContainers", []), *spec["containers"]]
        images = [container["image"] for container in containers]
        images += [volume["image"]["reference"] for volume in spec.get("volumes", []) if "image" in volume]
        total = 0
        for image in images:
            tagged = image if ":" in image.split("/")[-1] else f"{image}:latest"
            size, nodes = self.states.get(tagged, (0, set[str]()))
            if name in nodes:
                total += int(size * (len(nodes) / len(self.nodes)))
        low, high = 23 * MIB, 1000 * MIB * len(containers)
        return 100 * (min(max(total, low), high) - low) // (high - low)
