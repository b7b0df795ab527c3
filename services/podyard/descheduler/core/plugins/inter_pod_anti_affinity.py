"""RemovePodsViolatingInterPodAntiAffinity: evicts pods that share a domain with a pod that their own
anti-affinity keeps away. The other pod stays.

Source: pkg/framework/plugins/removepodsviolatinginterpodantiaffinity (v0.36.0); pkg/utils/predicates.go,
CheckPodsWithAntiAffinityExist.
"""

from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from typing import ClassVar, Final

from podyard.descheduler.core import anti_affinity, arguments, event_hints, ordering
from podyard.descheduler.core.anti_affinity import Repelling
from podyard.descheduler.core.arguments import Args, Namespaces, PluginArgs, SelectorArgs
from podyard.descheduler.core.candidates import Candidates
from podyard.descheduler.core.framework import Answer, Evict, Handle, Registration, Run, Target, Verdict
from podyard.descheduler.core.labelled import Labelled
from podyard.objects.errors import SelectorError
from podyard.objects.node import Node
from podyard.objects.pod import Pod

NAME: Final = "RemovePodsViolatingInterPodAntiAffinity"


class InterPodAntiAffinityArgs(PluginArgs, frozen=True, kw_only=True):
    """Which pods are looked at, on both sides of a conflict."""

    namespaces: Namespaces | None = None
    label_selector: SelectorArgs | None = None


class RemovePodsViolatingInterPodAntiAffinity:
    """One run over all nodes."""

    NAME: ClassVar[str] = NAME
    ARGS: ClassVar[type[Args]] = InterPodAntiAffinityArgs

    def __init__(self, args: InterPodAntiAffinityArgs, handle: Handle) -> None:
        self._handle = handle
        self._candidates = Candidates(handle.evictor, args.namespaces, args.label_selector)
        self._present: _Present | None = None
        """Of the run that is on."""

    @classmethod
    def faults(cls, args: InterPodAntiAffinityArgs) -> list[str]:
        """What is wrong with the arguments."""
        return arguments.namespace_faults(args.namespaces) + arguments.selector_faults(args.label_selector)

    @classmethod
    def events_to_register(cls, args: InterPodAntiAffinityArgs) -> tuple[Registration, ...]:
        """Other labels, of nodes and of placed pods."""
        return event_hints.NODE_LABELS, event_hints.POD_LABELS

    def deschedule(self, nodes: list[Node]) -> Run:
        """Node by node, the least important pod first. Whoever has gone is in nobody's way any more."""
        state = self._handle.state
        on_node = {
            node.metadata.name: [pod for pod in state.pods_on(node.metadata.name) if self._candidates.chosen(pod)]
            for node in nodes
        }
        present = self._present = _Present(nodes, [pod for pods in on_node.values() for pod in pods])
        for node in nodes:
            for pod in ordering.least_important_first(filter(_repels, on_node[node.metadata.name])):
                conflict = present.conflict(pod)
                if not conflict or not self._candidates.may_go(pod):
                    continue
                answer = yield Evict(pod, f"its anti-affinity keeps {conflict} away")
                if answer is Answer.TOTAL_LIMIT:
                    return
                if answer is Answer.NODE_LIMIT:
                    break
                if answer is Answer.EVICTED:
                    present.remove(pod)

    def is_better(self, pod: Pod, target: Target) -> Verdict:
        """Where nobody is whom it keeps away."""
        assert self._present is not None, "it is asked during a run"
        conflict = self._present.conflict(pod, target.node.metadata.name)
        return Verdict(not conflict, (f"its anti-affinity keeps {conflict} away, which is there",) if conflict else ())


def _repels(pod: Pod) -> bool:
    """Whether it has an anti-affinity at all: few pods do."""
    return pod.spec.affinity is not None and pod.spec.affinity.pod_anti_affinity is not None


class _Places:
    """Where the pods are that a term keeps away: names by node, and by the value of the topology key."""

    def __init__(self) -> None:
        self.on_node: dict[str, Counter[str]] = {}
        self.in_domain: dict[str, Counter[str]] = {}

    def change(self, pod: Pod, domain: str | None, by: int) -> None:
        """A pod came (1) or went (-1)."""
        self.on_node.setdefault(pod.spec.node_name, Counter())[pod.metadata.name] += by
        if domain is not None:
            self.in_domain.setdefault(domain, Counter())[pod.metadata.name] += by


class _Present:
    """The pods that may be in somebody's way, and what they are asked for."""

    def __init__(self, nodes: Iterable[Node], pods: Iterable[Pod]) -> None:
        self._labels = {node.metadata.name: node.metadata.labels for node in nodes}
        by_namespace: dict[str, list[Pod]] = {}
        for pod in pods:
            by_namespace.setdefault(pod.metadata.namespace, []).append(pod)
        self._pods = {namespace: Labelled(found) for namespace, found in by_namespace.items()}
        self._gone: set[tuple[str, str]] = set()
        self._places: dict[Repelling, _Places] = {}

    def remove(self, pod: Pod) -> None:
        """It has gone."""
        self._gone.add(pod.key)
        for term, places in self._places.items():
            if term.takes(pod):
                places.change(pod, self._domain(pod, term), -1)

    def conflict(self, pod: Pod, where: str = "") -> str:
        """The name of a pod that one of its terms keeps away, and that is there; empty if there is none.

        Terms are looked at in order, up to one that makes no sense. Pods of the same name never conflict; on
        the same node they do whatever its labels (docs/rules.md, only-the-pod-that-repels-goes).

        :param where: on this node; empty: on its own
        """
        with suppress(SelectorError):
            for term in anti_affinity.repelling(pod):
                places = self._where(term)
                node = where or pod.spec.node_name
                domain = self._labels[node].get(term.topology_key) if node in self._labels else None
                near = [places.on_node.get(node)]
                near += [places.in_domain.get(domain)] if domain is not None else []
                for names in near:
                    other = _another(names, pod.metadata.name)
                    if other:
                        return other
        return ""

    def _domain(self, pod: Pod, term: Repelling) -> str | None:
        return self._labels[pod.spec.node_name].get(term.topology_key)

    def _where(self, term: Repelling) -> _Places:
        found = self._places.get(term)
        if found is None:
            found = self._places[term] = _Places()
            for namespace in term.namespaces:
                for pod in self._pods[namespace].matching(term.selector) if namespace in self._pods else ():
                    if pod.key not in self._gone:
                        found.change(pod, self._domain(pod, term), 1)
        return found


def _another(names: Counter[str] | None, own: str) -> str:
    """A name that is there, other than `own`."""
    if names is None:
        return ""
    return next((name for name, count in names.items() if count > 0 and name != own), "")
