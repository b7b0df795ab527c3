"""Amounts of a pod that are counted: each must be a quantity, or nobody could add up what it takes."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from podyard.objects import quantity
from podyard.objects.containers import ResourceRequirements
from podyard.objects.core import Pod
from podyard.objects.errors import ObjectError, QuantityError

Amounts: TypeAlias = tuple[str, Mapping[str, str]]
"""Path of the field, and its quantities by resource."""


def check(pod: Pod) -> None:
    """
    :raises ObjectError: for the first amount that is no quantity, with its path, in the words of the API
        server
    """
    for path, amounts in _of_pod(pod):
        for resource, text in amounts.items():
            try:
                quantity.nano(text)
            except QuantityError as error:
                raise ObjectError(f"{path}[{resource}]", f'Invalid value: "{text}": {error.detail}') from error


def _of_pod(pod: Pod) -> Iterator[Amounts]:
    spec, status = pod.spec, pod.status
    for at, container in enumerate(spec.containers):
        yield f"spec.containers[{at}].resources.requests", container.resources.requests
    for at, container in enumerate(spec.init_containers):
        yield f"spec.initContainers[{at}].resources.requests", container.resources.requests
    yield "spec.overhead", spec.overhead
    yield from _requests("spec", spec.resources)
    yield from _requests("status", status.resources)
    yield "status.allocatedResources", status.allocated_resources
    for at, reported in enumerate((*status.container_statuses, *status.init_container_statuses)):
        yield from _requests(f"status.containerStatuses[{at}]", reported.resources)
        yield f"status.containerStatuses[{at}].allocatedResources", reported.allocated_resources


def _requests(of: str, resources: ResourceRequirements | None) -> Iterator[Amounts]:
    if resources is not None:
        yield f"{of}.resources.requests", resources.requests
