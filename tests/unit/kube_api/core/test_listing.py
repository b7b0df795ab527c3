"""LIST: versions, pages, refusals."""

import base64
import json

import pytest

from podyard.kube_api.core import listing
from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.listing import ListOptions
from podyard.kube_api.core.shelves import Scope
from tests.unit.kube_api.core.test_reading_properties import selection
from tests.unit.kube_api.core.world import World

FIELD = "resourceVersionMatch"


def world(*, history_bytes: int = 64 << 20) -> World:
    made = World(history_bytes=history_bytes)
    for name in ("a", "b", "c", "d", "e"):
        made.pod(name, labels={"app": "x"} if name in "ace" else {})
    made.relist()
    return made


def names(found: dict[str, list[dict[str, dict[str, str]]]]) -> list[str]:
    return [one["metadata"]["name"] for one in found["items"]]


def refused(made: World, options: ListOptions) -> ApiError:
    with pytest.raises(ApiError) as caught:
        made.list(options)
    return caught.value


def test_a_list_says_what_it_is_and_its_items_do_not():
    found = world().list()
    assert (found["kind"], found["apiVersion"]) == ("PodList", "v1")
    assert found["metadata"] == {"resourceVersion": "5"}
    assert "kind" not in found["items"][0]
    assert found["items"][0]["metadata"]["resourceVersion"] == "1"


def test_pages_are_of_one_version_whatever_happens_between_them():
    made = world()
    first = made.list(ListOptions(limit=2))
    assert first["metadata"]["remainingItemCount"] == 3
    made.delete_pod("d")
    made.pod("c", cpu="2")
    made.pod("cc")
    made.deliver()
    second = made.list(ListOptions(limit=2, more=first["metadata"]["continue"]))
    third = made.list(ListOptions(limit=2, more=second["metadata"]["continue"]))
    assert [names(page) for page in (first, second, third)] == [["a", "b"], ["c", "d"], ["e"]]
    assert second["items"][0]["metadata"]["resourceVersion"] == "3"
    assert {page["metadata"]["resourceVersion"] for page in (first, second, third)} == {"5"}
    assert third["metadata"] == {"resourceVersion": "5"}


def test_pages_of_a_namespace_go_on_within_it():
    made = world()
    made.pod("a", namespace="another", uid="other")
    made.pod("z", namespace="zoo", uid="zoo")
    made.deliver()
    scope = Scope("pods", "default")
    first = made.list(ListOptions(limit=4), scope)
    assert first["metadata"]["remainingItemCount"] == 1
    assert names(made.list(ListOptions(limit=4, more=first["metadata"]["continue"]), scope)) == ["e"]


def test_nobody_counts_what_a_selector_leaves():
    page = world().list(ListOptions(limit=2), selection=selection(labels="app=x"))
    assert names(page) == ["a", "c"]
    assert "remainingItemCount" not in page["metadata"]
    assert page["metadata"]["continue"]


def test_a_list_that_ends_with_its_page_has_no_other():
    assert "continue" not in world().list(ListOptions(limit=5))["metadata"]


def test_where_history_does_not_reach_the_answer_has_a_token_for_what_there_is():
    made = world(history_bytes=1)
    token = made.list(ListOptions(limit=2))["metadata"]["continue"]
    made.pod("f")
    made.deliver()
    error = refused(made, ListOptions(limit=2, more=token))
    assert (error.code, error.reason) == (410, "Expired")
    assert error.message.startswith("The provided continue parameter is too old to display a consistent list result.")
    page = made.list(ListOptions(more=error.status()["metadata"]["continue"]))
    assert names(page) == ["c", "d", "e", "f"]
    assert page["metadata"]["resourceVersion"] == "6"


def test_an_exact_version_is_told_as_it_was_or_not_at_all():
    made = world()
    made.delete_pod("a")
    made.deliver()
    assert names(made.list(ListOptions(version="5", match="Exact"))) == ["a", "b", "c", "d", "e"]
    assert names(made.list(ListOptions(version="5", limit=9))) == ["a", "b", "c", "d", "e"]
    assert names(made.list(ListOptions(version="5", match="NotOlderThan"))) == ["b", "c", "d", "e"]
    assert names(made.list(ListOptions(version="5"))) == ["b", "c", "d", "e"]
    error = refused(made, ListOptions(version="4", match="Exact"))
    assert (error.code, error.message) == (410, "The resourceVersion for the provided list is too old.")


def test_a_version_that_is_not_there_yet_is_a_timeout():
    error = refused(world(), ListOptions(version="99"))
    assert (error.code, error.reason) == (504, "Timeout")
    assert error.message == "Timeout: Too large resource version: 99, current: 5"
    assert error.status()["details"] == {
        "causes": [{"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}],
        "retryAfterSeconds": 1,
    }


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (ListOptions(match="Exact"), f"{FIELD}: Forbidden: {FIELD} is forbidden unless resourceVersion is provided"),
        (
            ListOptions(match="Exact", version="0"),
            FIELD + ': Forbidden: resourceVersionMatch "exact" is forbidden for resourceVersion "0"',
        ),
        (
            ListOptions(match="Newest", version="1"),
            FIELD + ': Unsupported value: "Newest": supported values: "", "Exact", "NotOlderThan"',
        ),
        (ListOptions(send_initial=True), "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list"),
    ],
)
def test_parameters_that_contradict_each_other_are_refused(options: ListOptions, told: str):
    error = refused(world(), options)
    assert (error.code, error.message) == (422, f'ListOptions.meta.k8s.io "" is invalid: {told}')


def token(**fields: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    ("more", "told"),
    [
        ("%%%", "continue key is not valid"),
        (token(v="meta.k8s.io/v2", rv=1, start="a"), "server does not recognize this encoded version meta.k8s.io/v2"),
        (
            token(v="meta.k8s.io/v1", rv=0, start="a"),
            "incorrect encoded start resourceVersion (version meta.k8s.io/v1)",
        ),
        (token(v="meta.k8s.io/v1", rv=1, start=""), "encoded start key empty (version meta.k8s.io/v1)"),
        (token(v="meta.k8s.io/v1", rv=1, start="../a"), "continue key is not valid: ../a"),
        ("a" * 5000, "too long"),
    ],
)
def test_a_token_that_is_none_is_refused(more: str, told: str):
    error = refused(world(), ListOptions(more=more))
    assert error.code == 400
    assert error.message.startswith("invalid continue token: continue key is not valid")
    assert told in error.message


def test_a_token_and_a_version_are_too_much():
    made = world()
    more = made.list(ListOptions(limit=2))["metadata"]["continue"]
    error = refused(made, ListOptions(more=more, version="5"))
    assert (error.code, error.message) == (400, "specifying resource version is not allowed when using continue")


@pytest.mark.parametrize(
    ("text", "why"), [("x", "invalid syntax"), ("-1", "invalid syntax"), ("9" * 30, "value out of range")]
)
def test_a_version_that_is_none_is_refused(text: str, why: str):
    with pytest.raises(ApiError) as caught:
        listing.parse_version(text)
    assert caught.value.message.endswith(f'strconv.ParseUint: parsing "{text}": {why}')
