"""RemoveDuplicates: evicts pods of one owner from nodes that have more of them than their share.

Source: pkg/framework/plugins/removeduplicates (v0.36.0).
"""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple

from podyard.descheduler.core import arguments, node_fit, tolerations
from podyard.descheduler.core.arguments import Args, Namespaces, PluginArgs
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Handle, Run, evict_each
from podyard.objects import selectors
from podyard.objects.affinity import Toleration
from podyard.objects.errors import SelectorError
from podyard.objects.node import Node
from podyard.objects.pod import Pod
from podyard.objects.selectors import RequiredNodeAffinity

NAME: Final = "RemoveDuplicates"
LEAST_NODES: Final = 2
"""With fewer nodes that would take them, duplicates have nowhere to go."""


class DuplicatesArgs(PluginArgs, frozen=True, kw_only=True):
    """Pods with an owner of an excluded kind are no duplicates."""

    namespaces: Namespaces | None = None
    exclude_owner_kinds: tuple[str, ...] = ()


class _Owner(NamedTuple):
    """Whose pods are alike: of one owner, with the same images."""

    namespace: str
    kind: str
    name: str
    images: tuple[str, ...]


class _Placeable(NamedTuple):
    """What decides which nodes would take a pod, as far as this plugin looks."""

    tolerations: tuple[Toleration, ...]
    affinity: RequiredNodeAffinity


class RemoveDuplicates:
    """One run over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = DuplicatesArgs

    def __init__(self, args: DuplicatesArgs, handle: Handle) -> None:
        self._args = args
        self._handle = handle
        self._candidates = Candidates(handle.evictor, args.namespaces)

    @classmethod
    def faults(cls, args: DuplicatesArgs) -> list[str]:
        """What is wrong with the arguments."""
        return arguments.namespace_faults(args.namespaces)

    def balance(self, nodes: list[Node]) -> Run:
        """Owner by owner, node by node. The first of the like on a node is never a duplicate."""
        occurrences: Counter[_Owner] = Counter()
        duplicates: dict[_Owner, dict[str, list[Pod]]] = {}
        for node in nodes:
            self._count(node, occurrences, duplicates)
        usable = _Usable(nodes)
        for owner, by_node in duplicates.items():
            count = usable.count(pod for pods in by_node.values() for pod in pods)
            if count < LEAST_NODES:
                continue
            share = -(-occurrences[owner] // count)
            reason = f"its node has more than {share} of the {occurrences[owner]} pods of {owner.kind} {owner.name}"
            for pods in by_node.values():
                if (yield from evict_each(Evict(pod, reason) for pod in pods[share - 1 :])) is Answer.TOTAL_LIMIT:
                    return

    def _count(self, node: Node, occurrences: Counter[_Owner], duplicates: dict[_Owner, dict[str, list[Pod]]]) -> None:
        """The pods of one node: how many each owner has, and which are duplicates of one before them."""
        seen: set[tuple[str, ...]] = set()
        for pod in self._handle.state.pods_on(node.metadata.name):
            if not self._is_owned(pod) or not self._candidates.may_go(pod):
                continue
            owners = _owners(pod)
            occurrences.update(owners)
            key = _key(owners)
            if key not in seen:
                seen.add(key)
                continue
            for owner in owners:
                duplicates.setdefault(owner, {}).setdefault(node.metadata.name, []).append(pod)

    def _is_owned(self, pod: Pod) -> bool:
        owners = pod.metadata.owner_references
        return bool(owners) and not any(owner.kind in self._args.exclude_owner_kinds for owner in owners)


def _owners(pod: Pod) -> list[_Owner]:
    images = tuple(sorted(container.image for container in pod.spec.containers))
    return [_Owner(pod.metadata.namespace, owner.kind, owner.name, images) for owner in pod.metadata.owner_references]


def _key(owners: list[_Owner]) -> tuple[str, ...]:
    """Two pods of a node with the same key are duplicates."""
    return tuple(
        sorted(f"{owner.namespace}/{owner.kind}/{owner.name}/{image}" for owner in owners for image in owner.images)
    )


class _Usable:
    """How many nodes would take pods, by taints, nodeSelector and node affinity. Each kind of pod is asked
    once."""

    def __init__(self, nodes: list[Node]) -> None:
        self._nodes = nodes
        self._known: dict[_Placeable, frozenset[str]] = {}

    def count(self, pods: Iterable[Pod]) -> int:
        """Nodes that would take one of them at least; those that only a pod with no other choice could use
        do not count."""
        found: set[str] = set()
        for kind in {_Placeable(pod.spec.tolerations, selectors.required_node_affinity(pod)) for pod in pods}:
            names = self._known.get(kind)
            if names is None:
                names = self._known[kind] = frozenset(
                    node.metadata.name for node in self._nodes if _would_take(node, kind)
                )
            if len(names) > 1:
                found |= names
        return len(found)


def _would_take(node: Node, kind: _Placeable) -> bool:
    """A selector that makes no sense keeps no node away here."""
    if not tolerations.all_tolerated(kind.tolerations, node.spec.taints, node_fit.is_hard):
        return False
    try:
        return kind.affinity.matches(node.metadata.labels, node.metadata.name)
    except SelectorError:
        return True
