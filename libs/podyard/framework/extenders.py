"""HTTP extenders as the cycle sees them: what they are to be asked, and what their answers mean. Pure:
somebody else calls.

    calls for: filter one after the other, each is shown what the one before left
               prioritize all at the same time
               preempt one after the other
    an error of filter or preempt ends the attempt, unless the extender is ignorable; one of prioritize only
    costs it its say

Source: kube-scheduler v1.36.2, pkg/scheduler/extender.go, pkg/scheduler/schedule_one.go
(findNodesThatPassExtenders, prioritizeNodes), pkg/scheduler/framework/preemption/preemption.go
(callExtenders), kube-scheduler/extender/v1/types.go.
"""

from collections.abc import Generator, Iterable, Mapping, Sequence
from typing import Final, TypeAlias, TypeVar

import msgspec

from podyard.cluster.node_table import NodeTable
from podyard.framework import status as statuses
from podyard.framework.interfaces import NodeVictims
from podyard.framework.normalizing import MAX_SCORE
from podyard.framework.pod_info import PodInfo
from podyard.framework.status import Status
from podyard.objects.containers import Container

REJECTOR: Final = "Extender"
"""Stands for all extenders among the rejectors: any event may help. Source: framework.ExtenderName."""

MAX_PRIORITY: Final = 10
"""Highest score of an extender. Source: MaxExtenderPriority."""

MOST_POINTS: Final = 2**53
"""A node's points of one extender, either way: totals stay exact in messages. The reference lets sums beyond
64 bits wrap around."""


class Extender(msgspec.Struct, frozen=True, kw_only=True):
    """What the cycle has to know of an extender; in the order in which they are called (ignorable ones
    last)."""

    name: str
    """Its URL prefix."""
    filters: bool = False
    prioritizes: bool = False
    preempts: bool = False
    weight: int = 1
    ignorable: bool = False
    """Its failure to filter or preempt is no failure of the attempt."""
    node_cache_capable: bool = False
    """It keeps nodes itself, and is told names and uids instead of objects."""
    managed_resources: frozenset[str] = frozenset()
    """It is asked only about pods that mention one of these; empty: about all."""

    def is_interested(self, pod: PodInfo) -> bool:
        """Whether it is to be asked about this pod. Source: IsInterested."""
        if not self.managed_resources:
            return True
        spec = pod.pod.spec
        return self._manages(spec.containers) or self._manages(spec.init_containers)

    def _manages(self, containers: Iterable[Container]) -> bool:
        return any(
            not self.managed_resources.isdisjoint((*container.resources.requests, *container.resources.limits))
            for container in containers
        )


class FilterCall(msgspec.Struct, frozen=True, kw_only=True):
    """Which of these nodes can take the pod?"""

    extender: Extender
    pod: PodInfo
    nodes: tuple[str, ...]
    """At least one, sorted."""


class PrioritizeCall(msgspec.Struct, frozen=True, kw_only=True):
    """How good are these nodes for the pod?"""

    extender: Extender
    pod: PodInfo
    nodes: tuple[str, ...]


class PreemptCall(msgspec.Struct, frozen=True, kw_only=True):
    """What of this would you do: on which nodes, and with which victims?"""

    extender: Extender
    pod: PodInfo
    victims: Mapping[str, NodeVictims]
    """By node; at least one."""


class FilterAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Which nodes are left."""

    nodes: tuple[str, ...] = ()
    failed: Mapping[str, str] = {}
    """Nodes where preemption may help, with the reason."""
    failed_and_unresolvable: Mapping[str, str] = {}
    """Nodes where it cannot."""
    error: str = ""
    """Why there is no answer: it could not be reached, or said so itself."""


class PrioritizeAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """Scores from 0 to 10, by node; a node that is missing gets nothing."""

    scores: Mapping[str, int] = {}
    error: str = ""


class MetaVictims(msgspec.Struct, frozen=True, kw_only=True):
    """Victims on one node, as an extender names them."""

    uids: tuple[str, ...]
    pdb_violations: int = 0


class PreemptAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """What it would do, by node."""

    victims: Mapping[str, MetaVictims] = {}
    error: str = ""


ExtenderCall: TypeAlias = FilterCall | PrioritizeCall | PreemptCall
ExtenderAnswer: TypeAlias = FilterAnswer | PrioritizeAnswer | PreemptAnswer
Calls: TypeAlias = tuple[ExtenderCall, ...]
"""To be made at the same time."""
Answers: TypeAlias = tuple[ExtenderAnswer, ...]
"""One for each call, in the same order, of the kind that belongs to it."""


A = TypeVar("A", bound=ExtenderAnswer)


class ExtenderError(Exception):
    """An extender that must not fail has failed. Its text is the attempt's error."""


class Filtered(msgspec.Struct, frozen=True, kw_only=True):
    """What all extenders together left."""

    nodes: tuple[str, ...]
    """Sorted."""
    rejected: Mapping[str, Status] = {}
    """Nodes with a reason, by name; a node can be missing without one."""


def filter_steps(
    extenders: Sequence[Extender], pod: PodInfo, nodes: Iterable[str]
) -> Generator[Calls, Answers, Filtered]:
    """Ask all extenders that filter, one after the other, until no node is left.

    :param nodes: what the Filter plugins pass
    :raises ExtenderError: if one fails that is not ignorable
    """
    left = tuple(sorted(nodes))
    rejected: dict[str, Status] = {}
    for extender in extenders:
        if not left:
            break
        if not extender.filters or not extender.is_interested(pod):
            continue
        answer = yield from _ask(FilterCall(extender=extender, pod=pod, nodes=left), FilterAnswer)
        error = answer.error or _unknown_node(extender, answer.nodes, left)
        if error:
            if extender.ignorable:
                continue
            raise ExtenderError(error)
        rejected |= {node: statuses.unschedulable(reason) for node, reason in answer.failed.items()}
        rejected |= {node: statuses.unresolvable(reason) for node, reason in answer.failed_and_unresolvable.items()}
        left = tuple(sorted(frozenset(answer.nodes)))
    return Filtered(nodes=left, rejected=rejected)


def prioritize_steps(
    extenders: Sequence[Extender], pod: PodInfo, nodes: Sequence[str]
) -> Generator[Calls, Answers, dict[str, dict[str, int]]]:
    """Ask all extenders that prioritize, at the same time.

    :return: points by node and extender, on the scale of plugins and with the extender's weight
    """
    asked = [extender for extender in extenders if extender.prioritizes and extender.is_interested(pod)]
    points: dict[str, dict[str, int]] = {}
    if not asked:
        return points
    answers = yield tuple(PrioritizeCall(extender=extender, pod=pod, nodes=tuple(nodes)) for extender in asked)
    for extender, answer in zip(asked, answers, strict=True):
        for node, score in _expected(answer, PrioritizeAnswer).scores.items():
            weighted = score * extender.weight * (MAX_SCORE // MAX_PRIORITY)
            points.setdefault(node, {})[extender.name] = max(-MOST_POINTS, min(MOST_POINTS, weighted))
    return points


def preempt_steps(
    extenders: Sequence[Extender], pod: PodInfo, victims: Mapping[str, NodeVictims], nodes: NodeTable
) -> Generator[Calls, Answers, Mapping[str, NodeVictims]]:
    """Ask all extenders that preempt, one after the other, until nothing is left.

    :param victims: the candidates, by node
    :return: what they would do; an extender may choose other pods of a node, and other nodes
    :raises ExtenderError: if one fails that is not ignorable
    """
    left = victims
    for extender in extenders:
        if not left:
            break
        if not extender.preempts or not extender.is_interested(pod):
            continue
        answer = yield from _ask(PreemptCall(extender=extender, pod=pod, victims=left), PreemptAnswer)
        try:
            left = _agreed(extender, answer, nodes)
        except ExtenderError:
            if not extender.ignorable:
                raise
    return left


def _agreed(extender: Extender, answer: PreemptAnswer, nodes: NodeTable) -> Mapping[str, NodeVictims]:
    """Source: ProcessPreemption (convertToVictims, convertPodUIDToPod), callExtenders.

    :raises ExtenderError: if it failed, or named a node or pod that is not there, or no victim
    """
    if answer.error:
        raise ExtenderError(answer.error)
    found: dict[str, NodeVictims] = {}
    for node, named in answer.victims.items():
        if node not in nodes.row_of:
            raise ExtenderError(f'nodeinfo not found for node name "{node}"')
        there = nodes.pods_on(node)
        for uid in named.uids:
            if uid not in there:
                raise ExtenderError(
                    f"extender: {extender.name} claims to preempt pod (UID: {uid}) on node: {node}, but the pod is not "
                    "found on that node"
                )
        if named.uids:
            pods = tuple([there[uid] for uid in dict.fromkeys(named.uids)])
            found[node] = NodeVictims(pods=pods, pdb_violations=named.pdb_violations)
        elif not extender.ignorable:
            raise ExtenderError(f'expected at least one victim pod on node "{node}"')
    return found


def _unknown_node(extender: Extender, nodes: Iterable[str], asked: Sequence[str]) -> str:
    known = frozenset(asked)
    for node in nodes:
        if node not in known:
            return (
                f'extender "{extender.name}" claims a filtered node "{node}" which is not found in the input node list'
            )
    return ""


def _ask(call: ExtenderCall, kind: type[A]) -> Generator[Calls, Answers, A]:
    (answer,) = yield (call,)
    return _expected(answer, kind)


def _expected(answer: ExtenderAnswer, kind: type[A]) -> A:
    if not isinstance(answer, kind):
        raise TypeError(f"expected a {kind.__name__} from the extender, got {type(answer).__name__}")
    return answer
