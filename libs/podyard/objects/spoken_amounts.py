"""Amounts of resources as people say them: `7.5 cpu`, `2.5Gi memory`, `1 nvidia.com/gpu`."""

from typing import Final

from podyard.objects import pod_requests

UNITS: Final = (("Ti", 2**40), ("Gi", 2**30), ("Mi", 2**20), ("Ki", 2**10))
"""Of bytes, the largest first."""
BYTES: Final = frozenset({"memory", "ephemeral-storage"})


def number(resource: str, amount: int) -> str:
    """The number alone, rounded to two places where people cannot use more.

    :param amount: in milli-CPU for cpu, else in whole units (bytes)
    """
    if resource == pod_requests.CPU:
        return f"{amount}m" if abs(amount) < 1000 and amount else f"{amount / 1000:g}"
    if resource in BYTES or resource.startswith("hugepages-"):
        for unit, size in UNITS:
            if abs(amount) >= size:
                return f"{round(amount / size, 2):g}{unit}"
    return str(amount)


def spoken(resource: str, amount: int) -> str:
    """With the resource: `10 cpu`."""
    return f"{number(resource, amount)} {resource}"
