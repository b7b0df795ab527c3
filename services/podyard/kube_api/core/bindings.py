"""A binding that somebody else's scheduler asks for: what it says, what stands against it at first sight, and
what the binder's answer is in the words of the Kubernetes API. Pure.

The binder judges; what is known here for good (who is deleted or bound stays so) is said without asking it.

Source: kubernetes v1.36.2, pkg/registry/core/pod/storage/storage.go (BindingREST),
pkg/apis/core/validation/validation.go (ValidatePodBinding).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

from podyard.cluster.keys import ObjectKey
from podyard.cluster.pods import PodView
from podyard.kube_api.core import errors
from podyard.kube_api.core.errors import ApiError, Cause
from podyard.objects import claims
from podyard.objects.documents import Document, mapping
from podyard.proto import subjects
from podyard.proto.binder_api import NODE_GONE, BindAnswer

BINDING: Final = "binding"
"""The subresource of a pod that takes one."""
BINDINGS: Final = "bindings"
"""The resource that takes bindings without a pod in the URL."""
RESOURCE: Final = "pods/binding"
"""What conflicts are about."""
RETRY_S: Final = 1
_CLAIMS: Final = "persistentvolumeclaims"


class Wanted(NamedTuple):
    """What a binding says."""

    name: str
    node: str
    uid: str
    """The pod that is meant; empty: whichever is there."""
    version: str
    """Its resourceVersion; empty: any."""


def read(document: Document, name: str) -> Wanted:
    """
    :param name: of the pod, as the URL says it; empty: it does not
    :raises ApiError: it is none, or asks for what is not done here
    """
    if document.get("kind") not in (None, "Binding"):
        raise errors.bad_request(f"expected a Binding, not {str(document.get('kind'))[:63]}")
    metadata, target = mapping(document, "metadata"), mapping(document, "target")
    named = _text(metadata.get("name")) or name
    if not named:
        raise errors.bad_request("name or generateName is required")
    if name and named != name:
        raise errors.bad_request("name in URL does not match name in Binding object")
    kind, node = _text(target.get("kind")), _text(target.get("name"))
    if kind not in ("", "Node"):
        told = f'Unsupported value: "{kind[:63]}": supported values: "Node", "<empty>"'
        raise errors.invalid("Binding", "", named, [Cause("FieldValueNotSupported", told, "target.kind")])
    if not node:
        raise errors.invalid("Binding", "", named, [Cause("FieldValueRequired", "Required value", "target.name")])
    if metadata.get("annotations") or metadata.get("labels"):
        told = "annotations and labels of a Binding are not put on its pod here: patch the pod instead"
        raise ApiError(501, "NotImplemented", told)
    return Wanted(named, node, _text(metadata.get("uid")), _text(metadata.get("resourceVersion")))


def against(pod: PodView) -> ApiError | None:
    """What stands against any binding of the pod; None: nothing that is known here."""
    if pod.deleting:
        return _conflict(pod.name, f"pod {pod.name} is being deleted, cannot be assigned to a host")
    if pod.node_name:
        return _conflict(pod.name, _assigned(pod.name, pod.node_name))
    if pod.stored.spec.scheduling_gates:
        return _conflict(pod.name, f"pod {pod.name} has non-empty .spec.schedulingGates")
    return None


def decided_at(pod: PodView, node: str, sequence: Callable[[ObjectKey], int]) -> int:
    """Up to where the binder must have read before it judges: the latest of pod, node and volume claims. A
    later position may be one of messages that it does not follow.

    :param sequence: of CLUSTER, of the version of an object that is known; 0: it is not there
    """
    about = [ObjectKey(subjects.NODES, "", node)]
    about += [ObjectKey(_CLAIMS, pod.namespace, use.name) for use in claims.claims_of(pod.stored)]
    return max(pod.sequence, *map(sequence, about))


def refusal(answer: BindAnswer, name: str, node: str) -> ApiError | None:
    """Why the binder did not bind the pod; None: it has."""
    reasons = "; ".join(answer.reasons)
    match answer.result:
        case "bound":
            return None
        case "alreadyBound":
            return _conflict(name, _assigned(name, answer.node))
        case "gone":
            return _conflict(name, reasons)
        case "conflict" if answer.cause == NODE_GONE:
            return errors.not_found(subjects.NODES, "", node)
        case "conflict":
            return _conflict(name, f"node {node} does not take it: {answer.cause}: {reasons}")
        case "error" | "waiting":
            told = f"the binder did not bind pod {name}: {answer.cause}: {reasons}"
            return ApiError(503, "ServiceUnavailable", told, retry_after_s=RETRY_S)


def unclear(name: str, why: str) -> ApiError:
    """Nobody knows yet whether it is bound."""
    told = f"whether pod {name} is bound is not known: {why}"
    return ApiError(504, "Timeout", told, retry_after_s=RETRY_S)


def _conflict(name: str, why: str) -> ApiError:
    return errors.conflict(RESOURCE, "", name, why)


def _assigned(name: str, node: str) -> str:
    return f'pod {name} is already assigned to node "{node}"'


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
