"""Which object a request means. Pure."""

from podyard.api import definitions
from podyard.cluster.keys import ObjectKey
from podyard.objects import bounds, kinds
from podyard.objects.admission import DEFAULT_NAMESPACE
from podyard.objects.errors import ObjectError
from podyard.proto.message import ObjectRef


def key_of(reference: ObjectRef, known: definitions.Lists | None = None) -> ObjectKey:
    """The object's place; resources may be called as on the command line (`pod`, `po`), a missing namespace
    is `default`.

    :param known: the definitions of custom kinds
    :raises UnknownKindError: no resource is called so
    :raises ObjectError: no object can have such a name
    """
    for field, name in (("metadata.name", reference.name), ("metadata.namespace", reference.namespace)):
        if len(name) > bounds.NAME_BYTES or len(name.encode()) > bounds.NAME_BYTES:
            raise ObjectError(field, f"Too long: may not be more than {bounds.NAME_BYTES} bytes")
    kind = kinds.resource_for(reference.resource)
    namespace = reference.namespace
    if not kind.custom:
        namespace = (namespace or DEFAULT_NAMESPACE) if kind.namespaced else ""
    elif known is not None:
        namespace = definitions.namespace_of(kind, definitions.definition_of(kind, known), namespace)
    return ObjectKey(kind.resource, namespace, reference.name)


def as_stored(key: ObjectKey, known: definitions.Lists) -> ObjectKey:
    """Where an object lies that was named in a version of its kind: of a custom kind that of the version that
    stores.

    :param known: the definitions of custom kinds
    """
    kind = kinds.kind_of_resource(key.resource)
    definition = definitions.definition_of(kind, known) if kind.custom else None
    if definition is None:
        return key
    named = kinds.kind_for(kind.api_version, definition.spec.names.kind)
    return key._replace(resource=definitions.stored_as(named, definition).resource)
