"""Kinds of Kubernetes that nothing here has a type for, and custom ones with and without their definition."""

import pytest

from podyard.objects import api_types, kinds
from podyard.objects.acting import ACTS_ON
from podyard.proto.message import ObjectRef
from tests.contract.api.conftest import Api, outcomes, stored
from tests.support.objects import Document

NAMESPACE = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}}


def configmap(name: str = "settings", **data: str) -> Document:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


def custom_definition(scope: str = "Namespaced") -> Document:
    served = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": {"type": "object"}}}
    before = {**served, "name": "v1alpha1", "served": False, "storage": False}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.e.com"},
        "spec": {
            "group": "e.com",
            "scope": scope,
            "names": {"kind": "Widget", "plural": "widgets", "singular": "widget"},
            "versions": [before, served],
        },
    }


def widget(version: str = "v1", **metadata: str) -> Document:
    return {"apiVersion": f"e.com/{version}", "kind": "Widget", "metadata": {"name": "w", **metadata}, "spec": {"x": 1}}


def least(kind: kinds.Kind) -> Document:
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": {"name": "least"}}


@pytest.mark.asyncio
async def test_every_other_kind_of_kubernetes_is_created_read_again_and_deleted(api: Api):
    documents = [least(kind) for kind in kinds.stored()]
    assert {"Secret"} < {document["kind"] for document in documents}
    documents = [document for document in documents if document["kind"] != "Secret"]
    created = await api.apply(*documents)
    assert set(outcomes(created)) == {"created"}, created
    again = await api.apply(*documents)
    assert set(outcomes(again)) == {"unchanged"}
    assert [one.uid for one in again.results] == [one.uid for one in created.results]
    gone = await api.delete(
        *(ObjectRef(resource=one.resource, namespace=one.namespace, name=one.name) for one in created.results)
    )
    assert set(outcomes(gone)) == {"deleted"}


@pytest.mark.asyncio
async def test_what_nothing_acts_on_is_told_with_the_result(api: Api):
    reply = await api.apply(configmap(), NAMESPACE, widget())
    assert [one.warnings for one in reply.results] == [
        ("nothing here acts on ConfigMap",),
        (),
        ("nothing here acts on Widget unless a plugin of yours does",),
    ]
    rehearsed = await api.apply(configmap("other"), dry_run=True)
    assert rehearsed.results[0].warnings == ("nothing here acts on ConfigMap",)


def test_who_acts_is_declared_of_kinds_that_there_are():
    assert set(ACTS_ON) <= {kind.resource for kind in (*kinds.KINDS, *kinds.stored())}


@pytest.mark.asyncio
async def test_an_object_that_is_put_aside_is_read_before_it_is_changed(api: Api):
    created = (await api.apply(configmap(a="1"))).results[0]
    await api.reached(created.position)
    changed = await api.apply(configmap(a="1", b="2"))
    assert outcomes(changed) == ["configured"]
    assert changed.results[0].uid == created.uid
    found = (await stored(api.bus, "configmaps", "settings")).document()
    assert found["data"] == {"a": "1", "b": "2"}
    assert found["metadata"]["uid"] == created.uid
    await api.reached(changed.results[0].position)
    assert outcomes(await api.apply(configmap(a="1", b="2"))) == ["unchanged"]
    assert outcomes(await api.apply(configmap(a="9"), dry_run=True)) == ["configured"]


@pytest.mark.asyncio
async def test_names_of_roles_may_have_colons(api: Api):
    role = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRole",
        "metadata": {"name": "system:aggregated-metrics-reader"},
        "rules": [{"apiGroups": ["metrics.k8s.io"], "resources": ["pods"], "verbs": ["get"]}],
    }
    reply = await api.apply(role)
    assert outcomes(reply) == ["created"]
    refused = await api.apply({**role, "metadata": {"name": "a/b"}}, {**role, "metadata": {"name": ".."}})
    assert [one.errors[0].detail for one in refused.results] == [
        "Invalid value: \"a/b\": may not contain '/'",
        "Invalid value: \"..\": may not be '..'",
    ]
    name = reply.results[0].name
    assert outcomes(await api.delete(ObjectRef(resource="clusterrole", name=name))) == ["deleted"]


@pytest.mark.asyncio
async def test_a_kind_of_two_versions_lives_in_one_place_and_keeps_its_version(api: Api):
    def scaler(version: str) -> Document:
        target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}
        return {
            "apiVersion": f"autoscaling/{version}",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "web"},
            "spec": {"scaleTargetRef": target, "maxReplicas": 3},
        }

    assert outcomes(await api.apply(scaler("v1"))) == ["created"]
    assert (await stored(api.bus, "horizontalpodautoscalers", "web")).document()["apiVersion"] == "autoscaling/v1"
    assert outcomes(await api.apply(scaler("v2"))) == ["configured"]


@pytest.mark.asyncio
@pytest.mark.parametrize(
    ("api_version", "kind", "says"),
    [
        ("extensions/v1beta1", "Ingress", "use kind Ingress with apiVersion networking.k8s.io/v1"),
        ("autoscaling/v2beta2", "HorizontalPodAutoscaler", "use apiVersion autoscaling/v2"),
        ("batch/v1beta1", "CronJob", "use apiVersion batch/v1"),
        ("policy/v1beta1", "PodSecurityPolicy", "the group policy is Kubernetes' own, and Kubernetes 1.36 has PodDisr"),
        ("v1", "Event", "see podyard get events"),
        ("authentication.k8s.io/v1", "TokenReview", "a question to an API server"),
    ],
)
async def test_what_is_not_served_is_refused_with_what_is(api: Api, api_version: str, kind: str, says: str):
    reply = await api.apply({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}})
    assert outcomes(reply) == ["refused"]
    assert says in reply.results[0].message


@pytest.mark.asyncio
async def test_a_definition_says_the_scope_and_the_versions_of_its_objects(api: Api):
    reply = await api.apply(custom_definition(), widget())
    assert outcomes(reply) == ["created", "created"]
    assert reply.results[1].namespace == "default", "namespaced by its definition, in the same request"
    await api.reached(reply.results[1].position)
    refused = await api.apply(widget("v1alpha1"))
    assert "widgets.e.com serves e.com/v1" in refused.results[0].message
    gone = await api.delete(ObjectRef(resource="widgets.v1.e.com", name="w"))
    assert outcomes(gone) == ["deleted"]


@pytest.mark.asyncio
async def test_an_object_of_a_cluster_wide_definition_has_no_namespace(api: Api):
    reply = await api.apply(custom_definition("Cluster"), widget(namespace="default"))
    assert reply.results[1].namespace == ""
    found = (await stored(api.bus, "widgets.v1.e.com", "w", "")).document()
    assert "namespace" not in found["metadata"]


@pytest.mark.asyncio
async def test_a_definition_of_a_mebibyte_is_stored_whole(api: Api):
    definition = custom_definition()
    text = {"type": "string", "description": "x" * 1000}
    whole = {"openAPIV3Schema": {"type": "object", "properties": {f"f{n}": text for n in range(1000)}}}
    definition["spec"]["versions"][1]["schema"] = whole
    reply = await api.apply(definition)
    assert outcomes(reply) == ["created"], reply
    found = (await stored(api.bus, "customresourcedefinitions", "widgets.e.com", "")).document()
    assert found["spec"] == definition["spec"]


def test_all_kinds_of_the_table_are_stored_or_known_not_to_be():
    unstored = {kind.kind for kind in api_types.table().kinds} - {kind.kind for kind in (*kinds.KINDS, *kinds.stored())}
    assert unstored == {
        "Binding",
        "ComponentStatus",
        "Event",
        "LocalSubjectAccessReview",
        "SelfSubjectAccessReview",
        "SelfSubjectReview",
        "SelfSubjectRulesReview",
        "SubjectAccessReview",
        "TokenReview",
    }


@pytest.mark.asyncio
async def test_a_custom_object_of_any_served_version_lies_where_its_kind_is_stored(api: Api):
    definition = custom_definition()
    storing, other = definition["spec"]["versions"][1], {"name": "v2", "served": True, "storage": False}
    assert (storing["name"], storing["storage"]) == ("v1", True)
    definition["spec"]["versions"].append(other)
    reply = await api.apply(definition, widget("v2"))
    assert [one.resource for one in reply.results] == ["customresourcedefinitions", "widgets.v1.e.com"]
    await api.reached(reply.results[1].position)
    assert outcomes(await api.apply(widget("v1"))) == ["unchanged"]
    found = (await stored(api.bus, "widgets.v1.e.com", "w")).document()
    assert found["apiVersion"] == "e.com/v1"
    gone = await api.delete(ObjectRef(resource="widgets.v2.e.com", name="w"))
    assert (outcomes(gone), gone.results[0].resource) == (["deleted"], "widgets.v1.e.com")
