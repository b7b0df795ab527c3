"""Which object a request means. Pure."""

from podyard.cluster.keys import ObjectKey
from podyard.objects import kinds
from podyard.objects.admission import DEFAULT_NAMESPACE
from podyard.proto.message import ObjectRef


def key_of(reference: ObjectRef) -> ObjectKey:
    """The object's place; resources may be called as on the command line (`pod`, `po`), a missing namespace is `default`.

    :raises UnknownKindError: no resource is called so
    """
    kind = kinds.resource_for(reference.resource)
    namespace = reference.namespace
    if not kind.custom:
        namespace = (namespace or DEFAULT_NAMESPACE) if kind.namespaced else ""
    return ObjectKey(kind.resource, namespace, reference.name)
