"""What stored CustomResourceDefinitions add to the resources that are served.

Source: apiextensions-apiserver v0.36.2, pkg/apiserver/customresource_discovery_controller.go (what is
served), pkg/controller/status/naming_controller.go (of two definitions that want one name the older has it),
pkg/apis/apiextensions/v1/defaults.go (singular and list kind).
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from podyard.kube_api.core.built_in import READ_AND_CHANGED, SCALE, groups
from podyard.kube_api.core.served import LeftOut, Served, Subresource
from podyard.objects import documents, kinds
from podyard.objects.documents import Document
from podyard.objects.errors import UnknownKindError
from podyard.objects.faults import cut

_PLURAL: Final = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")
_VERBS: Final = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
"""In the order in which they are told."""
_VERBS_OF_THE_LEAVING: Final = ("delete", "deletecollection", "get", "list", "watch")
"""Of a definition that is being deleted: nothing new comes."""


class Standing(NamedTuple):
    """How a definition stands beside the others."""

    accepted: Document
    """Its names, if they are accepted; else nothing is."""
    stores: str
    """The version that it stores; empty: none."""
    why: str = ""
    """Why nothing of it is served; empty: it is."""
    reason: str = ""
    """The same in a word, as the reference names it."""
    left: tuple[str, ...] = ()
    """Why some of its versions are not served."""


class Added(NamedTuple):
    """What definitions add."""

    resources: tuple[Served, ...]
    left_out: tuple[LeftOut, ...]
    standings: Mapping[str, Standing]
    """Of each definition, by its name."""


class _Refused(Exception):
    """Of a definition nothing is served; says why."""

    def __init__(self, why: str, reason: str = "NotAccepted") -> None:
        """:param reason: a word for it"""
        super().__init__(why)
        self.reason = reason


class _Names(NamedTuple):
    kind: str
    list_kind: str
    plural: str
    singular: str
    short: tuple[str, ...]
    categories: tuple[str, ...]

    def resources(self) -> dict[str, str]:
        """All that may stand for the resource, with what it is called if somebody else has it."""
        return {
            **dict.fromkeys(self.short, "ShortNamesConflict"),
            self.singular: "SingularConflict",
            self.plural: "PluralConflict",
        }

    def kinds(self) -> dict[str, str]:
        """In lower case, and the plural under which Podyard stores: kinds that differ in their case alone, or
        as Cooky and Cookie do, would be stored under one resource. With the same."""
        return {
            kinds.plural_of(self.kind): "KindConflict",
            self.list_kind.lower(): "ListKindConflict",
            self.kind.lower(): "KindConflict",
        }

    def document(self) -> Document:
        """As they are written."""
        found: Document = {"plural": self.plural, "singular": self.singular}
        if self.short:
            found["shortNames"] = [*self.short]
        found |= {"kind": self.kind, "listKind": self.list_kind}
        if self.categories:
            found["categories"] = [*self.categories]
        return found


def added(definitions: Iterable[Document]) -> Added:
    """What these add to the built-in resources.

    :param definitions: CustomResourceDefinitions as they are stored, in any order
    """
    resources: list[Served] = []
    left_out: list[LeftOut] = []
    standings: dict[str, Standing] = {}
    taken: dict[tuple[str, str], str] = {}
    for definition in sorted(definitions, key=_age):
        name = _text(documents.mapping(definition, "metadata"), "name")
        left: list[str] = []
        names, storing = _names(definition), _storing(definition)
        try:
            group = _group(definition, names, name)
            found = _versions(definition, group, names, left)
            _take(taken, group, names, name)
            resources += found
            standings[name] = Standing(names.document(), storing, left=tuple(left))
        except _Refused as refused:
            left.append(str(refused))
            standings[name] = Standing({"plural": "", "kind": ""}, storing, str(refused), refused.reason)
        left_out += [LeftOut(name, why) for why in left]
    return Added(tuple(resources), tuple(left_out), standings)


def _age(definition: Document) -> tuple[str, str]:
    metadata = documents.mapping(definition, "metadata")
    return _text(metadata, "creationTimestamp"), _text(metadata, "name")


def _names(definition: Document) -> _Names:
    names = documents.mapping(definition, "spec", "names")
    kind = _text(names, "kind")
    return _Names(
        kind=kind,
        list_kind=_text(names, "listKind") or f"{kind}List",
        plural=_text(names, "plural"),
        singular=_text(names, "singular") or kind.lower(),
        short=_texts(names, "shortNames"),
        categories=_texts(names, "categories"),
    )


def _group(definition: Document, names: _Names, name: str) -> str:
    spec = documents.mapping(definition, "spec")
    group, scope = _text(spec, "group"), _text(spec, "scope")
    if group in groups() or not group:
        raise _Refused(f'the group "{group}" is Kubernetes\' own: choose a group with a domain of yours')
    if not _PLURAL.fullmatch(names.plural):
        raise _Refused(f'spec.names.plural "{cut(names.plural)}" is no name: lower case letters, digits and dashes')
    if name != f"{names.plural}.{group}":
        raise _Refused(f'its name must be spec.names.plural+"."+spec.group: {cut(names.plural)}.{cut(group)}')
    if scope not in ("Namespaced", "Cluster"):
        raise _Refused(f'spec.scope "{cut(scope)}" is none: say Namespaced or Cluster')
    return group


def _take(taken: dict[tuple[str, str], str], group: str, names: _Names, name: str) -> None:
    """:raises _Refused: an older definition of the group has one of the names"""
    wanted = {(group, one): reason for one, reason in names.resources().items()}
    wanted |= {(group, f"kind {one}"): reason for one, reason in names.kinds().items()}
    for key in sorted(wanted):
        if key in taken:
            raise _Refused(f'"{key[1]}" is already in use by {taken[key]}, which is older', wanted[key])
    taken.update(dict.fromkeys(wanted, name))


def _storing(definition: Document) -> str:
    """The version that stores; empty: none does."""
    versions = documents.mappings(documents.mapping(definition, "spec"), "versions")
    return next((_text(version, "name") for version in versions if version.get("storage") is True), "")


def _versions(definition: Document, group: str, names: _Names, left: list[str]) -> list[Served]:
    spec, metadata = documents.mapping(definition, "spec"), documents.mapping(definition, "metadata")
    versions = documents.mappings(spec, "versions")
    storing = _storing(definition)
    if not storing:
        raise _Refused("no version of it stores: set storage of one of spec.versions")
    stored = _kind(group, storing, names)
    by_webhook = documents.mapping(spec, "conversion").get("strategy") == "Webhook"
    verbs = _VERBS_OF_THE_LEAVING if metadata.get("deletionTimestamp") else _VERBS
    found: dict[str, Served] = {}
    for version in versions:
        name = _text(version, "name")
        if version.get("served") is not True or name in found:
            continue
        if by_webhook and name != storing:
            left.append(
                f"version {cut(name)} is not served: webhooks that convert are not called, {storing} is what is stored"
            )
            continue
        try:
            _kind(group, name, names)
        except _Refused as refused:
            left.append(f'version "{cut(name)}" is not served: {refused}')
            continue
        found[name] = _served(version, group, names, stored)._replace(
            namespaced=spec.get("scope") == "Namespaced", verbs=verbs
        )
    return list(found.values())


def _kind(group: str, version: str, names: _Names) -> kinds.Kind:
    try:
        kind = kinds.kind_for(f"{group}/{version}", names.kind)
    except UnknownKindError as error:
        raise _Refused(str(error)) from error
    return kind


def _served(version: Document, group: str, names: _Names, stored: kinds.Kind) -> Served:
    name = _text(version, "name")
    parts = documents.mapping(version, "subresources")
    subresources: list[Subresource] = []
    if documents.is_mapping(parts.get("status")):
        subresources.append(Subresource("status", names.kind, group, name, READ_AND_CHANGED))
    scale = parts.get("scale")
    if documents.is_mapping(scale):
        subresources.append(SCALE)
    schema = documents.mapping(version, "schema").get("openAPIV3Schema")
    return Served(
        group=group,
        version=name,
        resource=names.plural,
        singular=names.singular,
        kind=names.kind,
        list_kind=names.list_kind,
        namespaced=True,
        verbs=_VERBS,
        short_names=names.short,
        categories=names.categories,
        subresources=tuple(subresources),
        stored=stored,
        columns=tuple(documents.mappings(version, "additionalPrinterColumns")),
        schema=schema if documents.is_mapping(schema) else None,
        scale=scale if documents.is_mapping(scale) else None,
    )


def _text(document: Document, key: str) -> str:
    found = document.get(key)
    return found if isinstance(found, str) else ""


def _texts(document: Document, key: str) -> tuple[str, ...]:
    found = document.get(key)
    return tuple(item for item in found if isinstance(item, str)) if documents.is_list(found) else ()
