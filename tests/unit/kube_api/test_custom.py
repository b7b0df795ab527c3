"""What CustomResourceDefinitions add to what is served."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.kube_api.core.catalogue import Catalogue
from podyard.kube_api.core.served import Group, Served
from podyard.objects import documents
from podyard.objects.documents import Document
from tests.unit.kube_api.definitions import COLUMN, SCALE, SCHEMA, definition, version

BUILT_IN = len(Catalogue.of([]))


def custom(*definitions: Document) -> list[Served]:
    return [one for one in Catalogue.of(definitions) if one.custom]


def left_out(*definitions: Document) -> list[tuple[str, str]]:
    return [(one.definition, one.why) for one in Catalogue.of(definitions).left_out]


def test_a_definition_is_served() -> None:
    (one,) = custom(definition(names={"shortNames": ["gtw"], "categories": ["all"]}))
    assert (one.group, one.version, one.resource, one.singular) == ("example.com", "v1", "gateways", "gateway")
    assert (one.kind, one.list_kind, one.namespaced) == ("Gateway", "GatewayList", True)
    assert (one.short_names, one.categories, one.schema) == (("gtw",), ("all",), SCHEMA)
    assert one.verbs == ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
    assert one.definition is None


def test_it_is_stored_under_the_plural_that_podyard_guesses() -> None:
    (one,) = custom(definition())
    assert one.stored is not None
    assert (one.stored.resource, one.stored.kind) == ("gatewaies.v1.example.com", "Gateway")


def test_names_that_it_gives_itself() -> None:
    (one,) = custom(definition(names={"singular": "gate", "listKind": "Gates"}, scope="Cluster"))
    assert (one.singular, one.list_kind, one.namespaced) == ("gate", "Gates", False)


def test_subresources_and_columns() -> None:
    parts = {"status": {}, "scale": SCALE}
    of_version = version("v1", storage=True, subresources=parts, additionalPrinterColumns=[COLUMN])
    (one,) = custom(definition(versions=[of_version]))
    assert [(part.name, part.kind, part.group, part.version) for part in one.subresources] == [
        ("status", "Gateway", "example.com", "v1"),
        ("scale", "Scale", "autoscaling", "v1"),
    ]
    assert (one.columns, one.scale) == ((COLUMN,), SCALE)


def test_all_versions_show_what_one_stores() -> None:
    """Conversion changes the apiVersion alone unless a webhook converts."""
    versions = [version("v1beta1"), version("v1", storage=True), version("v2", served=False)]
    catalogue = Catalogue.of([definition(versions=versions)])
    assert catalogue.groups()[-2] == Group("example.com", ("v1", "v1beta1"))
    stored = [one.stored for one in catalogue if one.custom]
    assert [kind.api_version for kind in stored if kind is not None] == ["example.com/v1"] * 2


def test_a_version_that_a_webhook_would_convert_is_left_out() -> None:
    versions = [version("v1beta1"), version("v1", storage=True)]
    one = definition(versions=versions, conversion={"strategy": "Webhook"})
    assert [served.version for served in custom(one)] == ["v1"]
    why = "version v1beta1 is not served: webhooks that convert are not called, v1 is what is stored"
    assert left_out(one) == [("gateways.example.com", why)]


def test_a_version_that_is_none_is_left_out() -> None:
    one = definition(versions=[version("one"), version("v1", storage=True)])
    assert [served.version for served in custom(one)] == ["v1"]
    why = 'version "one" is not served: apiVersion: "example.com/one" is no <group>/<version>, such as example.com/v1'
    assert left_out(one) == [("gateways.example.com", why)]


def test_groups_of_definitions_stand_between_kubernetes_own_and_metrics() -> None:
    catalogue = Catalogue.of([definition(), definition(group="a.org")])
    names = [group.name for group in catalogue.groups()]
    assert names[-4:] == ["storagemigration.k8s.io", "a.org", "example.com", "metrics.k8s.io"]


def test_to_one_that_is_being_deleted_nothing_is_added() -> None:
    leaving = definition()
    leaving["metadata"]["deletionTimestamp"] = "2026-01-02T00:00:00Z"
    assert [one.verbs for one in custom(leaving)] == [("delete", "deletecollection", "get", "list", "watch")]


@pytest.mark.parametrize(
    ("younger", "name"),
    [
        pytest.param(definition("Gate", "gates", names={"shortNames": ["gateway"]}), "gateway", id="short name"),
        pytest.param(definition("Gateway", "gates"), "gateway", id="kind"),
        pytest.param(definition("GatewayList", "gates"), "kind gatewaylist", id="kind of a list"),
        pytest.param(definition("Gatewaie", "gates"), "kind gatewaies", id="would be stored with the other"),
    ],
)
def test_of_two_that_want_a_name_the_older_has_it(younger: Document, name: str) -> None:
    younger["metadata"]["creationTimestamp"] = "2026-01-01T00:00:01Z"
    catalogue = Catalogue.of([younger, definition()])
    assert [one.kind for one in catalogue if one.custom] == ["Gateway"]
    assert [one.resource for one in catalogue if one.custom] == ["gateways"]
    why = f'"{name}" is already in use by gateways.example.com, which is older'
    assert [(one.definition, one.why) for one in catalogue.left_out] == [("gates.example.com", why)]


def test_the_same_names_in_another_group_are_others() -> None:
    assert len(custom(definition(), definition(group="example.org"))) == 2


@pytest.mark.parametrize(
    ("faulty", "why"),
    [
        pytest.param(
            definition(group="apps"),
            'the group "apps" is Kubernetes\' own: choose a group with a domain of yours',
            id="group",
        ),
        pytest.param(
            definition(group="metrics.k8s.io"),
            'the group "metrics.k8s.io" is Kubernetes\' own: choose a group with a domain of yours',
            id="group of metrics",
        ),
        pytest.param(
            definition(plural="Gateways"),
            'spec.names.plural "Gateways" is no name: lower case letters, digits and dashes',
            id="plural",
        ),
        pytest.param(
            definition(name="gateways"),
            'its name must be spec.names.plural+"."+spec.group: gateways.example.com',
            id="name",
        ),
        pytest.param(definition(scope="World"), 'spec.scope "World" is none: say Namespaced or Cluster', id="scope"),
        pytest.param(
            definition(versions=[version("v1")]),
            "no version of it stores: set storage of one of spec.versions",
            id="storage",
        ),
        pytest.param(
            definition(kind="Gate-way"),
            'kind: "Gate-way" is no kind: a kind has letters and digits only, and starts with a letter',
            id="kind",
        ),
        pytest.param(
            definition(versions=[version("one", storage=True)]),
            'apiVersion: "example.com/one" is no <group>/<version>, such as example.com/v1',
            id="version",
        ),
    ],
)
def test_what_cannot_be_served_is_told(faulty: Document, why: str) -> None:
    assert custom(faulty) == []
    assert [told for _, told in left_out(faulty)] == [why]


JUNK: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(0, 9)
    | st.text(max_size=4)
    | st.sampled_from(["v1", "Gateway", "gateways"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
VERSION: dict[str, st.SearchStrategy[Any]] = {
    "name": st.sampled_from(["v1", "v2"]) | JUNK,
    "served": st.just(True) | JUNK,
    "storage": st.just(True) | JUNK,
    "subresources": JUNK,
    "schema": JUNK,
}
SPEC: dict[str, st.SearchStrategy[Any]] = {
    "group": st.just("example.com") | JUNK,
    "scope": st.just("Cluster") | JUNK,
    "names": st.just({"kind": "Gateway", "plural": "gateways"}) | JUNK,
    "conversion": JUNK,
    "versions": st.lists(st.fixed_dictionaries({}, optional=VERSION), max_size=3) | JUNK,
}


@given(st.fixed_dictionaries({}, optional=SPEC), st.just({"name": "gateways.example.com"}) | JUNK)
def test_whatever_is_stored_is_served_or_left_out_with_a_reason(spec: Document, metadata: Any) -> None:
    catalogue = Catalogue.of([{"metadata": metadata, "spec": spec}])
    served = [one for one in documents.mappings(spec, "versions") if one.get("served") is True]
    assert len(catalogue) > BUILT_IN or catalogue.left_out or not served
    assert all(one.why for one in catalogue.left_out)
