"""The label selector that a pod's Services and controller stand for: whom default constraints spread.

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector,
GetPodServices).
"""

from collections.abc import Hashable, Mapping
from typing import Final, NamedTuple

from podyard.framework.snapshot import Objects
from podyard.memory.kept import Kept
from podyard.memory.sizes import bytes_of
from podyard.objects import selectors
from podyard.objects.apps import ReplicaSet, StatefulSet
from podyard.objects.core import Pod, ReplicationController, Service
from podyard.objects.errors import SelectorError
from podyard.objects.meta import OwnerReference
from podyard.objects.selectors import Selector

SERVICES: Final = "services"
CONTROLLERS: Final = {
    ("v1", "ReplicationController"): "replicationcontrollers",
    ("apps/v1", "ReplicaSet"): "replicasets",
    ("apps/v1", "StatefulSet"): "statefulsets",
}
"""Resource of a controlling owner, by apiVersion and kind; others say nothing about who its pods are."""

READ: Final = (SERVICES, *CONTROLLERS.values())
"""Resources that selectors are made of."""

SELECTORS_BYTES: Final = 8 * 1024 * 1024
"""What selectors take that are kept, of pods of different labels or owners."""

HELD: Final = 4
"""A selector takes so many times what the pod's labels do, at most."""


def identity(pod: Pod) -> Hashable:
    """All of a pod that its selector depends on."""
    metadata = pod.metadata
    owner = metadata.controller
    named = None if owner is None else (owner.api_version, owner.kind, owner.name)
    return metadata.namespace, frozenset(metadata.labels.items()), named


def selected(services: Mapping[str, str], owner: object | None) -> Selector:
    """The selector of a pod.

    :param services: the selectors of all Services that match the pod, merged
    :param owner: the controlling ReplicationController, ReplicaSet or StatefulSet; None: it has none, or that
        is gone
    """
    match owner:
        case ReplicationController():
            return selectors.compile_map({**services, **owner.spec.selector})
        case ReplicaSet() | StatefulSet():
            found = selectors.compile_map(services)
            try:
                theirs = selectors.compile_labels(owner.spec.selector)
            except SelectorError:
                return found
            more = [one for one in theirs.requirements if one not in found.requirements]
            return Selector((*found.requirements, *more))
        case _:
            return selectors.compile_map(services)


class _Known(NamedTuple):
    services: int
    """Version of the Services."""
    owner: object | None
    selector: Selector


class OwnerSelectors:
    """Selectors of pods, kept as long as the Services and the pod's owner are the same."""

    def __init__(self) -> None:
        self._lookup: Objects | None = None
        self._version = -1
        self._services: dict[tuple[str, str, str], list[Mapping[str, str]]] = {}
        """Selectors by namespace and one label that they ask for."""
        self._known = Kept[Hashable, _Known](SELECTORS_BYTES, fewest=1)
        self._last: tuple[Pod | None, _Known | None] = (None, None)
        """The pod that was asked about last: a cycle asks several times, and for equal pods shows the same
        one."""

    def selector(self, pod: Pod, lookup: Objects) -> Selector:
        """The selector of `pod`; an empty one if it belongs to nothing."""
        self._follow(lookup)
        owner = self._owner(pod, lookup)
        last, known = self._last
        if last is pod and known is not None and known.services == self._version and known.owner is owner:
            return known.selector
        key = identity(pod)
        known = self._known.get(key)
        if known is None or known.services != self._version or known.owner is not owner:
            known = _Known(self._version, owner, selected(self._matching(pod), owner))
            self._known.keep(key, known, HELD * bytes_of(key))
        else:
            self._known.use(key)
        self._last = pod, known
        return known.selector

    def _follow(self, lookup: Objects) -> None:
        version = lookup.version(SERVICES)
        if lookup is self._lookup and version == self._version:
            return
        if lookup is not self._lookup:
            self._known.clear()
            self._last = None, None
        self._lookup, self._version = lookup, version
        self._services = {}
        for (namespace, _), service in lookup.objects(SERVICES).items():
            if isinstance(service, Service) and service.spec.selector:
                key, value = min(service.spec.selector.items())
                self._services.setdefault((namespace, key, value), []).append(service.spec.selector)

    def _matching(self, pod: Pod) -> dict[str, str]:
        """The labels that the Services of the pod select by: they match it, so they do not contradict each
        other."""
        namespace, labels = pod.metadata.namespace, pod.metadata.labels
        merged: dict[str, str] = {}
        for key, value in labels.items():
            for selector in self._services.get((namespace, key, value), ()):
                if selector.items() <= labels.items():
                    merged |= selector
        return merged

    def _owner(self, pod: Pod, lookup: Objects) -> object | None:
        reference: OwnerReference | None = pod.metadata.controller
        if reference is None:
            return None
        resource = CONTROLLERS.get((reference.api_version, reference.kind))
        return None if resource is None else lookup.objects(resource).get((pod.metadata.namespace, reference.name))
