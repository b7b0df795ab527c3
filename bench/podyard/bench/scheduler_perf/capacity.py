"""Which service is full at which rate, and what to add: from the CPU that a pod costs each. Pure.

A service is one process with one core. CPU a pod falls where more pods come at once, since batches grow: so
these rates are the least that it can do.
"""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final, Literal, TypeAlias

import msgspec

from podyard.bench.meters import CLIENT, SERVER

Grows: TypeAlias = Literal["instances", "one", "cores"]

GROWS: Final[dict[str, tuple[Grows, str]]] = {
    "api": ("instances", "another api"),
    "kube_api": ("one", "a faster core: each instance reads everything"),
    "scheduler": ("instances", "another scheduler"),
    "node_agent": ("instances", "another agent, for some of the nodes"),
    "queue": ("one", "a faster core: one leads, others stand by"),
    "binder": ("one", "a faster core: one leads, others stand by"),
    "workloads": ("one", "a faster core: one leads, others stand by"),
    "descheduler": ("one", "a faster core: one leads, others stand by"),
    SERVER: ("cores", "cores: it uses several"),
}
"""By process, what makes it more, and what to add."""


class Full(msgspec.Struct, frozen=True, kw_only=True):
    """A service, with all its processes."""

    process: str
    instances: int
    cpu_us_per_pod: float
    """Of all of them together."""
    pods_per_second: float
    """At which all of them are full; of the NATS server: each core that it gets."""
    more_by: str
    """What to add."""


def full(cpu_us_per_pod: Mapping[str, float]) -> tuple[Full, ...]:
    """Whoever is full first comes first; the benchmark's own process is left out.

    :param cpu_us_per_pod: by process, as `scheduler` or, of several, `scheduler-1`
    """
    costs: dict[str, list[float]] = defaultdict(list)
    for name, cost in cpu_us_per_pod.items():
        if name != CLIENT:
            costs[_service(name)].append(cost)
    found: list[Full] = []
    for service, parts in costs.items():
        cost = sum(parts)
        if not cost:
            continue  # too little to be measured
        grows, more_by = GROWS[service]
        cores = len(parts) if grows == "instances" else 1
        rate = round(cores * 1e6 / cost)
        found.append(
            Full(process=service, instances=len(parts), cpu_us_per_pod=cost, pods_per_second=rate, more_by=more_by)
        )
    return tuple(sorted(found, key=lambda one: one.pods_per_second))


def machine(cpu_us_per_pod: Mapping[str, float], cores: int) -> float:
    """Pods a second at which so many cores are full, of the benchmark's process too; 0: not known."""
    cost = sum(cpu_us_per_pod.values())
    return round(cores * 1e6 / cost) if cost else 0.0


def _service(process: str) -> str:
    """`scheduler` of `scheduler-2`."""
    name, dash, number = process.rpartition("-")
    return name if dash and number.isdecimal() else process
