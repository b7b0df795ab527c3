"""Which pods are allowed. Source: pkg/apis/core/validation/validation.go, ValidatePodSpec and what it
calls."""

from typing import Final

from podyard.objects.affinity_validation import check_affinity, check_spreading, check_tolerations
from podyard.objects.containers import Container
from podyard.objects.faults import Faults
from podyard.objects.names import check_labels, label_fault, qualified_fault, subdomain_fault
from podyard.objects.pod import Pod, PodSpec
from podyard.objects.pod_requests import is_sidecar
from podyard.objects.resource_validation import check_amounts, check_requirements, check_whole_pod

_PROTOCOLS: Final = ("TCP", "UDP", "SCTP")
_RESTART: Final = ("Always", "OnFailure", "Never")
_PREEMPTION: Final = ("PreemptLowerPriority", "Never")
_PORTS: Final = range(1, 65536)
_PULL_POLICIES: Final = ("Always", "IfNotPresent", "Never")
_PORT_RULE: Final = "must be between 1 and 65535, inclusive"
_INT32_MAX: Final = 2**31 - 1


def check_pod(faults: Faults, pod: Pod) -> None:
    """Check a pod's spec, and what only a pod (not a template) must hold."""
    with faults.below("spec"):
        check_pod_spec(faults, pod.spec)
        if pod.spec.node_name and pod.spec.scheduling_gates:
            faults.forbidden("nodeName", "cannot be set until all schedulingGates have been cleared")


def check_pod_spec(faults: Faults, spec: PodSpec) -> None:
    """Check the spec of a pod or of a template; paths are below it."""
    _check_containers(faults, spec)
    faults.one_of("restartPolicy", spec.restart_policy, _RESTART)
    faults.not_negative("terminationGracePeriodSeconds", spec.termination_grace_period_seconds)
    if spec.active_deadline_seconds is not None and not 1 <= spec.active_deadline_seconds <= _INT32_MAX:
        faults.invalid(
            "activeDeadlineSeconds", spec.active_deadline_seconds, f"must be between 1 and {_INT32_MAX}, inclusive"
        )
    for field, name in (("nodeName", spec.node_name), ("priorityClassName", spec.priority_class_name)):
        if name and (fault := subdomain_fault(name)):
            faults.invalid(field, name, fault)
    faults.one_of("preemptionPolicy", spec.preemption_policy or "", _PREEMPTION)
    if spec.scheduler_name and (fault := subdomain_fault(spec.scheduler_name)):
        faults.invalid("schedulerName", spec.scheduler_name, fault)
    if spec.node_selector:
        check_labels(faults, spec.node_selector, "nodeSelector")
    if spec.affinity is not None:
        with faults.below("affinity"):
            check_affinity(faults, spec.affinity)
    if spec.tolerations:
        check_tolerations(faults, spec.tolerations)
    if spec.topology_spread_constraints:
        check_spreading(faults, spec.topology_spread_constraints)
    if spec.overhead:
        check_amounts(faults, "overhead", spec.overhead)
    check_whole_pod(faults, spec)
    _check_names(faults, spec)


def _check_names(faults: Faults, spec: PodSpec) -> None:
    """Gates, volumes and claims: well named, each once."""
    seen: set[str] = set()
    for at, gate in enumerate(spec.scheduling_gates):
        if fault := qualified_fault(gate.name):
            faults.invalid(f"schedulingGates[{at}]", gate.name, fault)
        if gate.name in seen:
            faults.duplicate(f"schedulingGates[{at}]", gate.name)
        seen.add(gate.name)
    for field, items in (("volumes", spec.volumes), ("resourceClaims", spec.resource_claims)):
        seen = set()
        for at, item in enumerate(items):
            _check_name(faults, f"{field}[{at}].name", item.name, seen)


def _check_name(faults: Faults, field: str, name: str, seen: set[str]) -> None:
    if not name:
        faults.required(field)
    elif fault := label_fault(name):
        faults.invalid(field, name, fault)
    elif name in seen:
        faults.duplicate(field, name)
    seen.add(name)


def _check_containers(faults: Faults, spec: PodSpec) -> None:
    if not spec.containers:
        faults.required("containers")
    names: set[str] = set()
    claims = frozenset(claim.name for claim in spec.resource_claims)
    taken: set[tuple[str, str, int]] = set()
    for field, containers in (("containers", spec.containers), ("initContainers", spec.init_containers)):
        for at, container in enumerate(containers):
            with faults.below(f"{field}[{at}]"):
                _check_container(faults, container, spec, names, claims)
                if container.ports and (field == "containers" or is_sidecar(container)):
                    _check_host_ports(faults, container, taken)
                if field == "initContainers" and container.restart_policy not in ("", "Always", "OnFailure", "Never"):
                    faults.unsupported("restartPolicy", container.restart_policy, _RESTART)


def _check_container(
    faults: Faults, container: Container, spec: PodSpec, names: set[str], claims: frozenset[str]
) -> None:
    """
    :param names: of the containers before it
    :param claims: names of the pod's resource claims
    """
    _check_name(faults, "name", container.name, names)
    if not container.image.strip():
        faults.required("image")
    faults.one_of("imagePullPolicy", container.image_pull_policy, _PULL_POLICIES)
    resources = container.resources
    if resources.requests or resources.limits:
        with faults.below("resources"):
            check_requirements(faults, resources)
    for at, claim in enumerate(resources.claims):
        if claim.name not in claims:
            faults.not_found(f"resources.claims[{at}].name", claim.name)
    for at, port in enumerate(container.ports):
        with faults.below(f"ports[{at}]"):
            if not port.container_port:
                faults.required("containerPort")
            elif port.container_port not in _PORTS:
                faults.invalid("containerPort", port.container_port, _PORT_RULE)
            if port.host_port and port.host_port not in _PORTS:
                faults.invalid("hostPort", port.host_port, _PORT_RULE)
            if spec.host_network and port.host_port and port.host_port != port.container_port:
                faults.invalid("hostPort", port.host_port, "must match `containerPort` when `hostNetwork` is true")
            faults.one_of("protocol", port.protocol, _PROTOCOLS)


def _check_host_ports(faults: Faults, container: Container, taken: set[tuple[str, str, int]]) -> None:
    """Source: checkHostPortConflicts: protocol, address and port together must be unique in the pod."""
    for at, port in enumerate(container.ports):
        if port.host_port:
            entry = (port.protocol, port.host_ip, port.host_port)
            if entry in taken:
                faults.duplicate(f"ports[{at}].hostPort", f"{port.protocol}/{port.host_ip}/{port.host_port}")
            taken.add(entry)
