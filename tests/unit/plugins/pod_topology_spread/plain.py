"""Topology spreading, one node and one pod at a time, as the reference's rules say. Uses objects only, none
of the plugin's code.

Source: kube-scheduler v1.36.2, podtopologyspread/common.go, filtering.go, scoring.go;
plugins/helper/spread.go.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from podyard.cluster.pods import PodView
from podyard.objects.affinity import TopologySpreadConstraint
from podyard.objects.core import Node
from podyard.objects.meta import LabelSelector

HOST = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"
MISSING, SKEWED = "missing label", "skewed"

Selects = Callable[[Mapping[str, str]], bool]


class Rule(NamedTuple):
    """A constraint with its selector as a function. `empty`: the selector has no requirements, so it counts
    no placed pod."""

    spread: TopologySpreadConstraint
    selects: Selects
    empty: bool


class Place(NamedTuple):
    """A node with its pods."""

    node: Node
    pods: Sequence[PodView]


class Owners(NamedTuple):
    """What default constraints look at: objects by (namespace, name)."""

    services: Mapping[tuple[str, str], Any]
    controllers: Mapping[tuple[str, str, str], Any]
    """By kind, namespace and name."""


def own_rules(pod: PodView, action: str) -> list[Rule]:
    """The pod's own constraints of one kind."""
    found: list[Rule] = []
    for spread in pod.pod.spec.topology_spread_constraints:
        if spread.when_unsatisfiable == action:
            keys = {key: pod.labels[key] for key in spread.match_label_keys if key in pod.labels}
            selects = _both(_by_selector(spread.label_selector), keys)
            given = spread.label_selector
            empty = given is not None and not given.match_labels and not given.match_expressions and not keys
            found.append(Rule(spread, selects, empty))
    return found


def default_rules(
    pod: PodView, defaults: Iterable[TopologySpreadConstraint], action: str, owners: Owners
) -> list[Rule]:
    """The default constraints of one kind, with the selector of the pod's Services and controller."""
    wanted = [spread for spread in defaults if spread.when_unsatisfiable == action]
    labels: dict[str, str] = {}
    for (namespace, _), service in owners.services.items():
        mine = service.spec.selector
        if namespace == pod.namespace and mine and all(pod.labels.get(key) == mine[key] for key in mine):
            labels |= mine
    more: LabelSelector | None = LabelSelector()
    for reference in pod.pod.metadata.owner_references:
        if reference.controller:
            owner = owners.controllers.get((reference.kind, pod.namespace, reference.name))
            if owner is not None and reference.kind == "ReplicationController":
                labels |= owner.spec.selector
            elif owner is not None:
                more = owner.spec.selector or LabelSelector()
            break
    assert more is not None
    if not labels and not more.match_labels and not more.match_expressions:
        return []
    return [Rule(spread, _both(_by_selector(more), labels), empty=False) for spread in wanted]


def filtered(
    pod: PodView, rules: Sequence[Rule], places: Sequence[Place], trial: Mapping[str, Sequence[tuple[PodView, int]]]
) -> dict[str, str]:
    """Why nodes do not take the pod, by name.

    :param trial: by node: pods that it has more (1) or less (-1); those count whether ending or not, and by
        an empty selector too
    """
    sums = [_domain_sums(pod, rule, rules, places) for rule in rules]
    for place in places:
        for other, more in trial.get(place.node.metadata.name, ()):
            for rule, found in zip(rules, sums, strict=True):
                value = place.node.metadata.labels.get(rule.spread.topology_key)
                matching = other.namespace == pod.namespace and rule.selects(other.labels)
                if matching and value in found and _counts(pod, rule, rules, place.node):
                    found[value] += more
    reasons: dict[str, str] = {}
    for place in places:
        for rule, found in zip(rules, sums, strict=True):
            value = place.node.metadata.labels.get(rule.spread.topology_key)
            if value is None:
                reasons[place.node.metadata.name] = MISSING
                break
            few = len(found) < (1 if rule.spread.min_domains is None else rule.spread.min_domains)
            lowest = 0 if few else min(found.values())
            if found.get(value, 0) + rule.selects(pod.labels) - lowest > rule.spread.max_skew:
                reasons[place.node.metadata.name] = SKEWED
                break
    return reasons


def scored(
    pod: PodView, rules: Sequence[Rule], places: Sequence[Place], feasible: Sequence[str], *, all_labels: bool
) -> dict[str, tuple[int, int]]:
    """Raw and normalised points of the feasible nodes.

    :param all_labels: nodes that lack the label of one constraint are ignored
    """
    ignored = {
        place.node.metadata.name
        for place in places
        if all_labels and any(rule.spread.topology_key not in place.node.metadata.labels for rule in rules)
    }
    chosen = [place for place in places if place.node.metadata.name in feasible]
    weights: list[float] = []
    for rule in rules:
        values = {
            place.node.metadata.labels.get(rule.spread.topology_key, "")
            for place in chosen
            if place.node.metadata.name not in ignored
        }
        size = (
            len([place for place in chosen if place.node.metadata.name not in ignored])
            if rule.spread.topology_key == HOST
            else len(values)
        )
        weights.append(math.log(size + 2))
    raw: dict[str, int] = {}
    for place in chosen:
        total = 0.0
        for rule, weight in zip(rules, weights, strict=True):
            key = rule.spread.topology_key
            if key in place.node.metadata.labels and place.node.metadata.name not in ignored:
                count = (
                    _pods(pod, rule, place)
                    if key == HOST
                    else sum(
                        _pods(pod, rule, other)
                        for other in places
                        if other.node.metadata.name not in ignored
                        and other.node.metadata.labels.get(key, "") == place.node.metadata.labels[key]
                        and _policies(pod, rule, other.node)
                    )
                )
                total += float(count) * weight + float(rule.spread.max_skew - 1)
        raw[place.node.metadata.name] = math.floor(total) + (1 if total - math.floor(total) >= 0.5 else 0)
    counted = [raw[name] for name in raw if name not in ignored]
    points: dict[str, tuple[int, int]] = {}
    for name, score in raw.items():
        if name in ignored:
            points[name] = 0, 0
        elif max(counted) == 0:
            points[name] = 0, 100
        else:
            points[name] = score, 100 * (max(counted) + min(counted) - score) // max(counted)
    return points


def _domain_sums(pod: PodView, rule: Rule, rules: Sequence[Rule], places: Sequence[Place]) -> dict[str, int]:
    found: dict[str, int] = {}
    for place in places:
        if _counts(pod, rule, rules, place.node):
            value = place.node.metadata.labels[rule.spread.topology_key]
            found[value] = found.get(value, 0) + _pods(pod, rule, place)
    return found


def _pods(pod: PodView, rule: Rule, place: Place) -> int:
    return sum(
        not rule.empty and not other.deleting and other.namespace == pod.namespace and rule.selects(other.labels)
        for other in place.pods
    )


def _counts(pod: PodView, rule: Rule, rules: Sequence[Rule], node: Node) -> bool:
    has_all = all(other.spread.topology_key in node.metadata.labels for other in rules)
    return has_all and _policies(pod, rule, node)


def _policies(pod: PodView, rule: Rule, node: Node) -> bool:
    """Inclusion policies. The tests' pods select nodes by nodeSelector only."""
    if rule.spread.node_affinity_policy != "Ignore":
        wanted = pod.pod.spec.node_selector
        if any(node.metadata.labels.get(key) != value for key, value in wanted.items()):
            return False
    if rule.spread.node_taints_policy == "Honor":
        tolerated = {toleration.key for toleration in pod.pod.spec.tolerations}
        return all(taint.key in tolerated or taint.effect == "PreferNoSchedule" for taint in node.spec.taints)
    return True


def _by_selector(selector: LabelSelector | None) -> Selects:
    def selects(labels: Mapping[str, str]) -> bool:
        if selector is None or any(labels.get(key) != value for key, value in selector.match_labels.items()):
            return False
        for line in selector.match_expressions:
            held = labels.get(line.key)
            holds = {
                "In": held in line.values,
                "NotIn": held not in line.values,
                "Exists": held is not None,
                "DoesNotExist": held is None,
            }
            if not holds[line.operator]:
                return False
        return True

    return selects


def _both(selects: Selects, wanted: Mapping[str, str]) -> Selects:
    return lambda labels: selects(labels) and all(labels.get(key) == value for key, value in wanted.items())
