"""JSON patch, merge patch and strategic merge patch: laws, limits, what is refused."""

import time
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.patching.json_patch import COPIED_BYTES, MOST_OPERATIONS, json_patch
from podyard.kube_api.core.patching.merge_patch import merge_patch
from podyard.kube_api.core.patching.strategic import strategic
from podyard.objects import bounds
from podyard.objects.documents import Document, copy, is_mapping

POD: Final = "api.core.v1.Pod"
DEPLOYMENT: Final = "api.apps.v1.Deployment"
GENERIC: Final = "the server rejected our request due to an error in our request"

scalars = st.one_of(st.booleans(), st.integers(-5, 5), st.text(max_size=3), st.sampled_from([0.5, 2.25]))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
    max_leaves=12,
)
documents = st.dictionaries(st.text(max_size=2), values, max_size=4)


def difference(before: Document, after: Document) -> Document:
    """The merge patch that makes `after` of `before`."""
    patch: Document = {key: None for key in before if key not in after}
    for key, value in after.items():
        found = before.get(key)
        if is_mapping(found) and is_mapping(value):
            patch[key] = difference(found, value)
        elif key not in before or found != value or type(found) is not type(value):
            patch[key] = value
    return patch


@given(documents, documents)
def test_a_merge_patch_of_what_differs_makes_one_of_the_other(before: Document, after: Document):
    assert merge_patch(before, difference(before, after)) == after


@given(documents, documents)
def test_a_merge_patch_twice_is_a_merge_patch_once(before: Document, patch: Document):
    once = merge_patch(before, patch)
    assert merge_patch(once, patch) == once


@given(documents)
def test_a_json_patch_puts_what_it_tests_and_moves_it_back(document: Document):
    for key in document:
        path = "/" + key.replace("~", "~0").replace("/", "~1")
        moved = [
            {"op": "test", "path": path, "value": document[key]},
            {"op": "move", "from": path, "path": "/new key"},
            {"op": "copy", "from": "/new key", "path": path},
            {"op": "remove", "path": "/new key"},
        ]
        assert json_patch(document, moved) == document


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        ({"op": "add", "path": "/list/1", "value": 9}, [1, 9, 2, 3]),
        ({"op": "add", "path": "/list/-", "value": 9}, [1, 2, 3, 9]),
        ({"op": "add", "path": "/list/3", "value": 9}, [1, 2, 3, 9]),
        ({"op": "add", "path": "/list/-1", "value": 9}, [1, 2, 3, 9]),
        ({"op": "remove", "path": "/list/-1"}, [1, 2]),
        ({"op": "replace", "path": "/list/0"}, [None, 2, 3]),
        ({"op": "move", "from": "/list/0", "path": "/list/2"}, [2, 3, 1]),
    ],
)
def test_a_json_patch_changes_lists(operation: Document, result: list[Any]):
    assert json_patch({"list": [1, 2, 3]}, [operation]) == {"list": result}


@pytest.mark.parametrize(
    ("operation", "why"),
    [
        ({"op": "test", "path": "/a", "value": 1.0}, "the test failed"),
        ({"op": "test", "path": "/a", "value": True}, "the test failed"),
        ({"op": "remove", "path": "/b"}, "there is no b to remove"),
        ({"op": "remove", "path": "/list/3"}, "the list ends before index 3"),
        ({"op": "add", "path": "/list/5", "value": 1}, "the list ends before index 5"),
        ({"op": "add", "path": "/list/x", "value": 1}, "x is no index"),
        ({"op": "add", "path": "/a/b", "value": 1}, "a of /a/b is neither"),
        ({"op": "replace", "path": "", "value": []}, "becomes a list"),
        ({"op": "delete", "path": "/a"}, "no such operation"),
        ({"op": "add"}, "field path is missing"),
    ],
)
def test_an_operation_that_does_not_apply_is_422_and_its_cause_says_why(operation: Document, why: str):
    with pytest.raises(ApiError) as refused:
        json_patch({"a": 1, "list": [1, 2, 3]}, [operation])
    assert (refused.value.code, refused.value.reason, refused.value.message) == (422, "Invalid", GENERIC)
    assert why in str(refused.value.__cause__)


def test_a_json_patch_has_limits():
    with pytest.raises(ApiError) as refused:
        json_patch({}, [{"op": "add", "path": "/a", "value": 1}] * (MOST_OPERATIONS + 1))
    assert refused.value.code == 413
    assert refused.value.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )
    with pytest.raises(ApiError, match=GENERIC) as refused:
        json_patch({"a": "x" * (COPIED_BYTES // 2)}, [{"op": "copy", "from": "/a", "path": "/b"}] * 3)
    assert "copies" in str(refused.value.__cause__)
    nest: list[Document] = [
        {"op": "add", "path": "/a", "value": {}},
        *[{"op": "copy", "from": "/a", "path": "/a/b"}] * 120,
    ]
    with pytest.raises(ApiError, match=GENERIC) as refused:
        json_patch({}, nest)
    assert "nested" in str(refused.value.__cause__)
    with pytest.raises(ApiError, match=GENERIC) as refused:
        json_patch({"a": [0] * 200_000}, [{"op": "add", "path": "/a/0", "value": 0}] * 1_000)
    assert "moves items" in str(refused.value.__cause__)


@pytest.mark.parametrize("patch", [{"op": "add"}, "x", [1], [{"op": 1}]])
def test_what_is_no_json_patch_is_400(patch: Any):
    with pytest.raises(ApiError, match="error decoding patch") as refused:
        json_patch({}, patch)
    assert refused.value.code == 400


@pytest.mark.parametrize("patch", [[], "x", 1, None])
def test_what_is_no_merge_patch_is_400(patch: Any):
    with pytest.raises(ApiError) as refused:
        merge_patch({}, patch)
    assert refused.value.code == 400


def test_no_patch_nests_deeper_than_an_object_may():
    deep: Document = {}
    for _ in range(bounds.NESTING + 1):
        deep = {"a": deep}
    for patch in (lambda: merge_patch({}, deep), lambda: strategic({}, deep, POD), lambda: json_patch({}, [deep])):
        with pytest.raises(ApiError, match="nested more than") as refused:
            patch()
        assert refused.value.code == 400


def test_a_custom_resource_has_no_strategic_merge_patch():
    with pytest.raises(ApiError, match="application/merge-patch") as refused:
        strategic({}, {}, None)
    assert (refused.value.code, refused.value.reason) == (415, "UnsupportedMediaType")


def containers(*names: str) -> list[Document]:
    return [{"name": name} for name in names]


def named(document: Document) -> list[str]:
    return [one["name"] for one in document["spec"]["containers"]]


def test_a_list_is_joined_by_its_key_and_the_patch_says_the_order_of_what_it_names():
    live = {"spec": {"containers": [{"name": "a", "image": "1"}, {"name": "b", "image": "2"}, {"name": "c"}]}}
    patch = {"spec": {"containers": [{"name": "d"}, {"name": "a", "image": "3"}, {"name": "b", "$patch": "delete"}]}}
    assert strategic(live, patch, POD)["spec"]["containers"] == [
        {"name": "d"},
        {"name": "a", "image": "3"},
        {"name": "c"},
    ]


def test_the_order_that_a_patch_sets_leaves_the_rest_where_it_was():
    live = {"spec": {"containers": containers("a", "x", "b", "c")}}
    patch = {"spec": {"$setElementOrder/containers": containers("c", "b", "a")}}
    assert named(strategic(live, patch, POD)) == ["x", "c", "b", "a"]
    patch = {"spec": {"$setElementOrder/containers": containers("a", "c", "b")}}
    assert named(strategic(live, patch, POD)) == ["a", "x", "c", "b"]


def test_what_a_patch_adds_takes_the_place_of_what_it_deletes():
    """Recorded: `kubectl apply` of B and C, where A and B had been applied and somebody had added X."""
    live = {"spec": {"containers": containers("a", "b", "x")}}
    patch = {
        "spec": {
            "$setElementOrder/containers": containers("b", "c"),
            "containers": [*containers("b", "c"), {"name": "a", "$patch": "delete"}],
        }
    }
    assert named(strategic(live, patch, POD)) == ["b", "x", "c"]


def test_directives_replace_and_delete():
    live = {"metadata": {"labels": {"a": "1"}, "finalizers": ["x", "y"]}, "spec": {"containers": containers("a")}}
    patch = {
        "metadata": {"labels": {"$patch": "replace", "b": "2"}, "$deleteFromPrimitiveList/finalizers": ["x"]},
        "spec": {"containers": [{"$patch": "replace"}, {"name": "b"}]},
    }
    found = strategic(live, patch, POD)
    assert found["metadata"] == {"labels": {"b": "2"}, "finalizers": ["y"]}
    assert named(found) == ["b"]


def test_keys_that_are_not_retained_go():
    live = {"spec": {"strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1}}}}
    patch = {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}}
    assert strategic(live, patch, DEPLOYMENT) == {"spec": {"strategy": {"type": "Recreate"}}}


@pytest.mark.parametrize(
    ("spec", "code", "message"),
    [
        ({"containers": [{"image": "x"}]}, 500, "map: map[image:x] does not contain declared merge key: name"),
        ({"containers": [{"name": "a", "$patch": "x"}]}, 500, "unknown patch type: x in map: map[$patch:x name:a]"),
        ({"$setElementOrder/x": []}, 500, 'unable to find api field in struct PodSpec for the json field "x"'),
        ({"$setElementOrder": []}, 400, "invalid patch format of setElementOrder list"),
        ({"$deleteFromPrimitiveList": []}, 400, "invalid patch format of primitive list"),
        ({"$retainKeys": {}}, 400, "invalid patch format of retainKeys"),
        ({"$retainKeys": [], "hostname": "x"}, 400, "invalid patch format of retainKeys"),
    ],
)
def test_a_malformed_directive_is_refused_in_the_references_words(spec: Document, code: int, message: str):
    with pytest.raises(ApiError) as refused:
        strategic({"spec": {"containers": containers("a")}}, {"spec": spec}, POD)
    assert (refused.value.code, refused.value.message) == (code, message)


@given(st.permutations("abcdef"), st.permutations("cdefgh"))
def test_items_keep_the_order_of_the_patch_and_the_rest_that_of_the_object(live: list[str], patch: list[str]):
    found = named(
        strategic({"spec": {"containers": containers(*live)}}, {"spec": {"containers": containers(*patch)}}, POD)
    )
    assert sorted(found) == sorted({*live, *patch})
    assert [name for name in found if name in patch] == patch
    assert [name for name in found if name not in patch] == [name for name in live if name not in patch]


def test_a_list_of_eight_thousand_is_joined_in_a_moment():
    """Looking each item up in a list would take minutes."""
    names = [f"c{at}" for at in range(8_000)]
    live = {"spec": {"containers": containers(*names)}}
    patch = {
        "spec": {
            "containers": containers(*reversed(names)),
            "$setElementOrder/containers": containers(*reversed(names)),
        }
    }
    start = time.process_time()
    assert named(strategic(copy(live), patch, POD)) == names[::-1]
    assert time.process_time() - start < 5
