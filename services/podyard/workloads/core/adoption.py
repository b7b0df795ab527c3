"""ReplicaSets that nobody controls, and the Deployments that take them over.

Source: kubernetes v1.36.2, pkg/controller/controller_ref_manager.go (ClaimReplicaSets, ClaimObject),
pkg/controller/deployment/deployment_controller.go (getDeploymentsForReplicaSet).
"""

from collections.abc import Iterator
from typing import Any, Final

from podyard.cluster.changes import Change
from podyard.cluster.keys import NamespacedName, ObjectKey
from podyard.objects import selectors
from podyard.objects.apps import Deployment, ReplicaSet
from podyard.objects.documents import mapping, mappings
from podyard.objects.errors import SelectorError
from podyard.objects.meta import ObjectMeta
from podyard.objects.selectors import Selector
from podyard.workloads.core.actions import Alter, Document
from podyard.workloads.core.deployments import REPLICA_SETS
from podyard.workloads.core.ownership import View
from podyard.workloads.core.templates import controller_reference

DEPLOYMENTS: Final = "deployments"
_NOTHING: Final = selectors.compile_labels(None)


class FreeSets:
    """Index of ReplicaSets without a controller, by namespace. Owned by the core; kept by `follow`."""

    def __init__(self, view: View) -> None:
        self._view = view
        self._free: dict[str, dict[str, NamespacedName]] = {}

    def follow(self, change: Change) -> Iterator[ObjectKey]:
        """One ReplicaSet changed; gives the Deployments that may take it over now."""
        namespace, old, new = change.key.namespace, change.old, change.new
        if new is None or not _is_free(new):
            there = self._free.get(namespace, {})
            there.pop(change.uid, None)
            if not there:
                self._free.pop(namespace, None)
            return
        self._free.setdefault(namespace, {})[change.uid] = change.key.namespaced_name
        if old is None or not _is_free(old) or old.metadata.labels != new.metadata.labels:
            yield from self._takers(namespace, new)

    def taken_by(self, deployment: Deployment, document: Document) -> list[Alter]:
        """How a Deployment makes its own what its selector takes.

        :param document: the Deployment as it is stored
        """
        metadata = deployment.metadata
        free = self._free.get(metadata.namespace)
        if not free or metadata.deletion_timestamp is not None:
            return []
        selector, there = _compiled(deployment), self._view.objects(REPLICA_SETS)
        return [
            _adopted(name, uid, selector, controller_reference(document))
            for uid, name in free.items()
            if name in there and selector.matches(there[name].metadata.labels)
        ]

    def _takers(self, namespace: str, found: ReplicaSet) -> Iterator[ObjectKey]:
        for key, deployment in self._view.objects(DEPLOYMENTS).items():
            if key[0] == namespace and _compiled(deployment).matches(found.metadata.labels):
                yield ObjectKey(DEPLOYMENTS, *key)


def _is_free(found: Any) -> bool:
    metadata: ObjectMeta = found.metadata
    return metadata.controller is None and metadata.deletion_timestamp is None


def _compiled(deployment: Deployment) -> Selector:
    """One that cannot be compiled selects nothing: the API server refuses it."""
    try:
        return selectors.compile_labels(deployment.spec.selector)
    except SelectorError:
        return _NOTHING


def _adopted(name: NamespacedName, uid: str, selector: Selector, owner: Document) -> Alter:
    """If nobody was faster, and it is still what the selector takes."""

    def alter(document: Document) -> Document | None:
        metadata = document["metadata"]
        owners = mappings(metadata, "ownerReferences")
        if any(one.get("controller") for one in owners) or "deletionTimestamp" in metadata:
            return None
        if not selector.matches(mapping(metadata, "labels")):
            return None
        metadata["ownerReferences"] = [*owners, owner]
        return document

    return Alter(ObjectKey(REPLICA_SETS, *name), uid, alter)
