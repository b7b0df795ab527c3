"""Server-side apply and owners of fields: laws, and cases worked out by hand."""

import time
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.kube_api.core.errors import ApiError
from podyard.kube_api.core.patching import shapes
from podyard.kube_api.core.patching.applying import apply, tracked
from podyard.kube_api.core.patching.field_sets import FieldSet, read
from podyard.kube_api.core.patching.last_applied import ANNOTATION
from podyard.kube_api.core.patching.managers import MOST_UPDATERS
from podyard.objects.documents import Document, copy

NOW: Final = "2026-01-01T00:00:00Z"
LATER: Final = "2026-01-02T00:00:00Z"
KINDS: Final[dict[str, str | None]] = {
    "Pod": "api.core.v1.Pod",
    "Service": "api.core.v1.Service",
    "ConfigMap": "api.core.v1.ConfigMap",
    "Widget": None,
}


def made(kind: str, **fields: Any) -> Document:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": "x", **fields.pop("metadata", {})}, **fields}


def applied(
    live: Document | None, wanted: Document, manager: str = "one", *, force: bool = False, now: str = NOW
) -> Document:
    definition = KINDS[wanted["kind"]]
    return apply(live, wanted, manager, force=force, definition=definition, api_version="v1", now=now)


def updated(live: Document | None, after: Document, manager: str = "one", now: str = NOW, **how: Any) -> Document:
    return tracked(live, after, manager, definition=KINDS[after["kind"]], api_version="v1", now=now, **how)


def config(data: dict[str, str]) -> Document:
    return made("ConfigMap", data=data) if data else made("ConfigMap")


def owned(document: Document) -> dict[tuple[str, str], Document]:
    entries = document["metadata"].get("managedFields", ())
    return {(one["manager"], one["operation"]): one["fieldsV1"] for one in entries}


def shown(document: Document) -> Document:
    found = copy(document)
    found["metadata"].pop("managedFields", None)
    return found


values = st.recursive(
    st.one_of(st.integers(0, 3), st.text("ab", max_size=2), st.booleans()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abcd"), inner, max_size=3)),
    max_leaves=10,
)


def widget(spec: Document, labels: dict[str, str]) -> Document:
    return made("Widget", metadata={"labels": labels}, spec=spec)


def pod(containers: list[Document], finalizers: list[str]) -> Document:
    return made("Pod", metadata={"finalizers": finalizers}, spec={"containers": containers})


widgets = st.builds(
    widget,
    st.dictionaries(st.sampled_from("abcd"), values, max_size=4),
    st.dictionaries(st.sampled_from("xyz"), st.sampled_from("12"), min_size=1, max_size=2),
)
items = st.fixed_dictionaries(
    {"name": st.sampled_from("abcde")},
    optional={"image": st.sampled_from("12"), "command": st.lists(st.sampled_from("xy"), min_size=1, max_size=2)},
)
pods = st.builds(
    pod,
    st.lists(items, min_size=1, max_size=4, unique_by=lambda one: one["name"]),
    st.lists(st.sampled_from("fgh"), min_size=1, unique=True),
)
objects = st.one_of(widgets, pods)


@given(objects, objects)
def test_what_is_applied_twice_changes_nothing_the_second_time(one: Document, other: Document):
    wanted = copy(other)
    wanted["kind"] = one["kind"] = "Widget" if one["kind"] != other["kind"] else one["kind"]
    live = applied(updated(None, one, "other"), wanted, force=True)
    assert applied(live, wanted, now=LATER) == live


@given(objects)
def test_what_is_created_by_apply_is_what_was_applied(wanted: Document):
    found = shown(applied(None, wanted))
    if wanted["kind"] == "Widget":
        assert found["spec"] == wanted["spec"]
    else:
        assert found == wanted


@given(pods, pods)
def test_a_manager_alone_makes_of_an_object_what_it_wants(one: Document, other: Document):
    """All that was there was its own, so what it does not want any more goes."""
    found = shown(applied(applied(None, one), other))
    assert {container["name"]: container for container in found["spec"]["containers"]} == {
        container["name"]: container for container in other["spec"]["containers"]
    }
    assert [container["name"] for container in found["spec"]["containers"]] == [
        container["name"] for container in other["spec"]["containers"]
    ]
    assert found["metadata"]["finalizers"] == other["metadata"]["finalizers"]


@given(st.dictionaries(st.sampled_from("abcd"), st.text("xy", max_size=1)), st.lists(st.booleans(), min_size=4))
def test_managers_of_different_fields_never_conflict(data: dict[str, str], whose: list[bool]):
    mine = {key: value for at, (key, value) in enumerate(sorted(data.items())) if whose[at]}
    theirs = {key: value for key, value in data.items() if key not in mine}
    live = applied(applied(None, config(mine)), config(theirs), "two")
    assert live.get("data", {}) == data
    without = applied(live, config({}))
    assert without.get("data", {}) == theirs


@given(objects, st.data())
def test_fields_are_written_and_read_again(document: Document, data: st.DataObject):
    found = updated(None, document)
    for fields in owned(found).values():
        assert read(fields).document() == fields


@given(st.lists(st.lists(st.sampled_from("abc"), min_size=1, max_size=3), max_size=5))
def test_sets_of_fields_obey_the_laws_of_sets(paths: list[list[str]]):
    def of(some: list[list[str]]) -> FieldSet:
        found = FieldSet()
        for *way, last in some:
            place = found
            for name in way:
                place = place.into(f"f:{name}")
            place.members.add(f"f:{last}")
        return found

    one, other = of(paths[::2]), of(paths[1::2])
    both = set(one.paths()) & set(other.paths())
    assert set((one | other).paths()) == set(one.paths()) | set(other.paths())
    assert set((one & other).paths()) == both
    assert set((one - other).paths()) == set(one.paths()) - both


SERVICE: Final = made("Service", spec={"ports": [{"port": 80, "name": "web"}], "clusterIP": "10.0.0.1"})


def test_who_creates_an_object_owns_its_fields_and_nobody_its_name():
    found = updated(None, SERVICE, "me")
    assert found["metadata"]["managedFields"] == [
        {
            "manager": "me",
            "operation": "Update",
            "apiVersion": "v1",
            "time": NOW,
            "fieldsType": "FieldsV1",
            "fieldsV1": {
                "f:spec": {
                    "f:clusterIP": {},
                    "f:ports": {
                        ".": {},
                        'k:{"port":80,"protocol":"TCP"}': {".": {}, "f:name": {}, "f:port": {}},
                    },
                }
            },
        }
    ]


def test_a_port_without_protocol_is_the_port_of_tcp():
    live = applied(None, made("Service", spec={"ports": [{"port": 53, "protocol": "TCP"}]}))
    wanted = made("Service", spec={"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53, "name": "dns"}]})
    found = applied(live, wanted, "two")
    assert found["spec"]["ports"] == [
        {"port": 53, "protocol": "UDP"},
        {"port": 53, "protocol": "TCP", "name": "dns"},
    ]


def test_a_field_of_somebody_else_is_a_conflict_with_a_cause():
    live = updated(None, SERVICE, "me")
    wanted = made("Service", spec={"ports": [{"port": 80, "name": "http"}]})
    with pytest.raises(ApiError) as refused:
        applied(live, wanted)
    assert refused.value.status() == {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": 'Apply failed with 1 conflict: conflict with "me" using v1: '
        '.spec.ports[port=80,protocol="TCP"].name',
        "reason": "Conflict",
        "details": {
            "causes": [
                {
                    "reason": "FieldManagerConflict",
                    "message": 'conflict with "me" using v1',
                    "field": '.spec.ports[port=80,protocol="TCP"].name',
                }
            ]
        },
        "code": 409,
    }
    found = applied(live, wanted, force=True)
    assert found["spec"]["ports"] == [{"port": 80, "name": "http"}]
    port = owned(found)["me", "Update"]["f:spec"]["f:ports"]['k:{"port":80,"protocol":"TCP"}']
    assert port == {".": {}, "f:port": {}}


def test_conflicts_with_several_are_told_by_manager():
    live = updated(None, made("ConfigMap", data={"a": "1"}), "two")
    live = updated(live, {**copy(live), "data": {"a": "1", "b": "1", "c": "1"}}, "three", subresource="scale")
    with pytest.raises(ApiError) as refused:
        applied(live, made("ConfigMap", data={"a": "2", "b": "2", "c": "2"}))
    assert refused.value.message == (
        "Apply failed with 3 conflicts: "
        'conflicts with "three" with subresource "scale" using v1:\n- .data.b\n- .data.c\n'
        'conflicts with "two" using v1:\n- .data.a'
    )


def test_the_same_value_is_no_conflict_and_belongs_to_both():
    wanted = made("ConfigMap", data={"a": "1"})
    live = applied(applied(None, wanted), wanted, "two")
    assert set(owned(live)) == {("one", "Apply"), ("two", "Apply")}
    gone = applied(live, made("ConfigMap"), "one")
    assert gone["data"] == {"a": "1"}
    assert set(owned(gone)) == {("two", "Apply")}
    assert "data" not in applied(gone, made("ConfigMap"), "two")


def test_what_nobody_was_tracked_on_belongs_to_before_first_apply():
    live = made("ConfigMap", data={"a": "1"})
    assert updated(live, {**live, "data": {"a": "2"}}) == {**live, "data": {"a": "2"}}
    with pytest.raises(ApiError, match=r'conflict with "before-first-apply" using v1: \.data\.a'):
        applied(live, made("ConfigMap", data={"a": "2"}))
    found = applied(live, made("ConfigMap", data={"b": "2"}))
    assert owned(found)["before-first-apply", "Update"] == {"f:data": {".": {}, "f:a": {}}}


def test_a_change_takes_the_field_from_its_owner_and_a_removal_from_all():
    live = updated(None, made("ConfigMap", data={"a": "1", "b": "1", "c": "1"}), "one")
    live = updated(live, {**copy(live), "data": {"a": "2", "b": "1"}}, "two", LATER)
    assert owned(live) == {
        ("one", "Update"): {"f:data": {".": {}, "f:b": {}}},
        ("two", "Update"): {"f:data": {"f:a": {}}},
    }
    assert [one["time"] for one in live["metadata"]["managedFields"]] == [NOW, LATER]


def test_a_list_without_keys_belongs_to_one_as_a_whole():
    live = applied(None, made("Widget", spec={"list": [1, 2], "map": {"a": 1}}))
    with pytest.raises(ApiError, match=r"\.spec\.list$"):
        applied(live, made("Widget", spec={"list": [1], "map": {"b": 1}}), "two")
    found = applied(live, made("Widget", spec={"map": {"b": 1}}), "two")
    assert found["spec"] == {"list": [1, 2], "map": {"a": 1, "b": 1}}


def test_a_field_that_the_endpoint_resets_is_nobodys():
    running = made("Pod", spec={"hostname": "a"}, status={"phase": "Running"})
    assert set(owned(updated(None, running, reset=("status",)))["one", "Update"]) == {"f:spec"}


def test_who_resets_the_owners_starts_anew():
    live = updated(None, made("ConfigMap", data={"a": "1"}))
    after = copy(live)
    after["metadata"]["managedFields"] = [{}]
    assert "managedFields" not in updated(live, after)["metadata"]


def test_owners_of_a_request_that_cannot_be_read_are_those_of_the_object():
    live = updated(None, made("ConfigMap", data={"a": "1"}))
    after = copy(live)
    after["metadata"]["managedFields"] = [{"manager": "x", "operation": "Steal"}]
    assert updated(live, after) == live


def test_old_updaters_are_made_one():
    live = updated(None, made("ConfigMap", data={"k": "x"}), "m")
    for at in range(MOST_UPDATERS + 5):
        after = copy(live)
        after["data"][f"k{at}"] = "x"
        live = updated(live, after, f"m{at}", f"2026-01-{at + 1:02}T00:00:00Z")
    names = [one["manager"] for one in live["metadata"]["managedFields"]]
    assert len(names) == MOST_UPDATERS
    assert names[0] == "ancient-changes"
    assert names[1:] == [f"m{at}" for at in range(6, 15)]


def test_kubectl_takes_over_what_it_applied_on_the_client():
    text = '{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"x"},"data":{"a":"1","b":"1"}}'
    config = made("ConfigMap", metadata={"annotations": {ANNOTATION: text}}, data={"a": "1", "b": "1"})
    live = updated(None, config, "kubectl-client-side-apply")
    wanted = made("ConfigMap", data={"a": "<2>"})
    with pytest.raises(ApiError, match="1 conflict"):
        applied(live, wanted, "another")
    found = applied(live, wanted, "kubectl")
    assert found["data"] == {"a": "<2>", "b": "1"}
    assert found["metadata"]["annotations"][ANNOTATION] == (
        '{"apiVersion":"v1","data":{"a":"\\u003c2\\u003e"},"kind":"ConfigMap","metadata":{"name":"x"}}\n'
    )
    changed = updated(live, {**copy(live), "data": {"a": "3", "b": "1"}}, "edit")
    with pytest.raises(ApiError, match=r'conflict with "edit" using v1: \.data\.a'):
        applied(changed, wanted, "kubectl")


@pytest.mark.parametrize(
    ("wanted", "code", "message"),
    [
        (made("Pod", spec={"foo": 1}), 500, ".spec.foo: field not declared in schema"),
        (made("Pod", spec=[]), 500, ".spec: expected map, got &{[]}"),
        (
            made("Pod", spec={"hostname": 1, "priority": "x"}),
            500,
            (
                "errors:\n  .spec.hostname: expected string, got &value.valueUnstructured{Value:1}\n"
                "  .spec.priority: expected numeric (int or float), got string"
            ),
        ),
        (
            made("Pod", spec={"containers": [{"name": "a"}, {"name": "a"}]}),
            500,
            '.spec.containers: duplicate entries for key [name="a"]',
        ),
    ],
)
def test_what_is_not_of_its_type_is_refused_in_the_references_words(wanted: Document, code: int, message: str):
    with pytest.raises(ApiError) as refused:
        applied(None, wanted)
    start = "failed to create typed patch object (/x; /v1, Kind=Pod): "
    assert (refused.value.code, refused.value.message) == (code, start + message)


@pytest.mark.parametrize(
    ("wanted", "message"),
    [
        ({**made("Pod"), "apiVersion": "v2"}, "invalid object type: /v2, Kind=Pod"),
        (made("Pod", metadata={"managedFields": []}), "metadata.managedFields must be nil"),
    ],
)
def test_what_cannot_be_applied_is_400(wanted: Document, message: str):
    with pytest.raises(ApiError) as refused:
        applied(None, wanted)
    assert (refused.value.code, refused.value.message) == (400, message)


def test_a_list_of_five_thousand_is_applied_in_a_moment():
    def of(names: list[str]) -> Document:
        return made("Pod", spec={"containers": [{"name": name} for name in names]})

    names = [f"c{at}" for at in range(5_000)]
    start = time.process_time()
    live = applied(applied(None, of(names)), of(names[::-1]), "two")
    found = applied(live, of(names[:10]))
    assert sorted(one["name"] for one in found["spec"]["containers"]) == sorted(names)
    assert time.process_time() - start < 10


BOAT = {
    "type": "object",
    "properties": {
        "spec": {
            "type": "object",
            "properties": {
                "crew": {
                    "type": "array",
                    "x-kubernetes-list-type": "map",
                    "x-kubernetes-list-map-keys": ["who"],
                    "items": {
                        "type": "object",
                        "properties": {"who": {"type": "string"}, "rank": {"type": "string"}},
                    },
                },
                "size": {"x-kubernetes-int-or-string": True},
            },
        }
    },
}


def boat(*crew: dict[str, str], **spec: Any) -> Document:
    return {"apiVersion": "e.com/v1", "kind": "Boat", "metadata": {"name": "ark"}, "spec": {"crew": [*crew], **spec}}


def sailed(live: Document | None, wanted: Document, manager: str) -> Document:
    return apply(
        live,
        wanted,
        manager,
        force=False,
        definition=None,
        schema=BOAT,
        api_version="e.com/v1",
        now="2026-01-01T00:00:00Z",
    )


def test_lists_of_a_custom_kind_are_joined_as_its_schema_says():
    one = sailed(None, boat({"who": "noah", "rank": "captain"}), "one")
    both = sailed(one, boat({"who": "ham"}, size="big"), "other")
    assert both["spec"]["crew"] == [{"who": "noah", "rank": "captain"}, {"who": "ham"}]
    fields = [entry["fieldsV1"]["f:spec"]["f:crew"] for entry in both["metadata"]["managedFields"]]
    assert fields == [
        {'k:{"who":"noah"}': {".": {}, "f:rank": {}, "f:who": {}}},
        {'k:{"who":"ham"}': {".": {}, "f:who": {}}},
    ]


def test_what_the_schema_of_a_custom_kind_does_not_have_is_refused():
    with pytest.raises(ApiError, match=r"\.spec\.sail: field not declared in schema"):
        sailed(None, boat(sail="white"), "one")


def test_schemas_are_remembered_up_to_a_number():
    for number in range(shapes.KEPT_SCHEMAS + 10):
        shapes.shape(shapes.root(None, {"type": "object", "properties": {f"f{number}": {"type": "string"}}}))
    assert shapes._described.cache_info().currsize == shapes.KEPT_SCHEMAS
