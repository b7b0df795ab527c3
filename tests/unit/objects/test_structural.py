"""Schemas of custom kinds: what they know, fill in and refuse. Words recorded of the API server, or its
source's."""

from typing import Any

import pytest

from podyard.objects import structural
from podyard.objects.faults import Faults

BOAT: dict[str, Any] = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "required": ["name"],
            "properties": {
                "name": {"type": "string", "maxLength": 8, "pattern": "^[A-Z]"},
                "masts": {"type": "integer", "minimum": 1, "maximum": 5, "default": 2},
                "flag": {"type": "string", "enum": ["red", "blue"]},
                "note": {"type": "string", "nullable": True},
                "port": {"x-kubernetes-int-or-string": True},
                "free": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
                "pod": {"type": "object", "x-kubernetes-embedded-resource": True},
                "labels": {"type": "object", "additionalProperties": {"type": "string"}},
                "crew": {
                    "type": "array",
                    "maxItems": 3,
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["who"],
                    "items": {
                        "type": "object",
                        "required": ["who"],
                        "properties": {"who": {"type": "string"}, "rank": {"type": "string", "default": "hand"}},
                    },
                },
                "one": {"oneOf": [{"required": ["a"]}, {"required": ["b"]}], "type": "object"},
            },
        }
    },
}


def boat(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "e.com/v1", "kind": "Boat", "metadata": {"name": "ark"}, "spec": {"name": "Ark", **spec}}


def refused(document: dict[str, Any], old: dict[str, Any] | None = None) -> list[str]:
    faults = Faults()
    structural.check(faults, BOAT, document, old)
    return [f"{one.field}: {one.detail}" for one in faults.found]


def test_what_the_schema_does_not_know_goes_and_is_told():
    document = boat(sail="big", crew=[{"who": "ham", "age": 9}], labels={"a": "b"}, free={"x": {"y": 1}})
    document["more"] = 1
    assert structural.prune(BOAT, document) == ["spec.sail", "spec.crew[0].age", "more"]
    assert document == boat(crew=[{"who": "ham"}], labels={"a": "b"}, free={"x": {"y": 1}})


def test_an_object_within_keeps_what_every_object_has():
    inner = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}}
    document = boat(pod={**inner, "spec": {}})
    assert structural.prune(BOAT, document) == ["spec.pod.spec"]
    assert document["spec"]["pod"] == inner


def test_defaults_are_filled_in_where_there_is_nothing_or_a_null_that_may_not_be():
    document = boat(masts=None, note=None, crew=[{"who": "ham"}, {"who": "noah", "rank": "captain"}])
    structural.fill(BOAT, document)
    assert document["spec"] == {
        "name": "Ark",
        "masts": 2,
        "note": None,
        "crew": [{"who": "ham", "rank": "hand"}, {"who": "noah", "rank": "captain"}],
    }


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        ({"masts": 9}, "spec.masts: Invalid value: 9: spec.masts in body should be less than or equal to 5"),
        ({"masts": 0}, "spec.masts: Invalid value: 0: spec.masts in body should be greater than or equal to 1"),
        (
            {"masts": "two"},
            'spec.masts: Invalid value: "string": spec.masts in body must be of type integer: "string"',
        ),
        ({"name": "ark"}, "spec.name: Invalid value: \"ark\": spec.name in body should match '^[A-Z]'"),
        ({"name": "Arkansas-2"}, "spec.name: Too long: may not be more than 8 bytes"),
        ({"flag": "green"}, 'spec.flag: Unsupported value: "green": supported values: "red", "blue"'),
        ({"crew": [{"rank": "x"}]}, "spec.crew[0].who: Required value"),
        ({"crew": [{"who": "a"}, {"who": "a"}]}, 'spec.crew[1]: Duplicate value: {"who":"a"}'),
        ({"crew": [{"who": str(at)} for at in range(4)]}, "spec.crew: Too many: 4: must have at most 3 items"),
        ({"port": [1]}, 'spec.port: Invalid value: "array": spec.port in body must be of type integer,string: "array"'),
        (
            {"one": {"a": 1, "b": 2}},
            'spec.one: Invalid value: "": "spec.one" must validate one and only one schema (oneOf). Found 2 valid alternatives',
        ),
    ],
)
def test_what_is_wrong_is_refused_in_the_references_words(spec: dict[str, Any], told: str):
    assert refused(boat(**spec)) == [told]


def test_what_is_required_is_told_with_the_rest():
    document = boat(masts=9)
    del document["spec"]["name"]
    assert refused(document) == [
        "spec.masts: Invalid value: 9: spec.masts in body should be less than or equal to 5",
        "spec.name: Required value",
    ]


def test_what_was_there_before_and_stays_is_not_refused():
    old = boat(masts=9, crew=[{"who": "ham", "rank": 3}])
    assert refused(boat(masts=9, crew=[{"who": "noah"}, {"who": "ham", "rank": 3}]), old) == []
    assert refused(boat(masts=8), old) == [
        "spec.masts: Invalid value: 8: spec.masts in body should be less than or equal to 5"
    ]


def test_what_fits_is_taken():
    assert refused(boat(masts=5, flag="red", note=None, port="http", one={"a": 1}, labels={"a": "b"})) == []
