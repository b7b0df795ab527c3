"""Amounts of a pod that are counted: each must be a quantity, or nobody could add up what it takes."""

from collections.abc import Iterator, Mapping
from typing import TypeAlias

from podyard.objects import quantity
from podyard.objects.core import Pod
from podyard.objects.errors import ObjectError, QuantityError

Amounts: TypeAlias = tuple[str, int, Mapping[str, str]]
"""Path of the field with `{}` for its place in a list, that place, and its quantities by resource. Pods are
many, their faults few: the path is spelled for a fault.
"""


def check(pod: Pod) -> None:
    """
    :raises ObjectError: for the first amount that is no quantity, with its path, in the words of the API
        server
    """
    if _are_plain(pod):
        return
    for path, at, amounts in _of_pod(pod):
        for resource, text in amounts.items():
            try:
                quantity.nano(text)
            except QuantityError as error:
                where = f"{path.format(at)}[{resource}]"
                raise ObjectError(where, f'Invalid value: "{text}": {error.detail}') from error


def _are_plain(pod: Pod) -> bool:
    """Whether only containers have amounts, and all of these are quantities: so it is of most pods."""
    spec, status = pod.spec, pod.status
    if (
        spec.init_containers
        or spec.overhead
        or spec.resources is not None
        or status.resources is not None
        or status.allocated_resources
        or status.container_statuses
        or status.init_container_statuses
    ):
        return False
    try:
        for container in spec.containers:
            for text in container.resources.requests.values():
                quantity.nano(text)
    except QuantityError:
        return False
    return True


def _of_pod(pod: Pod) -> Iterator[Amounts]:
    spec, status = pod.spec, pod.status
    for at, container in enumerate(spec.containers):
        yield "spec.containers[{}].resources.requests", at, container.resources.requests
    for at, container in enumerate(spec.init_containers):
        yield "spec.initContainers[{}].resources.requests", at, container.resources.requests
    if spec.overhead:
        yield "spec.overhead", 0, spec.overhead
    if spec.resources is not None:
        yield "spec.resources.requests", 0, spec.resources.requests
    if status.resources is not None:
        yield "status.resources.requests", 0, status.resources.requests
    if status.allocated_resources:
        yield "status.allocatedResources", 0, status.allocated_resources
    reports = (*status.container_statuses, *status.init_container_statuses)
    for at, reported in enumerate(reports):
        if reported.resources is not None:
            yield "status.containerStatuses[{}].resources.requests", at, reported.resources.requests
        yield "status.containerStatuses[{}].allocatedResources", at, reported.allocated_resources
