"""The table of numbers holds what the sources of Kubernetes' types say."""

import pytest

from podyard.objects import api_numbers, api_types

TABLE = api_numbers.table()
TYPES = api_types.table()
UNWRITTEN = {"apimachinery.pkg.version.Info"}
"""What the API document has and protobuf does not."""


def field(message: str, number: int) -> api_numbers.Number:
    (found,) = [one for one in TABLE.messages[message].fields if one.number == number]
    return found


def names(message: str) -> set[str]:
    """The fields that the message has in JSON."""
    found: set[str] = set()
    for one in TABLE.messages[message].fields:
        found |= {one.name} if one.name else names(one.type)
    return found


def item(type_: str) -> str:
    return type_.removeprefix(api_types.LIST).removeprefix(api_types.MAP)


def test_its_origin_is_said():
    assert [one.module for one in TABLE.origin] == [
        "k8s.io/api",
        "k8s.io/apiextensions-apiserver",
        "k8s.io/apimachinery",
        "k8s.io/kube-aggregator",
    ]
    assert {one.version for one in TABLE.origin} == {"v0.36.2"}
    assert all(one.sum.startswith("h1:") for one in TABLE.origin)


def test_it_is_as_large_as_it_says():
    assert len(TABLE.messages) == 912
    assert sum(len(one.fields) for one in TABLE.messages.values()) == 3148


def test_messages_have_the_fields_of_the_api_document():
    for name, definition in TYPES.definitions.items():
        if not definition.fields or name in UNWRITTEN:
            continue
        of_its_own = {"apiVersion", "kind"} if TABLE.messages[name].kind else set[str]()
        assert names(name) == set(definition.fields) - of_its_own, name


def test_every_type_is_known():
    scalars = {"string", "bool", "bytes", "int32", "int64", "double"}
    for name, message in TABLE.messages.items():
        for one in message.fields:
            assert item(one.type) in scalars or item(one.type) in TABLE.messages, (name, one)


def test_only_single_messages_stand_among_the_fields_around_them():
    inline = [one.type for message in TABLE.messages.values() for one in message.fields if not one.name]
    assert len(inline) == 27
    assert all(type_ in TABLE.messages for type_ in inline)


def test_numbers_are_given_once():
    for name, message in TABLE.messages.items():
        numbers = [one.number for one in message.fields]
        assert len(set(numbers)) == len(numbers), name


@pytest.mark.parametrize(
    ("message", "number", "name", "type_", "zero"),
    [
        ("api.apps.v1.DeploymentSpec", 1, "replicas", "int32", True),
        ("api.apps.v1.DeploymentSpec", 5, "minReadySeconds", "int32", False),
        ("api.core.v1.Container", 1, "name", "string", True),
        ("api.core.v1.Container", 2, "image", "string", False),
        ("api.core.v1.Secret", 2, "data", "map[string]bytes", False),
        ("api.core.v1.PodSecurityContext", 4, "supplementalGroups", "[]int64", False),
        ("api.core.v1.Volume", 2, "", "api.core.v1.VolumeSource", True),
        (
            "api.policy.v1.PodDisruptionBudgetSpec",
            3,
            "maxUnavailable",
            "apimachinery.pkg.util.intstr.IntOrString",
            True,
        ),
        (
            "apimachinery.pkg.apis.meta.v1.ObjectMeta",
            17,
            "managedFields",
            f"[]{api_numbers.META}.ManagedFieldsEntry",
            False,
        ),
    ],
)
def test_facts_of_fields(message: str, number: int, name: str, type_: str, zero: bool):
    found = field(message, number)
    assert (found.name, found.type, found.zero) == (name, type_, zero)


def test_messages_that_wrap_a_list_have_its_type():
    assert TABLE.messages["api.authorization.v1.ExtraValue"].type == "[]string"
    assert TABLE.messages["api.core.v1.Pod"].type == ""


def test_every_served_kind_has_a_message():
    for kind in TYPES.kinds:
        version = f"{kind.group}/{kind.version}".lstrip("/")
        assert api_numbers.message_of(version, kind.kind) == kind.definition


@pytest.mark.parametrize(
    ("version", "kind", "message"),
    [
        ("policy/v1", "Eviction", "api.policy.v1.Eviction"),
        ("v1", "Binding", "api.core.v1.Binding"),
        ("autoscaling/v1", "Scale", "api.autoscaling.v1.Scale"),
        ("v1", "DeleteOptions", "apimachinery.pkg.apis.meta.v1.DeleteOptions"),
        ("apps/v1", "DeleteOptions", "apimachinery.pkg.apis.meta.v1.DeleteOptions"),
        ("meta.k8s.io/v1", "DeleteOptions", "apimachinery.pkg.apis.meta.v1.DeleteOptions"),
        ("v1", "PodExecOptions", "api.core.v1.PodExecOptions"),
        ("v1", "Container", None),
        ("v1", "ObjectMeta", None),
        ("apps/v9", "Deployment", None),
        ("example.com/v1", "Widget", None),
    ],
)
def test_which_message_a_kind_is(version: str, kind: str, message: str | None):
    assert api_numbers.message_of(version, kind) == message
