"""DELETE over the Kubernetes API: finalizers, dependents, namespaces, and what is answered."""

from typing import Any

import pytest

from tests.contract.kube_api.conftest import Clients

Document = dict[str, Any]
NAMESPACE = "/api/v1/namespaces/default"
MAPS = f"{NAMESPACE}/configmaps"
MERGE = {"Content-Type": "application/merge-patch+json"}


def config(name: str, *finalizers: str, **metadata: Any) -> Document:
    about = {"name": name, **({"finalizers": list(finalizers)} if finalizers else {}), **metadata}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": about}


def job(name: str = "sum") -> Document:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name}, "spec": {"template": template}}


def namespace(name: str = "shop") -> Document:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


async def test_what_is_gone_is_answered_with_a_status(clients: Clients) -> None:
    made = await clients.create(MAPS, config("a"))
    answer = await clients.ask("DELETE", f"{MAPS}/a")
    assert (answer.status_code, answer.json()) == (
        200,
        {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Success",
            "details": {"name": "a", "kind": "configmaps", "uid": made["metadata"]["uid"]},
        },
    )


async def test_some_kinds_are_answered_with_what_is_gone(clients: Clients) -> None:
    await clients.create(f"{NAMESPACE}/serviceaccounts", {"metadata": {"name": "a"}})
    answer = await clients.ask("DELETE", f"{NAMESPACE}/serviceaccounts/a")
    assert answer.json()["kind"] == "ServiceAccount"
    assert (await clients.ask("GET", f"{NAMESPACE}/serviceaccounts/a")).status_code == 404


async def test_finalizers_keep_an_object_until_the_last_is_taken_away(clients: Clients) -> None:
    await clients.create(MAPS, config("a", "a/one", "a/two"))
    kept = (await clients.ask("DELETE", f"{MAPS}/a")).json()
    assert (kept["kind"], kept["metadata"]["deletionGracePeriodSeconds"]) == ("ConfigMap", 0)
    again = (await clients.ask("DELETE", f"{MAPS}/a")).json()
    assert again == kept, "a second deletion changes nothing"

    changed = await clients.ask("PATCH", f"{MAPS}/a", headers=MERGE, json={"data": {"x": "y"}})
    assert changed.json()["data"] == {"x": "y"}
    left = await clients.ask("PATCH", f"{MAPS}/a", headers=MERGE, json={"metadata": {"finalizers": ["a/two"]}})
    assert left.json()["metadata"]["finalizers"] == ["a/two"]
    last = await clients.ask("PATCH", f"{MAPS}/a", headers=MERGE, json={"metadata": {"finalizers": None}})
    assert (last.status_code, last.json()["metadata"]["name"]) == (200, "a")
    assert (await clients.ask("GET", f"{MAPS}/a")).status_code == 404


async def test_a_deleted_object_gets_no_new_finalizer(clients: Clients) -> None:
    await clients.create(MAPS, config("a", "a/one"))
    await clients.ask("DELETE", f"{MAPS}/a")
    patch = {"metadata": {"finalizers": ["a/one", "a/two"]}}
    refused = await clients.ask("PATCH", f"{MAPS}/a", headers=MERGE, json=patch)
    why = (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"a/two"}'
    )
    assert (refused.status_code, refused.json()["message"]) == (422, f'ConfigMap "a" is invalid: {why}')


async def test_no_other_takes_the_place_of_a_deleted_object(clients: Clients) -> None:
    await clients.create(MAPS, config("a", "a/one"))
    await clients.ask("DELETE", f"{MAPS}/a")
    refused = await clients.ask("POST", MAPS, json=config("a"))
    assert refused.status_code == 409
    assert refused.json()["message"] == 'object is being deleted: configmaps "a" already exists'


@pytest.mark.parametrize(
    ("finalizers", "message"),
    [
        (
            ["plain"],
            (
                'metadata.finalizers[0]: Invalid value: "plain": name is neither a standard finalizer name nor is it '
                "fully qualified"
            ),
        ),
        (
            ["orphan", "foregroundDeletion"],
            (
                'metadata.finalizers: Invalid value: ["orphan","foregroundDeletion"]: finalizer orphan and '
                "foregroundDeletion cannot be both set"
            ),
        ),
    ],
)
async def test_finalizers_have_names(clients: Clients, finalizers: list[str], message: str) -> None:
    refused = await clients.ask("POST", MAPS, json=config("a", *finalizers))
    assert (refused.status_code, refused.json()["message"]) == (422, f'ConfigMap "a" is invalid: {message}')


@pytest.mark.parametrize(
    ("options", "finalizers", "code"),
    [
        ({"propagationPolicy": "Foreground"}, ["foregroundDeletion"], 200),
        ({"propagationPolicy": "Orphan"}, ["orphan"], 200),
        ({"orphanDependents": True}, ["orphan"], 200),
    ],
    ids=str,
)
async def test_a_policy_is_a_finalizer(clients: Clients, options: Document, finalizers: list[str], code: int) -> None:
    await clients.create(MAPS, config("a"))
    answer = await clients.ask("DELETE", f"{MAPS}/a", json=options)
    assert (answer.status_code, answer.json()["metadata"]["finalizers"]) == (code, finalizers)


async def test_a_policy_may_stand_in_the_query(clients: Clients) -> None:
    await clients.create(MAPS, config("a"))
    answer = await clients.ask("DELETE", f"{MAPS}/a?propagationPolicy=Foreground")
    assert answer.json()["metadata"]["finalizers"] == ["foregroundDeletion"]


async def test_another_policy_takes_the_place_of_the_first(clients: Clients) -> None:
    await clients.create(MAPS, config("a"))
    await clients.ask("DELETE", f"{MAPS}/a", json={"propagationPolicy": "Foreground"})
    answer = await clients.ask("DELETE", f"{MAPS}/a", json={"propagationPolicy": "Background"})
    assert answer.json()["kind"] == "Status"
    assert (await clients.ask("GET", f"{MAPS}/a")).status_code == 404


async def test_who_asks_not_to_orphan_is_told_that_it_is_not_done_yet(clients: Clients) -> None:
    await clients.create(MAPS, config("a", "a/one"))
    answer = await clients.ask("DELETE", f"{MAPS}/a", json={"orphanDependents": False})
    assert answer.status_code == 202


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"propagationPolicy": "Orphan", "orphanDependents": True},
            'Invalid value: "Orphan": orphanDependents and deletionPropagation cannot be both set',
        ),
        (
            {"propagationPolicy": "Sideways"},
            'Unsupported value: "Sideways": supported values: "Foreground", "Background", "Orphan", "nil"',
        ),
    ],
)
async def test_policies_that_are_none_are_refused(clients: Clients, options: Document, message: str) -> None:
    await clients.create(MAPS, config("a"))
    refused = await clients.ask("DELETE", f"{MAPS}/a", json=options)
    told = f'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: {message}'
    assert (refused.status_code, refused.json()["message"]) == (422, told)


@pytest.mark.parametrize("how", ["body", "query"])
async def test_a_dry_run_deletes_nothing_and_shows_what_would_stay(clients: Clients, how: str) -> None:
    await clients.create(MAPS, config("a", "a/one"))
    more: Document = {"json": {"dryRun": ["All"]}} if how == "body" else {"params": {"dryRun": "All"}}
    shown = (await clients.ask("DELETE", f"{MAPS}/a", **more)).json()
    assert shown["metadata"]["deletionGracePeriodSeconds"] == 0
    found = (await clients.ask("GET", f"{MAPS}/a")).json()
    assert "deletionTimestamp" not in found["metadata"]


async def test_pods_of_a_job_stay_unless_something_is_said(clients: Clients) -> None:
    jobs = "/apis/batch/v1/namespaces/default/jobs"
    await clients.create(jobs, job())
    answer = await clients.ask("DELETE", f"{jobs}/sum")
    assert answer.json()["metadata"]["finalizers"] == ["orphan"]
    assert answer.headers["warning"].startswith('299 - "child pods are preserved by default when jobs are deleted; ')
    answer = await clients.ask("DELETE", f"{jobs}/sum", json={"propagationPolicy": "Background"})
    assert (answer.json()["kind"], answer.headers.get("warning")) == ("Status", None)


# ---- namespaces


async def test_a_namespace_terminates_until_it_is_finalized(clients: Clients) -> None:
    made = await clients.create("/api/v1/namespaces", namespace())
    assert made["spec"] == {"finalizers": ["kubernetes"]}
    going = (await clients.ask("DELETE", "/api/v1/namespaces/shop")).json()
    assert (going["status"]["phase"], "deletionTimestamp" in going["metadata"]) == ("Terminating", True)
    again = await clients.ask("DELETE", "/api/v1/namespaces/shop")
    assert (again.status_code, again.json()["status"]["phase"]) == (200, "Terminating")

    refused = await clients.ask("POST", "/api/v1/namespaces/shop/configmaps", json=config("a"))
    assert refused.status_code == 403
    why = "unable to create new content in namespace shop because it is being terminated"
    assert refused.json()["message"] == f'configmaps "a" is forbidden: {why}'
    assert refused.json()["details"]["causes"] == [
        {
            "reason": "NamespaceTerminating",
            "message": "namespace shop is being terminated",
            "field": "metadata.namespace",
        }
    ]

    going["spec"] = {}
    done = await clients.ask("PUT", "/api/v1/namespaces/shop/finalize", json=going)
    assert (done.status_code, done.json()["kind"]) == (200, "Namespace")
    assert (await clients.ask("GET", "/api/v1/namespaces/shop")).status_code == 404


async def test_finalizers_of_a_namespaces_spec_are_changed_there_alone(clients: Clients) -> None:
    made = await clients.create("/api/v1/namespaces", namespace())
    made["spec"] = {}
    put = await clients.ask("PUT", "/api/v1/namespaces/shop", json=made)
    assert put.json()["spec"] == {"finalizers": ["kubernetes"]}
    made = put.json() | {"spec": {"finalizers": ["kubernetes", "a/b"]}}
    done = await clients.ask("PUT", "/api/v1/namespaces/shop/finalize", json=made)
    assert done.json()["spec"] == {"finalizers": ["kubernetes", "a/b"]}


@pytest.mark.parametrize("name", ["default", "kube-system", "kube-public"])
async def test_some_namespaces_are_not_deleted(clients: Clients, name: str) -> None:
    await clients.ask("POST", "/api/v1/namespaces", json=namespace(name))
    refused = await clients.ask("DELETE", f"/api/v1/namespaces/{name}")
    told = f'namespaces "{name}" is forbidden: this namespace may not be deleted'
    assert (refused.status_code, refused.json()["message"]) == (403, told)
