"""What is not allowed in the arguments of the default plugins.

Sources: pkg/scheduler/apis/config/validation/validation_pluginargs.go;
component-helpers/scheduling/corev1/nodeaffinity; apimachinery/pkg/labels/selector.go (NewRequirement).
Feature gates at their defaults: StorageCapacityScoring is off, those of DynamicResources' time limits are on.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, cast

from podyard.configuration import label_keys, wire_args
from podyard.configuration.errors import FieldError
from podyard.configuration.findings import Findings
from podyard.configuration.wire import PluginConfig
from podyard.objects import go_syntax, selectors
from podyard.objects.affinity import NodeSelectorRequirement, NodeSelectorTerm, TopologySpreadConstraint

MISNAMED: Final = "NodeResourcesFitArgs"
"""The reference looks for this plugin name where it means NodeResourcesFit, and takes no arguments for it."""
STRATEGIES: Final = ("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")


def check(findings: Findings, path: str, config: PluginConfig) -> None:
    """Add what is wrong with the arguments of one plugin; NodeResourcesFit's are looked at when it is made
    (`fit_errors`)."""
    if config.name == MISNAMED:
        findings.invalid(path, {}, "has to match plugin args")
    rule = _RULES.get(config.args.__class__)
    if rule is not None:
        rule(findings, path, config.args)


def _default_preemption(findings: Findings, path: str, args: wire_args.DefaultPreemptionArgs) -> None:
    percentage, absolute = args.min_candidate_nodes_percentage or 0, args.min_candidate_nodes_absolute or 0
    if not 0 <= percentage <= 100:
        findings.invalid(f"{path}.minCandidateNodesPercentage", percentage, "not in valid range [0, 100]")
    if absolute < 0:
        findings.invalid(f"{path}.minCandidateNodesAbsolute", absolute, "not in valid range [0, inf)")
    if percentage == 0 and absolute == 0:
        for one, other in (
            ("minCandidateNodesPercentage", "minCandidateNodesAbsolute"),
            ("minCandidateNodesAbsolute", "minCandidateNodesPercentage"),
        ):
            findings.invalid(f"{path}.{one}", 0, f"cannot be zero at the same time as {other}")


def _dynamic_resources(findings: Findings, path: str, args: wire_args.DynamicResourcesArgs) -> None:
    if args.filter_timeout is not None and go_syntax.parse_duration(args.filter_timeout) < 0:
        findings.invalid_duration(f"{path}.filterTimeout", args.filter_timeout, "must be zero or positive")
    if args.binding_timeout is not None and go_syntax.parse_duration(args.binding_timeout) < 1:
        findings.invalid_duration(f"{path}.bindingTimeout", args.binding_timeout, "must be at least 1 second")


def _inter_pod_affinity(findings: Findings, path: str, args: wire_args.InterPodAffinityArgs) -> None:
    weight = args.hard_pod_affinity_weight or 0
    if not 0 <= weight <= 100:
        findings.invalid(f"{path}.hardPodAffinityWeight", weight, "not in valid range [0, 100]")


def _balanced_allocation(findings: Findings, path: str, args: wire_args.NodeResourcesBalancedAllocationArgs) -> None:
    seen: set[str] = set()
    for at, resource in enumerate(args.resources):
        if resource.name in seen:
            findings.duplicate(f"{path}.resources[{at}].name", resource.name)
        seen.add(resource.name)
        if resource.weight != 1:
            findings.invalid(f"{path}.resources[{at}].weight", resource.weight, "must be 1")


def _volume_binding(findings: Findings, path: str, args: wire_args.VolumeBindingArgs) -> None:
    seconds = args.bind_timeout_seconds or 0
    if seconds < 0:
        detail = "invalid BindTimeoutSeconds, should not be a negative value"
        findings.invalid(f"{path}.bindTimeoutSeconds", seconds, detail)
    if args.shape is not None:
        detail = "unexpected field `shape`, remove it or turn on the feature gate StorageCapacityScoring"
        findings.invalid(f"{path}.shape", args.shape, detail)


# ---- PodTopologySpread -------------------------------------------------------------------------------------


def _spread(findings: Findings, path: str, args: wire_args.PodTopologySpreadArgs) -> None:
    if args.defaulting_type not in ("System", "List"):
        findings.unsupported(f"{path}.defaultingType", args.defaulting_type, ("System", "List"))
    elif args.defaulting_type == "System" and args.default_constraints:
        detail = "when .defaultConstraints are not empty"
        findings.invalid(f"{path}.defaultingType", args.defaulting_type, detail)
    pairs: set[tuple[str, str]] = set()
    for at, constraint in enumerate(args.default_constraints):
        where = f"{path}.defaultConstraints[{at}]"
        _constraint(findings, where, constraint)
        pair = (constraint.topology_key, constraint.when_unsatisfiable)
        if pair in pairs:
            findings.duplicate(where, f"{{{pair[0]}, {pair[1]}}}")
        pairs.add(pair)


def _constraint(findings: Findings, path: str, constraint: TopologySpreadConstraint) -> None:
    if constraint.max_skew <= 0:
        findings.invalid(f"{path}.maxSkew", constraint.max_skew, "not in valid range (0, inf)")
    if not constraint.topology_key:
        findings.required(f"{path}.topologyKey", "can not be empty")
    else:
        _label_name(findings, f"{path}.topologyKey", constraint.topology_key)
    if not constraint.when_unsatisfiable:
        findings.required(f"{path}.whenUnsatisfiable", "can not be empty")
    elif constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
        supported = ("DoNotSchedule", "ScheduleAnyway")
        findings.unsupported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, supported)
    if constraint.label_selector is not None:
        detail = "constraint must not define a selector, as they deduced for each pod"
        findings.forbidden(f"{path}.labelSelector", detail)


def _label_name(findings: Findings, path: str, name: str) -> None:
    for fault in label_keys.key_faults(name):
        findings.invalid(path, name, fault)


# ---- NodeAffinity ------------------------------------------------------------------------------------------


def _node_affinity(findings: Findings, path: str, args: wire_args.NodeAffinityArgs) -> None:
    """Preferred terms of weight 0 are not looked at, and their paths leave out `preference`, as in the
    reference."""
    if args.added_affinity is None:
        return
    required = args.added_affinity.required_during_scheduling_ignored_during_execution
    where = f"{path}.addedAffinity.requiredDuringSchedulingIgnoredDuringExecution"
    for at, term in enumerate((required and required.node_selector_terms) or ()):
        _term(findings, f"{where}.nodeSelectorTerms[{at}]", term)
    where = f"{path}.addedAffinity.preferredDuringSchedulingIgnoredDuringExecution"
    for at, preferred in enumerate(args.added_affinity.preferred_during_scheduling_ignored_during_execution):
        if preferred.weight != 0:
            _term(findings, f"{where}[{at}]", preferred.preference)


def _term(findings: Findings, path: str, term: NodeSelectorTerm) -> None:
    for at, expression in enumerate(term.match_expressions):
        _expression(findings, f"{path}.matchExpressions[{at}]", expression)
    for at, field in enumerate(term.match_fields):
        where = f"{path}.matchFields[{at}]"
        if field.operator not in (selectors.IN, selectors.NOT_IN):
            findings.unsupported(f"{where}.operator", field.operator, (selectors.IN, selectors.NOT_IN))
        elif len(field.values) != 1:
            findings.invalid(f"{where}.values", field.values, "must have one element")


def _expression(findings: Findings, path: str, expression: NodeSelectorRequirement) -> None:
    operator, values = expression.operator, expression.values
    if operator not in selectors.NODE_OPERATORS:
        findings.unsupported(f"{path}.operator", operator, selectors.NODE_OPERATORS)
        return
    if faults := label_keys.key_faults(expression.key):
        findings.invalid(f"{path}.key", expression.key, "; ".join(faults))
    if operator in (selectors.IN, selectors.NOT_IN) and not values:
        findings.invalid(f"{path}.values", values, "for 'in', 'notin' operators, values set can't be empty")
    if operator in (selectors.EXISTS, selectors.DOES_NOT_EXIST) and values:
        findings.invalid(f"{path}.values", values, "values set must be empty for exists and does not exist")
    if operator in (selectors.GT, selectors.LT):
        _bounds(findings, f"{path}.values", values)
    for at, value in enumerate(values):
        if faults := label_keys.value_faults(value):
            findings.invalid(f"{path}.values[{at}][{expression.key}]", value, "; ".join(faults))


def _bounds(findings: Findings, path: str, values: tuple[str, ...]) -> None:
    if len(values) != 1:
        findings.invalid(path, values, "for 'Gt', 'Lt' operators, exactly one value is required")
    for at, value in enumerate(values):
        if selectors.whole_number(value) is None:
            findings.invalid(f"{path}[{at}]", value, "for 'Gt', 'Lt' operators, the value must be an integer")


# ---- NodeResourcesFit --------------------------------------------------------------------------------------


def fit_errors(args: wire_args.NodeResourcesFitArgs) -> tuple[FieldError, ...]:
    """What is wrong with the arguments of NodeResourcesFit, paths from the arguments: asked when the plugin
    is made.

    Source: ValidateNodeResourcesFitArgs.
    """
    findings = Findings()
    for at, name in enumerate(args.ignored_resources):
        _label_name(findings, f"ignoredResources[{at}]", name)
    for at, group in enumerate(args.ignored_resource_groups):
        if "/" in group:
            findings.invalid(f"ignoredResourceGroups[{at}]", group, "resource group name can't contain '/'")
        _label_name(findings, f"ignoredResourceGroups[{at}]", group)
    if args.scoring_strategy is not None:
        _strategy(findings, args.scoring_strategy)
    return tuple(findings.found)


def _strategy(findings: Findings, strategy: wire_args.ScoringStrategy) -> None:
    if strategy.type not in STRATEGIES:
        findings.unsupported("scoringStrategy.type", strategy.type, STRATEGIES)
    for at, resource in enumerate(strategy.resources):
        if not 0 < resource.weight <= 100:
            detail = f"resource weight of {resource.name} not in valid range (0, 100]"
            findings.invalid(f"scoringStrategy.resources[{at}].weight", resource.weight, detail)
    path, ratio = "scoringStrategy.requestedToCapacityRatio", strategy.requested_to_capacity_ratio
    if strategy.type != "RequestedToCapacityRatio":
        if ratio is not None:
            findings.forbidden(path, "must be nil when type is not RequestedToCapacityRatio")
    elif ratio is None:
        findings.required(path, "must be specified when type is RequestedToCapacityRatio")
    else:
        _shape(findings, f"{path}.shape", ratio.shape)


def _shape(findings: Findings, path: str, shape: tuple[wire_args.ShapePoint, ...]) -> None:
    """Source: validateFunctionShape. Of several points out of order only the first is named."""
    if not shape:
        findings.required(path, "at least one point must be specified")
    for at in range(1, len(shape)):
        if shape[at - 1].utilization >= shape[at].utilization:
            detail = "values must be sorted in increasing order"
            findings.invalid(f"{path}[{at}].utilization", shape[at].utilization, detail)
            break
    for at, point in enumerate(shape):
        if not 0 <= point.utilization <= 100:
            findings.invalid(f"{path}[{at}].utilization", point.utilization, "not in valid range [0, 100]")
        if not 0 <= point.score <= 10:
            findings.invalid(f"{path}[{at}].score", point.score, "not in valid range [0, 10]")


_RULES: Final = cast(
    "Mapping[type[Any], Callable[[Findings, str, Any], None]]",
    {
        wire_args.DefaultPreemptionArgs: _default_preemption,
        wire_args.DynamicResourcesArgs: _dynamic_resources,
        wire_args.InterPodAffinityArgs: _inter_pod_affinity,
        wire_args.NodeAffinityArgs: _node_affinity,
        wire_args.NodeResourcesBalancedAllocationArgs: _balanced_allocation,
        wire_args.PodTopologySpreadArgs: _spread,
        wire_args.VolumeBindingArgs: _volume_binding,
    },
)
