"""Amounts of a pod that are counted: each must be a quantity, or nobody could add up what it takes."""

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from podyard.objects import quantity
from podyard.objects.core import Pod
from podyard.objects.errors import ObjectError, QuantityError
from podyard.objects.pod import PodSpec, PodStatus

Amounts: TypeAlias = tuple[str, int, Mapping[str, str]]
"""Path of the field with `{}` for its place in a list, that place, and its quantities by resource. Pods are
many, their faults few: the path is spelled for a fault.
"""


def check(pod: Pod) -> None:
    """
    :raises ObjectError: for the first amount that is no quantity, with its path, in the words of the API
        server
    """
    check_spec(pod.spec)
    check_status(pod.status)


def check_spec(spec: PodSpec) -> None:
    """
    :raises ObjectError: as `check` does, for amounts of a pod's spec
    """
    _check(_of_spec(spec))


def check_status(status: PodStatus) -> None:
    """
    :raises ObjectError: as `check` does, for amounts of a pod's status
    """
    if status.resources or status.allocated_resources or status.container_statuses or status.init_container_statuses:
        _check(_of_status(status))


def _check(listed: Iterable[Amounts]) -> None:
    for path, at, amounts in listed:
        for resource, text in amounts.items():
            try:
                quantity.nano(text)
            except QuantityError as error:
                where = f"{path.format(at)}[{resource}]"
                raise ObjectError(where, f'Invalid value: "{text}": {error.detail}') from error


def _of_spec(spec: PodSpec) -> Iterator[Amounts]:
    for at, container in enumerate(spec.containers):
        yield "spec.containers[{}].resources.requests", at, container.resources.requests
    for at, container in enumerate(spec.init_containers):
        yield "spec.initContainers[{}].resources.requests", at, container.resources.requests
    if spec.overhead:
        yield "spec.overhead", 0, spec.overhead
    if spec.resources is not None:
        yield "spec.resources.requests", 0, spec.resources.requests


def _of_status(status: PodStatus) -> Iterator[Amounts]:
    if status.resources is not None:
        yield "status.resources.requests", 0, status.resources.requests
    if status.allocated_resources:
        yield "status.allocatedResources", 0, status.allocated_resources
    reports = (*status.container_statuses, *status.init_container_statuses)
    for at, reported in enumerate(reports):
        if reported.resources is not None:
            yield "status.containerStatuses[{}].resources.requests", at, reported.resources.requests
        yield "status.containerStatuses[{}].allocatedResources", at, reported.allocated_resources
