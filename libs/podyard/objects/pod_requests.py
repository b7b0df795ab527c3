"""What a pod takes from its node.

Sources: component-helpers/resource/helpers.go (PodRequests), kube-scheduler framework/types.go
(CalculateResource, getNonMissingContainerRequests), pkg/scheduler/util/utils.go (GetHostPorts). Sums are made
in nano-units and rounded up once.
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

import msgspec

from podyard.objects import quantity
from podyard.objects.containers import Container, ContainerPort, ResourceRequirements
from podyard.objects.pod import Pod, PodSpec, PodStatus
from podyard.proto.placement import HostPort, Usage

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
HUGEPAGES_PREFIX: Final = "hugepages-"

ASSUMED_CPU_MILLI: Final = 100
"""What scoring assumes for a container that requests no cpu. Source: schedutil.DefaultMilliCPURequest."""
ASSUMED_MEMORY_BYTES: Final = 200 * 1024 * 1024
"""What scoring assumes for a container that requests no memory. Source: schedutil.DefaultMemoryRequest."""

KEPT_USAGES: Final = 1024
"""Requests of single containers of which it is remembered what a pod takes."""

Amounts = dict[str, int]
"""Nano-units by resource."""

_ASSUMED: Final = {CPU: ASSUMED_CPU_MILLI * quantity.NANO_PER_MILLI, MEMORY: ASSUMED_MEMORY_BYTES * quantity.NANO}
_NOTHING_ASSUMED: Final[Mapping[str, int]] = {}


def pod_requests(pod: Pod) -> dict[str, int]:
    """What the pod requests, by resource: cpu in milli-CPU, all else in whole bytes or pieces, rounded up.

    Containers are summed, sidecars included; init containers count if their peak is higher; a resize in place
    counts with the larger of wanted, given and used; requests of the pod as a whole replace the sum; overhead
    comes on top.

    :raises QuantityError: if a request is no quantity
    """
    simple = _only_container(pod)
    if simple is not None:
        requests = simple.resources.requests
        return {name: quantity.milli(text) if name == CPU else quantity.value(text) for name, text in requests.items()}
    return _rounded(exact_requests(pod))


def exact_requests(pod: Pod, *, overhead: bool = True) -> Amounts:
    """What the pod requests in nano-units, `overhead` included or not.

    :raises QuantityError: if a request is no quantity
    """
    return _requests(pod, _NOTHING_ASSUMED, overhead)


def exact_limits(pod: Pod) -> Amounts:
    """What the pod may take at most, in nano-units: sums as of its requests, where there are limits; without
    overhead, and without what its status says.

    :raises QuantityError: if a limit is no quantity
    """
    spec = pod.spec
    swapped = PodSpec(
        containers=tuple(map(_limits_as_requests, spec.containers)),
        init_containers=tuple(map(_limits_as_requests, spec.init_containers)),
        resources=None if spec.resources is None else ResourceRequirements(requests=spec.resources.limits),
    )
    return exact_requests(Pod(spec=swapped), overhead=False)


def _limits_as_requests(container: Container) -> Container:
    return msgspec.structs.replace(container, resources=ResourceRequirements(requests=container.resources.limits))


def spelled(resource: str, nano: int) -> str:
    """An amount in nano-units as Kubernetes writes it: cpu by thousandths, all else by 1024."""
    form = quantity.Format.DECIMAL_SI if resource == CPU else quantity.Format.BINARY_SI
    return str(quantity.Quantity(nano, form))


def nonzero_requests(pod: Pod) -> tuple[int, int]:
    """(milli-CPU, bytes of memory) that scoring counts: containers that request none are assumed to need 100m
    and 200 MiB.

    With requests of the pod as a whole, only a resource that nobody requests is assumed.
    """
    simple = _only_container(pod)
    if simple is not None:
        requests = simple.resources.requests
        cpu, memory = requests.get(CPU), requests.get(MEMORY)
        return (
            ASSUMED_CPU_MILLI if cpu is None else quantity.milli(cpu),
            ASSUMED_MEMORY_BYTES if memory is None else quantity.value(memory),
        )
    assumed = _ASSUMED
    if _requests_as_a_whole(pod.spec):
        requested = exact_requests(pod)
        assumed = {name: amount for name, amount in _ASSUMED.items() if name not in requested}
    counted = _rounded(_requests(pod, assumed, True))
    return counted.get(CPU, 0), counted.get(MEMORY, 0)


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """The ports that containers and sidecars take on the node, in order of declaration."""
    spec = pod.spec
    found = [_host_port(port) for container in spec.containers for port in container.ports if port.host_port > 0]
    if spec.init_containers:
        sidecars = (container for container in spec.init_containers if is_sidecar(container))
        found += [_host_port(port) for container in sidecars for port in container.ports if port.host_port > 0]
    return tuple(found)


def shrank(before: Pod, after: Pod) -> bool:
    """Whether the pod requests less of anything, in thousandths rounded up, or requests something no more.

    Source: kube-scheduler v1.36.2, framework/events.go, extractPodScaleDown (MilliValue, whatever the
    resource).
    """
    now = exact_requests(after)
    return any(
        name not in now or _thousandths(amount) > _thousandths(now[name])
        for name, amount in exact_requests(before).items()
    )


def _thousandths(nano: int) -> int:
    return -(-nano // quantity.NANO_PER_MILLI)


def usage(pod: Pod) -> Usage:
    """All that the pod takes from its node, as bindings carry it. Resources that no node counts are left out.

    :raises QuantityError: if a request is no quantity
    """
    simple = _only_container(pod)
    if simple is None or not _COUNTED.issuperset(simple.resources.requests):
        return _usage(pod)
    if [port for port in simple.ports if port.host_port > 0]:
        return _usage(pod)
    return usage_of_one(tuple(simple.resources.requests.items()))


def _usage(pod: Pod) -> Usage:
    requests = pod_requests(pod)
    if not _COUNTED.issuperset(requests):
        requests = {name: amount for name, amount in requests.items() if is_counted(name)}
    cpu_milli, memory_bytes = nonzero_requests(pod)
    return Usage(
        requests=requests, nonzero_cpu_milli=cpu_milli, nonzero_memory_bytes=memory_bytes, ports=host_ports(pod)
    )


@lru_cache(maxsize=KEPT_USAGES)
def usage_of_one(requests: tuple[tuple[str, str], ...]) -> Usage:
    """What a pod takes whose one container requests this, of cpu, memory and ephemeral storage: pods of one
    template share it.

    :raises QuantityError: if a request is no quantity
    """
    container = Container(name="", resources=ResourceRequirements(requests=dict(requests)))
    return _usage(Pod(spec=PodSpec(containers=(container,))))


_COUNTED: Final = frozenset((CPU, MEMORY, EPHEMERAL_STORAGE))


def is_counted(resource: str) -> bool:
    """Whether nodes are counted by that resource: the three native ones, huge pages, anything with a domain.

    Source: framework.Resource.Add, schedutil.IsScalarResourceName.
    """
    return resource in _COUNTED or "/" in resource or resource.startswith((HUGEPAGES_PREFIX, "attachable-volumes-"))


def is_sidecar(container: Container) -> bool:
    """Whether an init container goes on running beside the others."""
    return container.restart_policy == "Always"


def _host_port(port: ContainerPort) -> HostPort:
    protocol = port.protocol if port.protocol in ("UDP", "SCTP") else "TCP"
    return HostPort(port=port.host_port, protocol=protocol, ip=port.host_ip or "0.0.0.0")


def _only_container(pod: Pod) -> Container | None:
    """The container of a pod whose requests are exactly those of its one container, else `None`."""
    spec, status = pod.spec, pod.status
    if len(spec.containers) != 1 or spec.init_containers or spec.overhead or spec.resources is not None:
        return None
    if status.container_statuses:
        return None
    return spec.containers[0]


def _requests(pod: Pod, assumed: Mapping[str, int], overhead: bool) -> Amounts:
    spec = pod.spec
    amounts = _of_containers(pod, assumed)
    if _requests_as_a_whole(spec):
        for name, amount in _whole_pod(pod).items():
            if is_pod_level(name):
                amounts[name] = amount
    if overhead and spec.overhead:
        _add(amounts, _parsed(spec.overhead))
    return amounts


def is_pod_level(resource: str) -> bool:
    """Whether a pod as a whole may request it. Source: IsSupportedPodLevelResource."""
    return resource in (CPU, MEMORY) or resource.startswith(HUGEPAGES_PREFIX)


def _requests_as_a_whole(spec: PodSpec) -> bool:
    """Source: IsPodLevelRequestsSet."""
    return spec.resources is not None and any(map(is_pod_level, spec.resources.requests))


def _whole_pod(pod: Pod) -> Amounts:
    """Requests of the pod as a whole, of what its spec names: wanted alone, or, once its status says what it
    has, the largest of wanted, used and given; without what is wanted if that can never be had.

    Source: PodRequests (InPlacePodLevelResourcesVerticalScaling), determineEffectiveRequests.
    """
    spec, status = pod.spec, pod.status
    wanted = _parsed(spec.resources.requests) if spec.resources is not None else {}
    if status.resources is None:
        return wanted
    reported = (_parsed(status.resources.requests), _parsed(status.allocated_resources))
    effective = _largest(*reported) if _resize_infeasible(status) else _largest(wanted, *reported)
    return {name: effective.get(name, 0) for name in wanted}


def _of_containers(pod: Pod, assumed: Mapping[str, int]) -> Amounts:
    """Sum of containers and sidecars, or the peak while starting if higher. Source:
    AggregateContainerRequests."""
    spec = pod.spec
    resizes = _Resizes(pod.status)
    total: Amounts = {}
    for container in spec.containers:
        _add(total, resizes.requests(container, assumed))
    sidecars: Amounts = {}
    peak: Amounts = {}
    for container in spec.init_containers:
        if is_sidecar(container):
            amounts = resizes.requests(container, assumed)
            _add(total, amounts)
            _add(sidecars, amounts)
            peak = _largest(peak, sidecars)
        else:
            amounts = _parsed(container.resources.requests, assumed)
            _add(amounts, sidecars)
            peak = _largest(peak, amounts)
    return _largest(total, peak) if peak else total


class _Resizes:
    """How far resizes in place are. Init containers that end are never resized: nobody asks for theirs."""

    __slots__ = ("_infeasible", "_statuses")

    def __init__(self, status: PodStatus) -> None:
        self._infeasible = _resize_infeasible(status)
        self._statuses = {item.name: item for item in (*status.container_statuses, *status.init_container_statuses)}

    def requests(self, container: Container, assumed: Mapping[str, int]) -> Amounts:
        """The largest of wanted, used and given; without what is wanted if that can never be had.

        Source: determineContainerReqs.
        """
        wanted = container.resources.requests
        status = self._statuses.get(container.name)
        if status is None or status.resources is None:
            return _parsed(wanted, assumed)
        reported = (_parsed(status.resources.requests), _parsed(status.allocated_resources))
        largest = _largest(*reported) if self._infeasible else _largest(_parsed(wanted), *reported)
        return _with(largest, assumed)


def _resize_infeasible(status: PodStatus) -> bool:
    """Whether the node can never give what the pod now wants. Source: IsPodResizeInfeasible."""
    for condition in status.conditions:
        if condition.type == "PodResizePending":
            return condition.reason == "Infeasible"
    return False


def _parsed(texts: Mapping[str, str], assumed: Mapping[str, int] = _NOTHING_ASSUMED) -> Amounts:
    return _with({name: quantity.nano(text) for name, text in texts.items()}, assumed)


def _with(amounts: Amounts, assumed: Mapping[str, int]) -> Amounts:
    for name, amount in assumed.items():
        amounts.setdefault(name, amount)
    return amounts


def _add(total: Amounts, amounts: Mapping[str, int]) -> None:
    for name, amount in amounts.items():
        total[name] = total.get(name, 0) + amount


def _largest(*lists: Mapping[str, int]) -> Amounts:
    largest: Amounts = {}
    for amounts in lists:
        for name, amount in amounts.items():
            if name not in largest or amount > largest[name]:
                largest[name] = amount
    return largest


def _rounded(amounts: Amounts) -> dict[str, int]:
    return {
        name: quantity.Quantity(nano).milli() if name == CPU else quantity.Quantity(nano).value()
        for name, nano in amounts.items()
    }
