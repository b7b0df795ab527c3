"""How full a node is: what its pods request of what it has for them."""

from typing import Final, NamedTuple

from podyard.objects import quantity
from podyard.objects.core import Node
from podyard.objects.errors import QuantityError
from podyard.objects.meta import ObjectMeta
from podyard.objects.pod_requests import CPU, MEMORY, PODS
from podyard.objects.spoken_amounts import UNITS

UNKNOWN: Final = "<unknown>"
_MILLI: Final = 1000


class TakenNode(NamedTuple):
    """A joined node, and what the pods on it request."""

    node: Node
    requested: dict[str, int]
    """By resource: milli-CPU, bytes, pieces."""
    pods: int
    """How many pods take room on it."""

    @property
    def metadata(self) -> ObjectMeta:
        return self.node.metadata


def room_cells(taken: TakenNode) -> tuple[str, str, str]:
    """The columns CPU, MEMORY and PODS, each `requested/allocatable` and the share of it: `2.5/8 31%`."""
    return _cpu(taken), _memory(taken), _pods(taken)


def _allocatable(taken: TakenNode, resource: str) -> int | None:
    """Milli-CPU, bytes or pieces; None if it cannot be read."""
    text = taken.node.status.allocatable.get(resource, "0")
    try:
        return quantity.milli(text) if resource == CPU else quantity.value(text)
    except QuantityError:
        return None


def _cpu(taken: TakenNode) -> str:
    has, wanted = _allocatable(taken, CPU), taken.requested.get(CPU, 0)
    if has is None:
        return UNKNOWN
    return f"{_decimal(wanted / _MILLI)}/{_decimal(has / _MILLI)}{_share(wanted, has)}"


def _memory(taken: TakenNode) -> str:
    """Both in the largest unit of which the node has one at least."""
    has, wanted = _allocatable(taken, MEMORY), taken.requested.get(MEMORY, 0)
    if has is None:
        return UNKNOWN
    unit, size = next((one for one in UNITS if (has or wanted) >= one[1]), ("", 1))
    return f"{_decimal(wanted / size)}/{_decimal(has / size)}{unit}{_share(wanted, has)}"


def _pods(taken: TakenNode) -> str:
    has = _allocatable(taken, PODS)
    return UNKNOWN if has is None else f"{taken.pods}/{has}"


def _decimal(amount: float) -> str:
    """With two digits after the point at most: `2.5`, `0.25`, `8`."""
    return f"{amount:.2f}".rstrip("0").rstrip(".")


def _share(wanted: int, has: int) -> str:
    """Rounded down, as what `kubectl describe node` says. Source: kubectl v0.36.2, pkg/describe/describe.go
    (describeNodeResource)."""
    return f" {wanted * 100 // has}%" if has else ""
