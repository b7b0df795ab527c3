"""What there is to say of a resource that is served, and of its subresources."""

from typing import NamedTuple

from podyard.objects.documents import Document
from podyard.objects.kinds import Kind


class Subresource(NamedTuple):
    """A part of an object, or something that is done to one, with a path of its own."""

    name: str
    """`status`, `scale`, `eviction`, `binding` or `finalize`."""
    kind: str
    group: str
    version: str
    """Kind, group and version of the body."""
    verbs: tuple[str, ...]
    definition: str | None = None
    """Of the body, in `api_types`; None: that of a custom kind."""


class Served(NamedTuple):
    """One resource in one version."""

    group: str
    """Empty: the core group."""
    version: str
    resource: str
    """The plural, as in URLs."""
    singular: str
    kind: str
    list_kind: str
    namespaced: bool
    verbs: tuple[str, ...]
    """Sorted: create, delete, deletecollection, get, list, patch, update, watch, or some of them."""
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[Subresource, ...] = ()
    unserved: tuple[str, ...] = ()
    """Subresources that the API server has and Podyard has not, such as `log` and `exec`."""
    definition: str | None = None
    """Its type, in `api_types`; None: custom, or of a group that Kubernetes' own document does not have."""
    stored: Kind | None = None
    """The kind under which its objects are stored; None if none are: metrics, questions. Of a custom kind it
    is that of the version that stores: objects of the others differ from it in their apiVersion
    alone."""
    columns: tuple[Document, ...] = ()
    """Of a custom kind: its additionalPrinterColumns as they are written."""
    schema: Document | None = None
    """Of a custom kind: its openAPIV3Schema as it is written, if it has one."""
    scale: Document | None = None
    """Of a custom kind with the subresource: specReplicasPath, statusReplicasPath, labelSelectorPath."""

    @property
    def api_version(self) -> str:
        """`v1`, `apps/v1`."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def custom(self) -> bool:
        """Whether a CustomResourceDefinition made it."""
        return self.stored is not None and self.stored.custom

    @property
    def is_events(self) -> bool:
        """Whether it is one of the two groups of events, which lie in a stream of their own."""
        return self.resource == "events" and self.group in ("", "events.k8s.io")

    def subresource(self, name: str) -> Subresource | None:
        """The one of that name."""
        return next((one for one in self.subresources if one.name == name), None)


class Group(NamedTuple):
    """A group of the API."""

    name: str
    versions: tuple[str, ...]
    """At least one; the first is the preferred one."""


class LeftOut(NamedTuple):
    """A definition, or a version of one, that is stored and not served."""

    definition: str
    """Its name: `<plural>.<group>`."""
    why: str
    """A sentence."""
