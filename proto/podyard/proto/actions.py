"""Action types of cluster events: what happened to an object, as bits.

Source: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/framework/types.go (ActionType).
"""

from enum import IntFlag
from typing import Final, Literal, TypeAlias

ActionName: TypeAlias = Literal[
    "Add",
    "Delete",
    "UpdateNodeAllocatable",
    "UpdateNodeLabel",
    "UpdateNodeTaint",
    "UpdateNodeCondition",
    "UpdateNodeAnnotation",
    "UpdateNodeDeclaredFeature",
    "UpdatePodLabel",
    "UpdatePodScaleDown",
    "UpdatePodToleration",
    "UpdatePodSchedulingGatesEliminated",
    "UpdatePodGeneratedResourceClaim",
]
"""An action as it is spelled on the bus. The general update is spelled `Update`, any action `All` (see
`parse`)."""


class ActionType(IntFlag):
    """One bit an action. `UPDATE` is all eleven update bits, without ADD and DELETE; `ALL` is everything."""

    NONE = 0
    ADD = 1
    DELETE = 2
    UPDATE_NODE_ALLOCATABLE = 4
    UPDATE_NODE_LABEL = 8
    UPDATE_NODE_TAINT = 16
    UPDATE_NODE_CONDITION = 32
    UPDATE_NODE_ANNOTATION = 64
    UPDATE_NODE_DECLARED_FEATURE = 128
    UPDATE_POD_LABEL = 256
    UPDATE_POD_SCALE_DOWN = 512
    UPDATE_POD_TOLERATION = 1024
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = 2048
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = 4096
    UPDATE = 8188
    ALL = 8191


NAMES: Final[dict[str, ActionType]] = {
    "Add": ActionType.ADD,
    "Delete": ActionType.DELETE,
    "UpdateNodeAllocatable": ActionType.UPDATE_NODE_ALLOCATABLE,
    "UpdateNodeLabel": ActionType.UPDATE_NODE_LABEL,
    "UpdateNodeTaint": ActionType.UPDATE_NODE_TAINT,
    "UpdateNodeCondition": ActionType.UPDATE_NODE_CONDITION,
    "UpdateNodeAnnotation": ActionType.UPDATE_NODE_ANNOTATION,
    "UpdateNodeDeclaredFeature": ActionType.UPDATE_NODE_DECLARED_FEATURE,
    "UpdatePodLabel": ActionType.UPDATE_POD_LABEL,
    "UpdatePodScaleDown": ActionType.UPDATE_POD_SCALE_DOWN,
    "UpdatePodToleration": ActionType.UPDATE_POD_TOLERATION,
    "UpdatePodSchedulingGatesEliminated": ActionType.UPDATE_POD_SCHEDULING_GATES_ELIMINATED,
    "UpdatePodGeneratedResourceClaim": ActionType.UPDATE_POD_GENERATED_RESOURCE_CLAIM,
}
"""Single-bit actions by their name on the bus, in bit order."""

COMPOSITES: Final[dict[str, ActionType]] = {"Update": ActionType.UPDATE, "All": ActionType.ALL}
"""Names that stand for several bits."""


def parse(name: str) -> ActionType:
    """The action called `name` (a single bit, `Update` or `All`).

    :raises ValueError: for another name, with the names that exist
    """
    action = NAMES.get(name) or COMPOSITES.get(name)
    if action is None:
        raise ValueError(f"no action is called {name!r}; there are {', '.join([*NAMES, *COMPOSITES])}")
    return action


def names(action: ActionType) -> tuple[ActionName, ...]:
    """The single bits of `action`, in bit order."""
    return tuple(name for name, bit in NAMES.items() if action & bit)  # pyright: ignore[reportReturnType] - keys are ActionName


def label(resource: str, action: ActionType) -> str:
    """An event's label: resource and action name, the bare resource for a mixture of bits.

    Source: kube-scheduler v1.36.2, framework.ClusterEvent.Label; data in tests/conformance/data/registry.
    """
    for table in (NAMES, COMPOSITES):
        for name, value in table.items():
            if value == action:
                return resource + name
    return resource
