"""RemoveDuplicates: evicts pods of one owner from nodes that have more of them than their share.

Source: pkg/framework/plugins/removeduplicates (v0.36.0).
"""

from collections import Counter
from collections.abc import Iterable
from typing import ClassVar, Final, NamedTuple

import numpy as np

from podyard.descheduler.core import arguments, event_hints
from podyard.descheduler.core.arguments import Args, Namespaces, PluginArgs
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.columns import KEPT_BYTES, Columns, Mask
from podyard.descheduler.core.framework import Answer, Evict, Handle, Registration, Run, Target, Verdict, evict_each
from podyard.descheduler.core.state import CycleState
from podyard.memory.kept import Kept
from podyard.objects import selectors
from podyard.objects.affinity import Toleration
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
        self._share = 0
        """How many pods of the owner that is looked at a node may have."""

    @classmethod
    def faults(cls, args: DuplicatesArgs) -> list[str]:
        """What is wrong with the arguments."""
        return arguments.namespace_faults(args.namespaces)

    @classmethod
    def events_to_register(cls, args: DuplicatesArgs) -> tuple[Registration, ...]:
        """New nodes, which could take what stands twice elsewhere."""
        return (event_hints.NODE_CAME,)

    def balance(self, nodes: list[Node]) -> Run:
        """Owner by owner, node by node. The first of the like on a node is never a duplicate."""
        occurrences: Counter[_Owner] = Counter()
        duplicates: dict[_Owner, dict[str, list[Pod]]] = {}
        for node in nodes:
            self._count(node, occurrences, duplicates)
        usable = _Usable(nodes, self._handle.state)
        for owner, by_node in duplicates.items():
            count = usable.count(pod for pods in by_node.values() for pod in pods)
            if count < LEAST_NODES:
                continue
            share = self._share = -(-occurrences[owner] // count)
            reason = f"its node has more than {share} of the {occurrences[owner]} pods of {owner.kind} {owner.name}"
            for pods in by_node.values():
                if (yield from evict_each(Evict(pod, reason) for pod in pods[share - 1 :])) is Answer.TOTAL_LIMIT:
                    return

    def is_better(self, pod: Pod, target: Target) -> Verdict:
        """Where there are fewer of the like than their share."""
        name, key = target.node.metadata.name, _key(_owners(pod))
        there = (*self._handle.state.pods_on(name), *target.coming.get(name, ()))
        alike = sum(one.metadata.deletion_timestamp is None and _key(_owners(one)) == key for one in there)
        fits = alike < self._share
        return Verdict(fits, () if fits else (f"it has its share of {self._share} of the like already",))

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
    once, of all nodes."""

    def __init__(self, nodes: list[Node], state: CycleState) -> None:
        self._columns = state.index(Columns)
        self._among = self._columns.places(nodes)
        self._known = Kept[_Placeable, Mask](KEPT_BYTES, fewest=1)

    def count(self, pods: Iterable[Pod]) -> int:
        """Nodes that would take one of them at least; those that only a pod with no other choice could use
        do not count."""
        found = np.zeros(len(self._columns), dtype=np.bool_)
        for kind in {_Placeable(pod.spec.tolerations, selectors.required_node_affinity(pod)) for pod in pods}:
            mask = self._known.get(kind)
            if mask is None:
                mask = self._would_take(kind)
                self._known.keep(kind, mask, mask.nbytes)
            if np.count_nonzero(mask) > 1:
                found |= mask
        return int(np.count_nonzero(found))

    def _would_take(self, kind: _Placeable) -> Mask:
        """A term that makes no sense keeps no node away here."""
        terms = kind.affinity.affinity
        senseless = terms is not None and any(term.fault is not None for term in terms.terms)
        affinity = RequiredNodeAffinity(kind.affinity.selector, None) if senseless else kind.affinity
        return self._columns.matching(affinity) & self._columns.tolerated(kind.tolerations) & self._among
