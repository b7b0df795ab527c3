"""Whether what a reader holds is what the stream says: its view, what it counts on nodes, which pods wait.

Both sides are of one position, and values that do not change, so another thread may compare them.
Source: kube-scheduler v1.36.2, pkg/scheduler/backend/cache/debugger/comparer.go, which knows missed and
redundant nodes and pods. Here both have their contents compared, too: who holds an old version is `stale`.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from podyard.cluster.node_table import NodeTable
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView, requested_by
from podyard.cluster.view import ClusterView

MOST_NAMED: Final = 20
"""Of each kind of difference; all are counted."""


class Contents(NamedTuple):
    """What a view holds at one moment."""

    position: int
    nodes: Mapping[str, NodeView]
    pods: Mapping[str, PodView]
    """By uid."""
    objects: Mapping[str, Mapping[Any, Any]]
    """By resource, then by namespace and name."""


class Books(NamedTuple):
    """What is counted on nodes, beside a view."""

    nodes: frozenset[str]
    placed: Mapping[str, PodView]
    """Pods that take room, by uid; `bound` says where."""
    requested: Mapping[str, Mapping[str, int]]
    """What all pods of a node take, by node."""
    own: Mapping[str, str]
    """By uid: why a pod is counted that the stream does not bind."""
    freed: frozenset[str] = frozenset()
    """Uids that are not counted any more though the stream still binds them."""


class Waiting(NamedTuple):
    """Which pods wait, beside a view."""

    pods: Mapping[str, str]
    """Names of those that do, by uid."""
    is_to_wait: Callable[[PodView], bool]


class Held(NamedTuple):
    """All that a service holds at one moment."""

    view: Contents
    books: Books | None = None
    waiting: Waiting | None = None


class Named(msgspec.Struct, frozen=True, rename="camel"):
    """Some of many."""

    count: int = 0
    first: tuple[str, ...] = ()


NOTHING: Final = Named()


class Group(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """How one kind of thing differs."""

    same: int
    """How many are the same on both sides."""
    missed: Named = NOTHING
    """The stream has it, the service does not."""
    redundant: Named = NOTHING
    """The service has it, the stream does not."""
    stale: Named = NOTHING
    """Both have it, and it is not the same."""

    @property
    def differs(self) -> bool:
        """Whether anything does."""
        return bool(self.missed.count or self.redundant.count or self.stale.count)


class Differences(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """What was found."""

    position: int
    """CLUSTER sequence of both sides."""
    nodes: Group
    pods: Group
    objects: dict[str, Group]
    """By resource."""
    counted: Group | None = None
    """Pods that take room on nodes; `stale`: on another node, or more or less of it."""
    requested: Named | None = None
    """Nodes on which something else is summed up than their pods take."""
    waiting: Group | None = None
    """Pods of the queue."""

    @property
    def differs(self) -> bool:
        """Whether anything does."""
        groups = (self.nodes, self.pods, *self.objects.values(), self.counted, self.waiting)
        return any(group is not None and group.differs for group in groups) or bool(
            self.requested is not None and self.requested.count
        )


def contents(view: ClusterView) -> Contents:
    """What a view holds now."""
    objects = {resource: dict(view.objects(resource)) for resource in view.resources}
    return Contents(view.position, dict(view.nodes), dict(view.pods_by_uid), objects)


def books(table: NodeTable, own: Mapping[str, str], freed: Iterable[str] = ()) -> Books:
    """What a table holds now."""
    requested = {name: dict(table.room.taken(row).requests) for name, row in table.row_of.items()}
    return Books(frozenset(table.row_of), dict(table.all_placed), requested, dict(own), frozenset(freed))


def compare(listed: Contents, held: Held) -> Differences:
    """Everything in which `held` differs from what the stream says.

    :param listed: what a fresh listing found, at the position of what is held
    """
    view, counts = held.view, held.books
    resources = sorted({*listed.objects, *view.objects})
    nodes = view.nodes.keys() if counts is None else counts.nodes
    return Differences(
        position=listed.position,
        nodes=_group(
            listed.nodes.keys(),
            nodes,
            lambda name: name not in view.nodes or listed.nodes[name].facts() != view.nodes[name].facts(),
            str,
        ),
        pods=_group(
            listed.pods.keys(),
            view.pods.keys(),
            lambda uid: listed.pods[uid].facts() != view.pods[uid].facts(),
            lambda uid: _name(listed.pods.get(uid) or view.pods[uid]),
        ),
        objects={one: _objects(listed.objects.get(one, {}), view.objects.get(one, {})) for one in resources},
        counted=None if counts is None else _counted(listed, counts),
        requested=None if counts is None else _named(_sums_differ(counts)),
        waiting=None if held.waiting is None else _waiting(listed, held.waiting),
    )


def _objects(listed: Mapping[Any, Any], held: Mapping[Any, Any]) -> Group:
    return _group(listed.keys(), held.keys(), lambda key: listed[key] != held[key], "/".join)


def _counted(listed: Contents, counts: Books) -> Group:
    """Who takes room: bound by the stream, but who is known to be freed; and what is assumed."""
    bound = {uid: pod for uid, pod in listed.pods.items() if pod.bound is not None and uid not in counts.freed}
    placed = {uid: pod for uid, pod in counts.placed.items() if uid in bound or uid not in counts.own}

    def is_stale(uid: str) -> bool:
        there, here = bound[uid], placed[uid]
        if there.bound is None or here.bound is None:
            return True
        return there.bound.node != here.bound.node or there.usage != here.usage

    return _group(bound.keys(), placed.keys(), is_stale, lambda uid: _name(bound.get(uid) or placed[uid]))


def _sums_differ(counts: Books) -> Iterator[str]:
    on_node: dict[str, list[PodView]] = {}
    for pod in counts.placed.values():
        if pod.bound is not None:
            on_node.setdefault(pod.bound.node, []).append(pod)
    for node in sorted(counts.requested):
        is_, must = counts.requested[node], requested_by(on_node.get(node, ()))
        for resource in sorted({*is_, *must}):
            if is_.get(resource, 0) != must.get(resource, 0):
                yield f"{node}: {resource} is {is_.get(resource, 0)}, its pods take {must.get(resource, 0)}"


def _waiting(listed: Contents, waiting: Waiting) -> Group:
    wanted = {uid: pod for uid, pod in listed.pods.items() if waiting.is_to_wait(pod)}

    def name(uid: str) -> str:
        return waiting.pods.get(uid) or _name(wanted[uid])

    return _group(wanted.keys(), waiting.pods.keys(), lambda uid: False, name)


def _group(
    listed: Collection[Any], held: Collection[Any], is_stale: Callable[[Any], bool], name: Callable[[Any], str]
) -> Group:
    there, here = set(listed), set(held)
    stale = [key for key in there & here if is_stale(key)]
    return Group(
        same=len(there & here) - len(stale),
        missed=_named(map(name, there - here)),
        redundant=_named(map(name, here - there)),
        stale=_named(map(name, stale)),
    )


def _named(names: Iterable[str]) -> Named:
    found = sorted(names)
    return Named(len(found), tuple(found[:MOST_NAMED])) if found else NOTHING


def _name(pod: PodView) -> str:
    return f"{pod.namespace}/{pod.name} ({pod.uid})"
