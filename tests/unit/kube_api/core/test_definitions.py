"""What the status of a CustomResourceDefinition says: how it stands beside the others."""

from typing import Any

from podyard.cluster.keys import ObjectKey
from podyard.objects.documents import Document
from podyard.objects.extensions import DEFINITIONS
from tests.support import stored
from tests.unit.kube_api.core.test_store import world
from tests.unit.kube_api.core.world import World
from tests.unit.kube_api.definitions import definition, version

GATEWAYS = "gateways.example.com"
GATES = "gates.example.com"


def whole(one: Document) -> Document:
    metadata = {**one["metadata"], "uid": f"uid-{one['metadata']['name']}"}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", **one, "metadata": metadata}


def younger(**fields: Any) -> Document:
    """One that wants a name of `definition()`."""
    return definition("Gate", "gates", created="2026-01-02T00:00:00Z", names={"shortNames": ["gateway"]}, **fields)


def put(made: World, one: Document) -> int:
    sequence = made.stream.put(stored.version(DEFINITIONS, whole(one))).sequence
    made.deliver()
    return sequence


def remove(made: World, one: Document) -> int:
    sequence = made.stream.put(stored.marker(DEFINITIONS, whole(one))).sequence
    made.deliver()
    return sequence


def shown(made: World, name: str = GATEWAYS) -> Document:
    item = made.store.item(ObjectKey(DEFINITIONS, "", name))
    assert item is not None
    return item.moment.document({})["status"]


def conditions(made: World, name: str = GATEWAYS) -> dict[str, tuple[str, str, str]]:
    return {one["type"]: (one["status"], one["reason"], one["message"]) for one in shown(made, name)["conditions"]}


ESTABLISHED = {
    "NamesAccepted": ("True", "NoConflicts", "no conflicts found"),
    "Established": ("True", "InitialNamesAccepted", "the initial names have been accepted"),
}
TAKEN = '"gateway" is already in use by gateways.example.com, which is older'
IN_CONFLICT = {
    "NamesAccepted": ("False", "ShortNamesConflict", TAKEN),
    "Established": ("False", "NotAccepted", "not all names are accepted"),
}


def test_one_that_is_served_is_established_at_once() -> None:
    made, _ = world()
    put(made, definition(names={"shortNames": ["gtw"], "categories": ["all"]}))
    assert conditions(made) == ESTABLISHED
    status = shown(made)
    assert status["acceptedNames"] == {
        "plural": "gateways",
        "singular": "gateway",
        "shortNames": ["gtw"],
        "kind": "Gateway",
        "listKind": "GatewayList",
        "categories": ["all"],
    }
    assert status["storedVersions"] == ["v1"]
    assert {one["lastTransitionTime"] for one in status["conditions"]} == {"2026-01-01T00:00:00Z"}


def test_since_when_is_not_told_of_one_that_was_changed() -> None:
    made, _ = world()
    one = definition()
    one["metadata"]["generation"] = 2
    put(made, one)
    assert [found for found in shown(made)["conditions"] if "lastTransitionTime" in found] == []


def test_what_others_wrote_stays() -> None:
    made, _ = world()
    other = {"type": "KubernetesAPIApprovalPolicyConformant", "status": "True", "reason": "Approved", "message": ""}
    stale = {"type": "Established", "status": "False"}
    one = {**definition(), "status": {"conditions": [other, stale], "storedVersions": ["v1beta1"]}}
    put(made, one)
    assert shown(made)["conditions"][0] == other
    assert conditions(made)["Established"][0] == "True"
    assert shown(made)["storedVersions"] == ["v1beta1", "v1"]


def test_one_whose_name_is_taken_is_not_established_until_it_is_free() -> None:
    made, told = world()
    put(made, definition())
    put(made, younger())
    assert conditions(made, GATES) == IN_CONFLICT
    assert shown(made, GATES)["acceptedNames"] == {"plural": "", "kind": ""}
    before = len(told.steps)
    gone = remove(made, definition())
    assert conditions(made, GATES) == ESTABLISHED
    steps = told.steps[before:]
    assert {step.path: step.after is None for step in steps} == {GATES: False, GATEWAYS: True}
    assert [step.version for step in steps] == [gone - 1, gone], "who is cut off between the two is told both"


def test_an_older_one_takes_names_back() -> None:
    made, _ = world()
    put(made, younger())
    assert conditions(made, GATES) == ESTABLISHED
    put(made, definition())
    assert conditions(made, GATES) == IN_CONFLICT


def test_it_says_why_it_is_none() -> None:
    made, _ = world()
    put(made, definition(versions=[version("v1")]))
    why = "no version of it stores: set storage of one of spec.versions"
    assert conditions(made) == {
        "NamesAccepted": ("False", "NotAccepted", why),
        "Established": ("False", "NotAccepted", why),
    }
    assert shown(made)["storedVersions"] == []


def test_it_says_which_versions_are_not_served() -> None:
    made, _ = world()
    put(made, definition(versions=[version("one"), version("v1", storage=True)]))
    status, _, message = conditions(made)["Established"]
    assert status == "True"
    assert message.startswith('the initial names have been accepted; version "one" is not served: ')


def test_a_listing_finds_how_definitions_stand() -> None:
    made, told = world()
    put(made, definition())
    put(made, younger())
    made.relist()
    assert (conditions(made), conditions(made, GATES)) == (ESTABLISHED, IN_CONFLICT)
    before = len(told.steps)
    made.stream.put(stored.marker(DEFINITIONS, whole(definition())))
    made.node("n2")
    made.relist()
    assert conditions(made, GATES) == ESTABLISHED
    assert {step.path for step in told.steps[before:]} == {GATES, GATEWAYS, "n2"}


def test_one_that_cannot_be_read_has_no_status() -> None:
    made, _ = world()
    put(made, {**definition(), "spec": "none"})
    item = made.store.item(ObjectKey(DEFINITIONS, "", GATEWAYS))
    assert item is not None
    assert "status" not in item.moment.document({})
