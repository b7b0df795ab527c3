"""Which objects a command means: kinds, names, `kind/name`, files, selectors."""

from collections.abc import Sequence
from typing import NamedTuple

from podyard.bus.connection import Bus
from podyard.cli import files as file_reader
from podyard.cli import selection, stored_objects
from podyard.cli.errors import InputError
from podyard.cli.options import DEFAULT_NAMESPACE
from podyard.cluster.keys import ObjectKey
from podyard.objects.errors import UnknownKindError
from podyard.objects.kinds import Kind, resource_for
from podyard.objects.selectors import EVERYTHING, Selector
from podyard.proto import subjects
from podyard.proto.message import ObjectRef
from podyard.telling.objects import Objects


class Wanted(NamedTuple):
    """Objects by name, or all of a kind that a selector chooses."""

    refs: tuple[ObjectRef, ...]
    kinds: tuple[Kind, ...]
    namespace: str | None
    """None: every namespace."""
    selector: Selector


def kind_named(name: str) -> Kind:
    """The kind people call `name`.

    :raises InputError: if there is none
    """
    try:
        return resource_for(name)
    except UnknownKindError as error:
        raise InputError(error.detail) from error


def reference(kind: Kind, namespace: str | None, name: str) -> ObjectRef:
    """One object; its namespace only if its kind has one."""
    scope = (namespace or DEFAULT_NAMESPACE) if kind.namespaced else ""
    return ObjectRef(resource=kind.resource, namespace=scope, name=name)


def parse(
    kind: str,
    names: Sequence[str],
    files: Sequence[str],
    namespace: str | None,
    *,
    selector: str = "",
    all_: bool = False,
) -> Wanted:
    """What was typed, checked.

    :raises InputError: for an unknown kind, or too little or contradictory words
    """
    if files and (kind or names):
        raise InputError("both files and names were given", "use either -f FILE or KIND NAME")
    if files:
        return _from_files(files, namespace)
    if not kind:
        raise InputError("which object?", "say KIND NAME, KIND/NAME, -f FILE, or KIND -l SELECTOR")
    if "/" in kind:
        refs = tuple(_named(word, namespace) for word in (kind, *names))
        return Wanted(refs, (), namespace, EVERYTHING)
    kinds = [kind_named(word) for word in kind.split(",")]
    if names:
        if selector or all_:
            raise InputError("names and a selector were given", "use one of them")
        if len(kinds) > 1:
            raise InputError("names need one kind", "write KIND/NAME for objects of several kinds")
        return Wanted(tuple(reference(kinds[0], namespace, name) for name in names), (), namespace, EVERYTHING)
    if not (selector or all_):
        raise InputError(f"which {kind}?", "name objects, or use -l SELECTOR, or --all")
    return Wanted((), tuple(kinds), namespace, selection.parse(selector))


def slashed(word: str) -> tuple[Kind, str]:
    """KIND/NAME.

    :raises InputError: if it is something else
    """
    kind, slash, name = word.partition("/")
    if not slash or not name:
        raise InputError(f"{word}: expected KIND/NAME")
    return kind_named(kind), name


def _named(word: str, namespace: str | None) -> ObjectRef:
    kind, name = slashed(word)
    return reference(kind, namespace, name)


def _from_files(files: Sequence[str], namespace: str | None) -> Wanted:
    refs: list[ObjectRef] = []
    for manifest in file_reader.read_all(files):
        if not manifest.name:
            raise InputError(str(manifest.fault("metadata.name", "an object to delete must have a name")))
        scope = manifest.namespace or namespace
        if manifest.kind.custom and not manifest.namespace:
            refs.append(ObjectRef(resource=manifest.kind.resource, name=manifest.name))
        else:
            refs.append(reference(manifest.kind, scope, manifest.name))
    return Wanted(tuple(refs), (), namespace, EVERYTHING)


async def on_node(bus: Bus, node: str, namespace: str | None, selector: Selector) -> list[ObjectRef]:
    """The pods that are bound to a node now; those that have ended are not.

    :param namespace: None: every namespace
    :raises InputError: if there is no such node, nor a pod on it
    """
    found = await stored_objects.read(bus, (subjects.PODS, subjects.NODES))
    bound = [key for key in found.keys(subjects.PODS, None) if _node_of(found, key) == node]
    if not bound and node not in found.view.nodes:
        raise InputError(f"no node is called {node!r}", "`podyard get nodes` lists them")
    return [
        ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name)
        for key in bound
        if namespace in (None, key.namespace) and selector.matches(found.labels(key))
    ]


def _node_of(found: Objects, key: ObjectKey) -> str:
    pod = found.view.pods.get((key.namespace, key.name))
    return "" if pod is None or pod.bound is None else pod.bound.node


async def resolve(bus: Bus, wanted: Wanted) -> list[ObjectRef]:
    """The objects meant; those by selector as they are now."""
    if not wanted.kinds:
        return list(wanted.refs)
    found = await stored_objects.read(bus, [kind.resource for kind in wanted.kinds])
    return [
        ObjectRef(resource=key.resource, namespace=key.namespace, name=key.name)
        for kind in wanted.kinds
        for key in found.keys(kind.resource, wanted.namespace if kind.namespaced else None)
        if wanted.selector.matches(found.labels(key))
    ]
