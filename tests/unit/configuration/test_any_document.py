"""Whatever is in a file: a configuration, or an error that says what is wrong with it."""

import json
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from podyard import configuration
from podyard.configuration import ConfigurationError
from tests.unit.configuration.documents import HEAD, loaded

COMPLETE = loaded(
    percentageOfNodesToScore=50,
    extenders=[
        {
            "urlPrefix": "http://a",
            "prioritizeVerb": "p",
            "weight": 1,
            "tlsConfig": {"caData": ""},
            "managedResources": [{"name": "a/b"}],
        }
    ],
    profiles=[
        {
            "plugins": {
                "score": {"enabled": [{"name": "NodeAffinity", "weight": 3}], "disabled": [{"name": "ImageLocality"}]}
            },
            "pluginConfig": [
                {
                    "name": "NodeAffinity",
                    "args": {
                        "addedAffinity": {
                            "requiredDuringSchedulingIgnoredDuringExecution": {
                                "nodeSelectorTerms": [
                                    {"matchExpressions": [{"key": "a", "operator": "In", "values": ["b"]}]}
                                ]
                            },
                            "preferredDuringSchedulingIgnoredDuringExecution": [
                                {
                                    "weight": 2,
                                    "preference": {
                                        "matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n"]}]
                                    },
                                }
                            ],
                        }
                    },
                },
                {
                    "name": "PodTopologySpread",
                    "args": {
                        "defaultingType": "List",
                        "defaultConstraints": [
                            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                        ],
                    },
                },
            ],
        }
    ],
).written()


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path] if path else []
    children = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, child in children:
        found += places(child, (*path, key))
    return found


STAGES = ("decode", "validate", "build", "ok")
PLACES = places(COMPLETE)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.text(max_size=8),
    st.sampled_from(["*", "a:B", "5s", "-1h", "cpu"]),
)
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def outcome(text: str) -> str:
    """Loads the text; anything but an error of a configuration fails the test."""
    try:
        found = configuration.load(text)
        found.profiles()
    except ConfigurationError as error:
        return error.stage if error.faults and all(fault.detail for fault in error.faults) else "nothing said"
    again = configuration.load(json.dumps(found.written()))
    return "ok" if again.written() == found.written() else "not the same again"


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(PLACES), VALUES)
def test_any_value_at_any_place(place: tuple[Any, ...], value: Any) -> None:
    document = json.loads(json.dumps(COMPLETE))
    parent = document
    for key in place[:-1]:
        parent = parent[key]
    parent[place[-1]] = value
    assert outcome(json.dumps(document)) in STAGES


@settings(max_examples=60, deadline=None)
@given(st.text())
@example("\x00")
@example("a: &a [*a]")
@example("[" * 5000)
@example('{"a":' * 5000)
def test_any_text(text: str) -> None:
    assert outcome(text) == "decode"
    assert outcome(HEAD + text) in STAGES


def test_the_complete_document_is_fine_as_it_is() -> None:
    assert outcome(json.dumps(COMPLETE)) == "ok"
