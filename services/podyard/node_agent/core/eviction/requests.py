"""What a pod requests of one resource, as the eviction manager counts it (not quite as the scheduler does).

Source: pkg/api/v1/resource/helpers.go, GetResourceRequestQuantity (v1.36.2).
"""

from typing import Final

from podyard.node_agent.core.eviction import amounts
from podyard.objects.containers import Container
from podyard.objects.pod import Pod

_POD_LEVEL: Final = ("cpu", "memory")


def request(pod: Pod, resource: str) -> amounts.Amount:
    """The pod's request of `resource`, in bytes or pieces; 0 if it names none.

    With pod-level resources the containers' requests are ignored altogether, whatever resource is asked for;
    overhead is added only to a request that is not 0.
    """
    total = _pod_level(pod, resource) if _has_pod_level(pod) else _of_containers(pod, resource)
    overhead = pod.spec.overhead.get(resource)
    return total + amounts.exact(overhead) if total and overhead is not None else total


def _has_pod_level(pod: Pod) -> bool:
    resources = pod.spec.resources
    if resources is None:
        return False
    names = {*resources.requests, *resources.limits}
    return any(name in _POD_LEVEL or name.startswith("hugepages-") for name in names)


def _pod_level(pod: Pod, resource: str) -> amounts.Amount:
    assert pod.spec.resources is not None
    if resource not in _POD_LEVEL and not resource.startswith("hugepages-"):
        return 0
    return _named(pod.spec.resources.requests, resource)


def _of_containers(pod: Pod, resource: str) -> amounts.Amount:
    """Containers and sidecars together, or the peak while init containers run, if that is more."""
    running: amounts.Amount = sum((of_container(container, resource) for container in pod.spec.containers), start=0)
    sidecars: amounts.Amount = 0
    peak: amounts.Amount = 0
    for container in pod.spec.init_containers:
        wanted = of_container(container, resource)
        if container.restart_policy == "Always":
            sidecars += wanted
            wanted = 0
        peak = max(peak, sidecars + wanted)
    return max(running + sidecars, peak)


def of_container(container: Container, resource: str) -> amounts.Amount:
    """The container's own request, in bytes or pieces; 0 if it names none."""
    return _named(container.resources.requests, resource)


def _named(quantities: dict[str, str], resource: str) -> amounts.Amount:
    text = quantities.get(resource)
    return 0 if text is None else amounts.exact(text)
