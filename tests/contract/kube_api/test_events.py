"""Events over the Kubernetes API: those that services send, those that are told from what is stored, those
that clients write."""

import json
import time
from typing import Any

import pytest

from podyard.bus import Outgoing
from podyard.objects import times
from podyard.proto import codec, subjects
from podyard.proto.message import ObjectRef
from podyard.proto.operations import K8sEvent, Reason
from tests.contract.kube_api.conftest import Clients
from tests.support.waiting import eventually

Document = dict[str, Any]
CORE = "/api/v1/namespaces/default/events"
NEW = "/apis/events.k8s.io/v1/namespaces/default/events"
MERGE = {"Content-Type": "application/merge-patch+json"}
STRATEGIC = {"Content-Type": "application/strategic-merge-patch+json"}


def sent(name: str = "web", **more: Any) -> K8sEvent:
    about = ObjectRef(resource="pods", namespace="default", name=name, uid="u")
    fields = {"reason": Reason("Evicted"), "message": "it had to go", "id": "1a", "reporter": "node_agent", **more}
    return K8sEvent(regarding=about, at=fields.pop("at", time.time()), controller="kubelet", **fields)


async def send(clients: Clients, event: K8sEvent) -> None:
    about = event.regarding
    subject = subjects.k8s_event(about.namespace, about.resource, about.name, event.id)
    await clients.bus.publish(Outgoing(subject, codec.encode(event)))


async def listed(clients: Clients, path: str = CORE, **query: str) -> list[Document]:
    answer = await clients.ask("GET", path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()["items"]


async def names(clients: Clients, **query: str) -> set[str]:
    return {one["metadata"]["name"] for one in await listed(clients, **query)}


async def there(clients: Clients, count: int) -> list[Document]:
    """As many events, as soon as they are."""
    found: list[Document] = []

    async def look() -> bool:
        found[:] = await listed(clients)
        return len(found) == count

    await eventually(f"{count} events", look)
    return found


def recorded(name: str = "web.17a", **more: Any) -> Document:
    """As client-go's recorder makes one."""
    now = times.rfc3339(time.time())
    return {
        "kind": "Event",
        "apiVersion": "v1",
        "metadata": {"name": name, "namespace": "default"},
        "involvedObject": {"kind": "Pod", "namespace": "default", "name": "web", "uid": "u", "apiVersion": "v1"},
        "reason": "Pulled",
        "message": "Container image is there",
        "source": {"component": "somebody", "host": "n1"},
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
        "type": "Normal",
        "eventTime": None,
        "reportingComponent": "somebody",
        "reportingInstance": "n1",
        **more,
    }


async def test_what_a_service_sends_is_shown_in_both_groups(clients: Clients) -> None:
    await send(clients, sent(count=3))
    (event,) = await there(clients, 1)
    assert (event["metadata"]["name"], event["reason"], event["message"]) == ("web.1a", "Evicted", "it had to go")
    assert event["involvedObject"] == {
        "kind": "Pod",
        "apiVersion": "v1",
        "namespace": "default",
        "name": "web",
        "uid": "u",
    }
    assert (event["count"], event["source"], event["reportingComponent"]) == (3, {"component": "kubelet"}, "kubelet")
    same = (await clients.ask("GET", f"{NEW}/web.1a")).json()
    assert (same["kind"], same["apiVersion"]) == ("Event", "events.k8s.io/v1")
    assert (same["note"], same["regarding"]["name"], same["deprecatedCount"]) == ("it had to go", "web", 3)
    assert (same["reportingController"], same["deprecatedSource"]) == ("kubelet", {"component": "kubelet"})
    assert same["metadata"] == event["metadata"]
    assert not {"message", "involvedObject"} & same.keys()


async def test_what_is_stored_tells_events(clients: Clients) -> None:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "o", "controller": True}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "web", "ownerReferences": [owner]},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await clients.create("/api/v1/namespaces/default/pods", pod)
    (event,) = await there(clients, 1)
    assert (event["reason"], event["message"]) == ("SuccessfulCreate", "Created pod: web")
    assert (event["involvedObject"]["kind"], event["involvedObject"]["name"]) == ("ReplicaSet", "rs")
    about = {"involvedObject.kind": "ReplicaSet", "involvedObject.name": "rs", "involvedObject.uid": "o"}
    selector = ",".join(f"{key}={value}" for key, value in about.items())
    assert await names(clients, fieldSelector=selector) == {event["metadata"]["name"]}
    assert await names(clients, fieldSelector="involvedObject.kind=Pod") == set()


async def test_events_are_selected_by_the_fields_of_each_group(clients: Clients) -> None:
    await send(clients, sent("web", id="1"))
    await send(clients, sent("db", id="2", type="Warning"))
    await there(clients, 2)
    assert await names(clients, fieldSelector="type=Warning,source=kubelet") == {"db.2"}
    assert await names(clients, fieldSelector="reason!=Evicted") == set()
    found = await listed(clients, NEW, fieldSelector="regarding.name=web,reportingController=kubelet")
    assert [one["metadata"]["name"] for one in found] == ["web.1"]
    refused = await clients.ask("GET", NEW, params={"fieldSelector": "involvedObject.name=web"})
    assert (refused.status_code, refused.json()["message"]) == (400, "field label not supported: involvedObject.name")


async def test_a_table_has_the_columns_of_kubectl(clients: Clients) -> None:
    await send(clients, sent(at=time.time() - 61))
    await there(clients, 1)
    for path in (CORE, NEW):
        table = (
            await clients.ask("GET", path, headers={"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"})
        ).json()
        assert [one["name"] for one in table["columnDefinitions"] if not one["priority"]] == [
            "Last Seen",
            "Type",
            "Reason",
            "Object",
            "Message",
        ]
        cells = table["rows"][0]["cells"]
        assert cells[1:5] == ["Normal", "Evicted", "pod/web", ""]
        assert cells[0] in ("61s", "62s", "63s")


async def test_a_recorder_creates_and_patches_a_series(clients: Clients) -> None:
    made = await clients.create(CORE, recorded())
    assert {"uid", "creationTimestamp"} <= made["metadata"].keys()
    patch = {"count": 2, "lastTimestamp": times.rfc3339(time.time() + 5), "message": "Container image is there"}
    patched = await clients.ask("PATCH", f"{CORE}/web.17a", headers=STRATEGIC, content=json.dumps(patch))
    assert (patched.status_code, patched.json()["count"]) == (200, 2)
    assert int(patched.json()["metadata"]["resourceVersion"]) > int(made["metadata"]["resourceVersion"])
    assert patched.json()["metadata"]["uid"] == made["metadata"]["uid"]
    (manager,) = patched.json()["metadata"]["managedFields"]
    assert manager["operation"] == "Update"
    again = await clients.ask("POST", CORE, json=recorded())
    assert (again.status_code, again.json()["message"]) == (409, 'events "web.17a" already exists')
    missing = await clients.ask("PATCH", f"{CORE}/web.gone", headers=STRATEGIC, content=b"{}")
    assert missing.status_code == 404


async def test_a_scheduler_writes_the_other_group(clients: Clients) -> None:
    event = {
        "kind": "Event",
        "apiVersion": "events.k8s.io/v1",
        "metadata": {"name": "web.18", "namespace": "default"},
        "eventTime": times.rfc3339_micro(time.time()),
        "reportingController": "other-scheduler",
        "reportingInstance": "other-scheduler-host",
        "action": "Binding",
        "reason": "Scheduled",
        "regarding": {"kind": "Pod", "namespace": "default", "name": "web", "apiVersion": "v1"},
        "note": "Successfully assigned default/web to n1",
        "type": "Normal",
    }
    made = await clients.create(NEW, event)
    assert {key: made[key] for key in event if key != "metadata"} == {
        key: value for key, value in event.items() if key != "metadata"
    }
    series = {"series": {"count": 2, "lastObservedTime": times.rfc3339_micro(time.time())}}
    patched = await clients.ask("PATCH", f"{NEW}/web.18", headers=STRATEGIC, content=json.dumps(series))
    assert (patched.status_code, patched.json()["series"]["count"]) == (200, 2)
    same = (await clients.ask("GET", f"{CORE}/web.18")).json()
    assert (same["message"], same["reportingComponent"]) == (event["note"], "other-scheduler")
    assert (same["series"]["count"], same["source"], same["firstTimestamp"]) == (2, {}, None)
    fixed = await clients.ask("PATCH", f"{NEW}/web.18", headers=MERGE, content=b'{"note":"other"}')
    assert (fixed.status_code, fixed.json()["details"]["causes"][0]["message"]) == (
        422,
        'Invalid value: "other": field is immutable',
    )


async def test_a_client_writes_what_a_service_sent_and_deletes_it(clients: Clients) -> None:
    await send(clients, sent())
    await there(clients, 1)
    label = b'{"metadata":{"labels":{"a":"b"}}}'
    assert (await clients.ask("PATCH", f"{CORE}/web.1a", headers=MERGE, content=label)).status_code == 200
    assert await names(clients, labelSelector="a=b") == {"web.1a"}
    stale = {"metadata": {"name": "web.1a", "namespace": "default", "resourceVersion": "1"}}
    event = (await clients.ask("GET", f"{CORE}/web.1a")).json()
    old = await clients.ask("PUT", f"{CORE}/web.1a", json={**event, **stale})
    assert (old.status_code, old.json()["reason"]) == (409, "Conflict")
    gone = await clients.ask("DELETE", f"{CORE}/web.1a")
    assert (gone.status_code, gone.json()["status"]) == (200, "Success")
    assert await names(clients) == set()
    assert (await clients.ask("DELETE", f"{CORE}/web.1a")).status_code == 404
    made = await clients.create(CORE, recorded("web.1a"))
    assert made["reason"] == "Pulled"


async def test_events_are_deleted_by_their_fields(clients: Clients) -> None:
    for name, kind in (("a", "Normal"), ("b", "Warning"), ("c", "Warning")):
        await send(clients, sent(name, type=kind))
    await there(clients, 3)
    assert (await clients.ask("DELETE", CORE, params={"fieldSelector": "type=Warning"})).status_code == 200
    assert await names(clients) == {"a.1a"}


async def test_a_watch_goes_on_from_a_list(clients: Clients) -> None:
    await send(clients, sent("a"))
    await there(clients, 1)
    version = (await clients.ask("GET", CORE)).json()["metadata"]["resourceVersion"]
    await send(clients, sent("b"))
    told: list[tuple[str, str, int]] = []
    query = f"watch=true&resourceVersion={version}&timeoutSeconds=10"
    async with clients.client() as client, client.stream("GET", f"{CORE}?{query}") as answer:
        assert answer.status_code == 200
        async for line in answer.aiter_lines():
            event = json.loads(line)
            told.append((event["type"], event["object"]["metadata"]["name"], event["object"].get("count", 0)))
            match len(told):
                case 1:
                    await send(clients, sent("b", count=2))
                case 2:
                    await clients.ask("DELETE", f"{CORE}/a.1a")
                case _:
                    break
    assert told == [("ADDED", "b.1a", 1), ("MODIFIED", "b.1a", 2), ("DELETED", "a.1a", 1)]


@pytest.mark.parametrize("version", ["7", str(10**18)])
async def test_a_version_that_this_instance_did_not_give_out_is_expired(clients: Clients, version: str) -> None:
    answer = await clients.ask("GET", CORE, params={"resourceVersion": version, "resourceVersionMatch": "Exact"})
    assert (answer.status_code, answer.json()["reason"]) == (410, "Expired")
    watched = await clients.ask("GET", CORE, params={"watch": "true", "resourceVersion": version})
    event = json.loads(watched.text)
    assert (event["type"], event["object"]["code"]) == ("ERROR", 410)


@pytest.mark.parametrize(
    ("path", "event", "code", "told"),
    [
        (CORE, recorded(involvedObject={"kind": "Pod", "namespace": "other", "name": "x"}), 422, "does not match"),
        (CORE, recorded(eventTime="2026-01-01T00:00:00.000000Z", reportingComponent=""), 422, "reportingComponent"),
        (NEW, {"metadata": {"name": "x"}, "regarding": {"namespace": "default"}}, 422, "eventTime: Required value"),
        (CORE, recorded("A%"), 422, "metadata.name"),
        (CORE, recorded(message="x" * 70_000), 413, "limit is 65536"),
        (CORE, recorded(count="many"), 400, "Event.count of type int32"),
        (
            "/api/v1/namespaces/nowhere/events",
            {"metadata": {"name": "x"}, "involvedObject": {"namespace": "nowhere"}},
            404,
            'namespaces "nowhere" not found',
        ),
    ],
    ids=lambda value: None,
)
async def test_what_is_no_event_is_refused(clients: Clients, path: str, event: Document, code: int, told: str) -> None:
    metadata = {**event["metadata"]}
    metadata.pop("namespace", None)
    answer = await clients.ask("POST", path, json={**event, "metadata": metadata})
    assert (answer.status_code, told in answer.json()["message"]) == (code, True), answer.text


async def test_what_says_no_event_becomes_a_dead_letter(clients: Clients) -> None:
    subject = subjects.k8s_event("default", "pods", "web", "x")
    await clients.bus.publish(Outgoing(subject, codec.encode(sent(id="x", at=1e300))))
    await send(clients, sent(id="y"))
    (event,) = await there(clients, 1)
    assert event["metadata"]["name"] == "web.y"

    async def dead() -> bool:
        return await clients.bus.get("DEAD", subjects.dead(clients.bus.settings.service_name)) is not None

    await eventually("a dead letter", dead)
