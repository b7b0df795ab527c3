"""What the binder reads: the cluster view, and the tombstones that a listing finds."""

from collections.abc import Sequence

from podyard.bus.delivery import Delivery
from podyard.cluster.changes import Change, Effect
from podyard.cluster.view import ClusterView
from podyard.framework.event_registry import followed_by
from podyard.framework.profile import Profile
from podyard.proto import headers, subjects
from podyard.proto.message import PodRef
from podyard.shell.informer import Followed, base_subjects

_BINDINGS = subjects.ALL_BINDINGS.removesuffix(">")
_TOMBSTONE = b'"tombstone"'


def followed(profiles: dict[str, Profile], *, extenders: bool = False) -> Followed:
    """What queue and scheduler follow, and what agents say about pods: it ends bindings."""
    resources = followed_by(profiles.values(), extenders=extenders)
    return base_subjects(*(subjects.objects(resource) for resource in resources), subjects.ALL_POD_STATUS)


class ListedView:
    """A cluster view that notes tombstones without a TTL: their pods may have gone while no binder looked."""

    def __init__(self) -> None:
        self.cluster = ClusterView(remembers=True)
        self._listing = False
        self._tombstones: list[PodRef] = []

    @property
    def position(self) -> int:
        """Everything up to this CLUSTER sequence is in the view."""
        return self.cluster.position

    def take_tombstones(self) -> list[PodRef]:
        """Those of the last listing; once."""
        found, self._tombstones = self._tombstones, []
        return found

    def begin_listing(self) -> None:
        """A listing begins."""
        self._listing = True
        self._tombstones = []
        self.cluster.begin_listing()

    def end_listing(self, position: int) -> list[Change]:
        """The listing is complete."""
        self._listing = False
        return self.cluster.end_listing(position)

    def apply(self, delivery: Delivery) -> list[Change]:
        """Fold one delivery."""
        if self._listing and delivery.subject.startswith(_BINDINGS) and _is_lasting_tombstone(delivery):
            pod = subjects.parse_pod(delivery.subject)
            self._tombstones.append(PodRef(namespace=pod.namespace, name=pod.name, uid=pod.uid))
        return self.cluster.apply(delivery)

    def advance(self, position: int) -> None:
        """The stream moved on."""
        self.cluster.advance(position)

    def take_effects(self) -> Sequence[Effect]:
        """What the fold asks for."""
        return self.cluster.take_effects()


def _is_lasting_tombstone(delivery: Delivery) -> bool:
    """Whether it is a tombstone that the server keeps for ever. The tag stands first in the message."""
    return _TOMBSTONE in delivery.payload[:40] and headers.TTL not in delivery.headers
