"""Pods of one template: admitted once, and each as if it had been admitted by itself."""

import itertools
import time
from random import Random
from typing import Any

import pytest

from podyard.api import naming
from podyard.api.applying import Admitter
from podyard.api.lookup import RequestLookup
from podyard.api.templates import PodTemplates
from podyard.cluster.documents import DocumentView
from podyard.cluster.keys import ObjectKey
from podyard.objects.errors import AdmissionError, UnknownKindError
from podyard.proto.message import ObjectRef
from tests.support import objects

NOW = time.time()


class Counting:
    """Admission that counts."""

    def __init__(self) -> None:
        self.count = 0
        numbers = itertools.count()
        self.admitter = Admitter(clock=lambda: NOW, random=Random(1), new_uid=lambda: f"uid-{next(numbers)}")
        self.templates = PodTemplates(self.admitter.new_uid)
        self.lookup = RequestLookup(DocumentView())

    def admit(self, document: dict[str, Any]) -> dict[str, Any]:
        def full() -> dict[str, Any]:
            self.count += 1
            return self.admitter.admit(document, self.lookup, None)

        return self.templates.admit(document, full)


def pod(**metadata: Any) -> dict[str, Any]:
    """A pod as a controller writes it: just these metadata."""
    return {**objects.pod(container={"resources": {"limits": {"cpu": "0.5"}}}), "metadata": metadata}


@pytest.fixture
def counting() -> Counting:
    return Counting()


def without_uid(document: dict[str, Any]) -> dict[str, Any]:
    return document | {"metadata": {key: value for key, value in document["metadata"].items() if key != "uid"}}


def test_sisters_are_admitted_once_and_equal_full_admission(counting: Counting) -> None:
    found = [counting.admit(pod(name=f"p{number}", labels={"a": "b"})) for number in range(5)]
    assert counting.count == 1
    assert len({document["metadata"]["uid"] for document in found}) == 5
    for number, document in enumerate(found):
        alone = counting.admitter.admit(pod(name=f"p{number}", labels={"a": "b"}), counting.lookup, None)
        assert without_uid(document) == without_uid(alone)


@pytest.mark.parametrize(
    "other",
    [pod(name="b", labels={"a": "c"}), pod(name="b", namespace="kube-system"), pod(generateName="b-")],
    ids=["label", "namespace", "generated name"],
)
def test_any_other_difference_is_admitted_by_itself(counting: Counting, other: dict[str, Any]) -> None:
    counting.admit(pod(name="a"))
    counting.admit(other)
    assert counting.count == 2


def test_generated_names_differ(counting: Counting) -> None:
    names = {counting.admit(pod(generateName="b-"))["metadata"]["name"] for _ in range(5)}
    assert (len(names), counting.count) == (5, 5)


def test_a_bad_name_is_refused_although_its_sister_was_good(counting: Counting) -> None:
    counting.admit(pod(name="a"))
    with pytest.raises(AdmissionError):
        counting.admit(pod(name="Not A Name"))


def test_what_was_admitted_is_forgotten_when_the_cluster_changes(counting: Counting) -> None:
    counting.admit(pod(name="a"))
    counting.templates.forget()
    counting.admit(pod(name="b"))
    assert counting.count == 2


@pytest.mark.parametrize(
    ("reference", "expected"),
    [
        (ObjectRef(resource="po", name="a"), ObjectKey("pods", "default", "a")),
        (ObjectRef(resource="node", namespace="x", name="a"), ObjectKey("nodes", "", "a")),
        (ObjectRef(resource="widgets.v1.example.com", name="a"), ObjectKey("widgets.v1.example.com", "", "a")),
    ],
    ids=["short name", "cluster-scoped", "custom"],
)
def test_references_are_read_as_on_the_command_line(reference: ObjectRef, expected: ObjectKey) -> None:
    assert naming.key_of(reference) == expected


def test_an_unknown_resource_is_named() -> None:
    with pytest.raises(UnknownKindError, match="ponds"):
        naming.key_of(ObjectRef(resource="ponds", name="a"))
