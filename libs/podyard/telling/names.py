"""Objects as kubectl names them: `pod/web`, `deployment.apps/web`."""

from podyard.objects.errors import UnknownKindError
from podyard.objects.kinds import Kind, resource_for


def of_kind(kind: Kind, name: str) -> str:
    """`kind.group/name`; a custom kind found by its resource alone goes by its plural."""
    singular = kind.singular or kind.resource.partition(".")[0]
    return f"{singular}.{kind.group}/{name}" if kind.group else f"{singular}/{name}"


def of_resource(resource: str, name: str) -> str:
    """The same for the resource token of a subject."""
    try:
        return of_kind(resource_for(resource), name)
    except UnknownKindError:
        return f"{resource}/{name}"
