"""Nodes and pods of mixed sizes, from a seed: enough of them that the CPU runs out before the pods do."""

from random import Random
from typing import Any, Final, NamedTuple

NODE_CPUS: Final = (8, 16, 32)
NODE_GIB_A_CPU: Final = 4
SIZES: Final = {100: 10, 250: 15, 500: 20, 1000: 25, 2000: 18, 4000: 12}
"""Milli-CPU of a pod, and how often: 1,240 on average."""
POD_GIB_A_CPU: Final = (1, 2, 3, 4)
"""Less than the nodes have on average: the CPU is what runs out."""
APP_SIZES: Final = (5, 50)
"""Fewest and most pods of one app; they are equal, and come one after the other, as a Deployment's do."""
ZONES: Final = ("zone-a", "zone-b", "zone-c")
HOST: Final = "kubernetes.io/hostname"
NAMESPACE: Final = "default"
APP: Final = "app"

Document = dict[str, Any]


class Load(NamedTuple):
    """What to create, in order."""

    nodes: list[Document]
    pods: list[Document]
    apart: int
    """Pods with required anti-affinity to their own app's on a host."""
    cpu_milli: int
    """Of all nodes."""


def load(nodes: int, *, offered: float, apart: float, seed: int) -> Load:
    """The same for the same arguments.

    :param offered: CPU that the pods request together, as a share of the nodes'; just above it
    :param apart: share of pods that keep apart, from 0 to 1
    """
    random = Random(seed)
    cpus = [random.choice(NODE_CPUS) for _ in range(nodes)]
    total = 1000 * sum(cpus)
    pods: list[Document] = []
    kept_apart = asked = app = 0
    while asked < offered * total:
        keeps_apart = kept_apart < apart * len(pods)
        size, members = _size(random), min(nodes, random.randint(*APP_SIZES))
        gib_a_cpu = random.choice(POD_GIB_A_CPU)
        pods += [_pod(f"app-{app:04}", member, size, gib_a_cpu, keeps_apart) for member in range(members)]
        kept_apart += members * keeps_apart
        asked += members * size
        app += 1
    return Load([_node(number, cpu) for number, cpu in enumerate(cpus)], pods, kept_apart, total)


def _size(random: Random) -> int:
    return random.choices(tuple(SIZES), tuple(SIZES.values()))[0]


def _node(number: int, cpus: int) -> Document:
    name = f"node-{number:05}"
    size = {"cpu": str(cpus), "memory": f"{cpus * NODE_GIB_A_CPU}Gi", "pods": "250"}
    labels = {HOST: name, "topology.kubernetes.io/zone": ZONES[number % len(ZONES)]}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": size, "allocatable": size},
    }


def _pod(app: str, member: int, cpu_milli: int, gib_a_cpu: int, keeps_apart: bool) -> Document:
    requests = {"cpu": f"{cpu_milli}m", "memory": f"{cpu_milli * gib_a_cpu * 1024 // 1000}Mi"}
    spec: Document = {
        "containers": [{"name": "main", "image": f"registry.example/{app}:1", "resources": {"requests": requests}}]
    }
    if keeps_apart:
        term = {"topologyKey": HOST, "labelSelector": {"matchLabels": {APP: app}}}
        spec["affinity"] = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": f"{app}-{member:02}", "namespace": NAMESPACE, "labels": {APP: app}},
        "spec": spec,
    }
