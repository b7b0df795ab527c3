"""What workloads reads, and what is asked of it."""

from collections.abc import Sequence
from typing import Final

from podyard.cluster.documents import DocumentView
from podyard.cluster.keys import ObjectKey
from podyard.cluster.view import ClusterView
from podyard.objects.admission import ClusterLookup
from podyard.objects.quotas import QUOTAS
from podyard.proto import subjects
from podyard.shell.folds import Beside, Folds
from podyard.shell.informer import with_placements

FOLLOWED: Final = with_placements((subjects.OBJECTS_WITHOUT_FACTS, *subjects.ALL_FACTS, subjects.ALL_QUOTA_USAGE))
"""All objects as they are, and what is used of quotas."""
_PREFIXES: Final = tuple(subject.removesuffix(">") for subject in (*subjects.ALL_FACTS, subjects.ALL_QUOTA_USAGE))


def folds(view: ClusterView, documents: DocumentView) -> Folds:
    """The joined view, and the raw documents at the same position."""
    return Folds(view, Beside(documents, without=_PREFIXES))


def regarded(subject: str) -> ObjectKey | None:
    """The object that a message on `subject` is, or is about; None for what is about none."""
    tokens = [subjects.decode(token) for token in subject.split(".")]
    match tokens:
        case ["cluster", resource, namespace, name] if resource not in subjects.RESERVED_RESOURCES:
            return ObjectKey(resource, namespace, name)
        case ["cluster", subjects.NODE_STATUS | subjects.NODE_LIFE, node]:
            return ObjectKey(subjects.NODES, "", node)
        case ["cluster", subjects.POD_STATUS, _, namespace, pod, _] | ["placement", "bindings", namespace, pod, _]:
            return ObjectKey(subjects.PODS, namespace, pod)
        case ["cluster", subjects.QUOTA_USAGE, namespace, quota, _]:
            return ObjectKey(QUOTAS, namespace, quota)
        case _:
            return None


class ViewLookup(ClusterLookup):
    """The cluster as admission asks for it."""

    def __init__(self, documents: DocumentView) -> None:
        self._documents = documents

    def get(self, resource: str, namespace: str, name: str) -> object | None:
        """The living object as a typed view, None if there is none."""
        return self._documents.typed(ObjectKey(resource, namespace, name))

    def list(self, resource: str) -> Sequence[object]:
        """All living objects of a resource."""
        return list(self._documents.all(resource))
