"""Pods of one template share their spec once it was read, and are read as if they did not."""

import json
from typing import Any

import msgspec
import pytest

from podyard.memory.sizes import bytes_of
from podyard.objects import amounts, decoding
from podyard.objects.core import Pod
from podyard.objects.errors import ObjectError
from podyard.objects.pod import PodSpec
from tests.support import objects


def stored(payload: bytes, name: str = "a") -> Any:
    return decoding.decode_stored("pods", "default", name, payload)


def written(document: dict[str, Any]) -> bytes:
    return msgspec.json.encode(document)


@pytest.fixture(autouse=True)
def nothing_known() -> None:
    decoding._specs.clear()


def test_pods_of_one_template_have_one_spec() -> None:
    first, second = stored(written(objects.pod("a"))), stored(written(objects.pod("b")), "b")
    assert first.spec is second.spec
    assert (first.metadata.name, second.metadata.name) == ("a", "b")


@pytest.mark.parametrize(
    "document",
    [
        objects.pod("a", status={"phase": "Running", "podIP": "10.0.0.1"}),
        objects.pod("a", nodeSelector={"disk": "ssd"}, overhead={"cpu": 1}),
        objects.pod("a", containers=None),
        {**objects.pod("a"), "spec": None, "status": None},
        {"metadata": {"name": "a", "namespace": "default", "uid": "u"}},
    ],
)
def test_a_pod_is_read_as_without_sharing(document: dict[str, Any]) -> None:
    payload = written(document)
    plain = decoding.decode("pods", payload)
    assert (stored(payload), stored(payload)) == (plain, plain)


def fault(payload: bytes) -> tuple[str, str]:
    with pytest.raises(ObjectError) as caught:
        stored(payload)
    return caught.value.field, caught.value.detail


GOOD = json.dumps(objects.pod("a"))


@pytest.mark.parametrize(
    ("payload", "field"),
    [
        (GOOD.replace('"a"', '"b"', 1), "metadata.name"),
        (GOOD.replace('"metadata": {', '"metadata": {"labels": 1, '), "metadata.labels"),
        (GOOD.replace('"spec": {', '"spec": {"priority": "high", '), "spec.priority"),
        (GOOD.replace('"spec": {', '"spec": {"overhead": {"cpu": "ten"}, '), "spec.overhead[cpu]"),
        (GOOD[:-1] + ', "status": {"phase": 1}}', "status.phase"),
        (GOOD[:-1] + ', "status": {"allocatedResources": {"cpu": "ten"}}}', "status.allocatedResources[cpu]"),
        (GOOD[:-1], ""),
    ],
)
def test_a_fault_is_told_alike_whether_the_spec_is_known_or_not(payload: str, field: str) -> None:
    unknown = fault(payload.encode())
    assert unknown[0] == field
    stored(GOOD.encode())
    assert fault(payload.encode()) == fault(payload.encode()) == unknown


def test_a_spec_with_an_amount_that_is_no_quantity_is_not_shared() -> None:
    payload = written(objects.pod("a", cpu="ten"))
    fault(payload)
    assert len(decoding._specs) == 0


def test_specs_are_bounded_in_bytes() -> None:
    for number in range(9_000):
        stored(written(objects.pod("a", nodeName=f"n{number}")))
    assert decoding._specs.bytes <= decoding.SPECS_BYTES
    assert 500 < len(decoding._specs) < 9_000


@pytest.mark.parametrize(
    "spec",
    [
        {"nodeName": "n", "restartPolicy": "Always"},
        {"containers": [{"name": "c"}]},
        {"containers": [{"name": "c"}] * 3, "tolerations": [{}] * 3, "volumes": [{"name": "v"}] * 2},
        objects.pod("a")["spec"],
        {"nodeSelector": {f"k{number}": "v" for number in range(100)}},
    ],
)
def test_a_spec_takes_no_more_than_is_said(spec: dict[str, Any]) -> None:
    payload = written(spec)
    taken = bytes_of(payload, msgspec.json.decode(payload, type=PodSpec))
    assert taken <= decoding.DECODED * len(payload)


def test_amounts_of_a_pod_that_was_not_stored_are_checked_whole() -> None:
    for document in (objects.pod("a", cpu="ten"), objects.pod("a", status={"allocatedResources": {"cpu": "ten"}})):
        with pytest.raises(ObjectError):
            amounts.check(msgspec.convert(document, Pod))
