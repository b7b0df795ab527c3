"""A stored pod whose amounts are no quantities cannot be read: whoever counted it would fail again and
again."""

from typing import Any

import msgspec
import pytest

from podyard.objects import decoding
from podyard.objects.errors import ObjectError
from tests.support import objects

BAD = {"cpu": "ten"}
REPORTED = {"name": "main", "resources": {"requests": BAD}}


def stored(resource: str, document: dict[str, Any]) -> Any:
    metadata = document["metadata"]
    return decoding.decode_stored(
        resource, metadata.get("namespace", ""), metadata["name"], msgspec.json.encode(document)
    )


@pytest.mark.parametrize(
    ("resource", "document", "field"),
    [
        ("pods", objects.pod(cpu="ten"), "spec.containers[0].resources.requests[cpu]"),
        (
            "pods",
            objects.pod(initContainers=[{"name": "i", "resources": {"requests": BAD}}]),
            "spec.initContainers[0].resources.requests[cpu]",
        ),
        ("pods", objects.pod(overhead=BAD), "spec.overhead[cpu]"),
        ("pods", objects.pod(resources={"requests": BAD}), "spec.resources.requests[cpu]"),
        ("pods", objects.pod(status={"resources": {"requests": BAD}}), "status.resources.requests[cpu]"),
        ("pods", objects.pod(status={"allocatedResources": BAD}), "status.allocatedResources[cpu]"),
        (
            "pods",
            objects.pod(status={"containerStatuses": [REPORTED]}),
            "status.containerStatuses[0].resources.requests[cpu]",
        ),
        (
            "pods",
            objects.pod(status={"containerStatuses": [{"name": "main", "allocatedResources": BAD}]}),
            "status.containerStatuses[0].allocatedResources[cpu]",
        ),
    ],
)
def test_an_amount_that_is_no_quantity_is_told_with_its_path(
    resource: str, document: dict[str, Any], field: str
) -> None:
    with pytest.raises(ObjectError, match='Invalid value: "ten": quantities must match') as raised:
        stored(resource, document)
    assert raised.value.field == field


def test_amounts_as_large_as_one_likes_are_read() -> None:
    assert stored("nodes", objects.node(memory="9" * 40)).status.allocatable["memory"] == "9" * 40
