"""Cluster events: what plugins register for, what reaches the queue, and what a queueing hint answers.

Source: kube-scheduler v1.36.2, staging/src/k8s.io/kube-scheduler/framework/types.go (ClusterEvent,
QueueingHint) and pkg/scheduler/framework/events.go (named events, MatchClusterEvents).
"""

from collections.abc import Callable, Hashable, Iterable
from enum import StrEnum
from typing import Final, NamedTuple, Protocol, TypeAlias

from podyard.objects.pod import Pod
from podyard.proto import actions
from podyard.proto.actions import ActionType

POD: Final = "Pod"
"""In a registration: any pod. Incoming pod events say ASSIGNED_POD or UNSCHEDULABLE_POD."""

ASSIGNED_POD: Final = "AssignedPod"
UNSCHEDULABLE_POD: Final = "UnschedulablePod"
NODE: Final = "Node"
PERSISTENT_VOLUME: Final = "PersistentVolume"
PERSISTENT_VOLUME_CLAIM: Final = "PersistentVolumeClaim"
CSI_NODE: Final = "storage.k8s.io/CSINode"
CSI_DRIVER: Final = "storage.k8s.io/CSIDriver"
VOLUME_ATTACHMENT: Final = "storage.k8s.io/VolumeAttachment"
CSI_STORAGE_CAPACITY: Final = "storage.k8s.io/CSIStorageCapacity"
STORAGE_CLASS: Final = "storage.k8s.io/StorageClass"
RESOURCE_CLAIM: Final = "resource.k8s.io/ResourceClaim"
RESOURCE_SLICE: Final = "resource.k8s.io/ResourceSlice"
DEVICE_CLASS: Final = "resource.k8s.io/DeviceClass"
POD_GROUP: Final = "scheduling.k8s.io/PodGroup"
WILDCARD: Final = "*"
"""Any resource."""

INCOMING_PODS: Final = frozenset({ASSIGNED_POD, UNSCHEDULABLE_POD})
"""What a registration for POD matches, besides POD itself."""


class ClusterEvent(NamedTuple):
    """Something that happened to a kind of object, or (registered by a plugin) what it wants to hear of.

    :param resource: one of the constants above, or `<plural>.<version>.<group>`
    :param action: what happened; several bits only in registrations, in the general update and in the
        wildcard
    :param name: the label of an event that does not spell what it is (UnschedulableTimeout); "" for all
        others
    """

    resource: str
    action: ActionType
    name: str = ""

    @property
    def label(self) -> str:
        """How the event is called in records, metrics and logs, e.g. NodeUpdateNodeTaint."""
        return self.name or actions.label(self.resource, self.action)

    @property
    def is_wildcard(self) -> bool:
        """Whether it stands for any change of anything."""
        return self.resource == WILDCARD and self.action == ActionType.ALL


def match_resources(registered: str, incoming: str) -> bool:
    """Whether a registration for one resource covers an incoming event's resource."""
    return registered in (WILDCARD, incoming) or (registered == POD and incoming in INCOMING_PODS)


def match(registered: ClusterEvent, incoming: ClusterEvent) -> bool:
    """Whether a registration matches an incoming event.

    The general update (all update bits) is matched by no registration of single update bits: `incoming <=
    registered`.

    Source: pkg/scheduler/framework/events.go, MatchClusterEvents; tests/conformance/data/registry,
    matchTable.
    """
    if registered.is_wildcard:
        return True
    wanted, happened = int(registered.action), int(incoming.action)
    return match_resources(registered.resource, incoming.resource) and wanted & happened != 0 and happened <= wanted


NODE_ADD: Final = ClusterEvent(NODE, ActionType.ADD)
NODE_DELETE: Final = ClusterEvent(NODE, ActionType.DELETE)
NODE_UPDATE_TAINT: Final = ClusterEvent(NODE, ActionType.UPDATE_NODE_TAINT)
ASSIGNED_POD_ADD: Final = ClusterEvent(ASSIGNED_POD, ActionType.ADD)
ASSIGNED_POD_UPDATE: Final = ClusterEvent(ASSIGNED_POD, ActionType.UPDATE)
ASSIGNED_POD_DELETE: Final = ClusterEvent(ASSIGNED_POD, ActionType.DELETE)
UNSCHEDULED_POD_ADD: Final = ClusterEvent(UNSCHEDULABLE_POD, ActionType.ADD)
UNSCHEDULED_POD_UPDATE: Final = ClusterEvent(UNSCHEDULABLE_POD, ActionType.UPDATE)
UNSCHEDULED_POD_DELETE: Final = ClusterEvent(UNSCHEDULABLE_POD, ActionType.DELETE)
UNSCHEDULABLE_TIMEOUT: Final = ClusterEvent(WILDCARD, ActionType.ALL, "UnschedulableTimeout")
FORCE_ACTIVATE: Final = ClusterEvent(WILDCARD, ActionType.ALL, "ForceActivate")
RETRY_ALL: Final = ClusterEvent(WILDCARD, ActionType.ALL, "RetryAll")
"""Podyard's own: the queue may have missed something (listed again, new leader, dead session), so everybody
is retried.
"""

EVENTS_OF_SILENT_PLUGINS: Final[tuple[str, ...]] = (
    POD,
    NODE,
    PERSISTENT_VOLUME,
    PERSISTENT_VOLUME_CLAIM,
    CSI_NODE,
    CSI_DRIVER,
    CSI_STORAGE_CAPACITY,
    STORAGE_CLASS,
    RESOURCE_CLAIM,
    DEVICE_CLASS,
)
"""Resources whose every action concerns a plugin that declares nothing at all."""


class HintAnswer(StrEnum):
    """What a hint says about a parked pod and an event."""

    QUEUE = "Queue"
    """The event may make the pod schedulable: retry it."""
    SKIP = "QueueSkip"
    """The event cannot help this pod as far as the plugin is concerned: leave it parked."""


class HintResult(NamedTuple):
    """A hint's answer, and why, in words for people ("freed 200m cpu on n1, the pod needs 500m")."""

    answer: HintAnswer
    reason: str


def queue(reason: str) -> HintResult:
    """The answer "retry the pod"."""
    return HintResult(HintAnswer.QUEUE, reason)


def skip(reason: str) -> HintResult:
    """The answer "leave the pod parked"."""
    return HintResult(HintAnswer.SKIP, reason)


Hint: TypeAlias = Callable[[Pod, object | None, object | None], HintResult]
"""A pure, fast function of the parked pod and the changed object before and after (`None`: it was not, or is
no more).

Objects are joined typed objects (`Pod`, `Node`, ...), `CustomObject` for custom resources. An exception
counts as Queue.
"""


class HintIndex(Protocol):
    """Keeps the signatures of a plugin's parked pods so that an event finds those whose hint may not say
    Skip.
    """

    def add(self, signature: Hashable) -> None:
        """The first pod of this signature was parked."""
        ...

    def remove(self, signature: Hashable) -> None:
        """The last one is not parked any more."""
        ...

    def candidates(self, old: object | None, new: object | None) -> Iterable[Hashable] | None:
        """Signatures that must be asked, the others would say Skip; `None`: all.

        The parked pod that the event is about, if it is one, is asked in any case.
        """
        ...


class Registration(NamedTuple):
    """One entry of a plugin's `events_to_register()`; without a hint every matching event retries the pod."""

    event: ClusterEvent
    hint: Hint | None = None
    new_index: Callable[[], HintIndex] | None = None
    """Makes an index over what the hint reads, for a plugin that has `hint_signature`."""


OwnHint: TypeAlias = Callable[[Pod, tuple[str, ...], object | None, object | None], HintResult]
"""As `Hint`, of the parked pod, what the plugin said stands in its way (`Status.obstacles`), and the changed
object before and after."""


class OwnRegistration(NamedTuple):
    """One entry of a plugin's `own_events_to_register()`: an event that helps against an obstacle, which the
    reference's hints miss.

    It is asked about pods for which the plugin named obstacles, if no hint of the reference retries them.
    """

    event: ClusterEvent
    hint: OwnHint
    new_index: Callable[[], HintIndex] | None = None
    """As of `Registration`; its signatures are `hint_sharing.OwnRead`."""
