"""What is stored and cannot be read: it is no object, it can be deleted and written anew, and nobody loses
protection by it."""

from typing import Any

import pytest

from podyard.bus import Bus, Outgoing
from podyard.proto import subjects
from podyard.proto.facts import PodStatusFact
from podyard.proto.message import ObjectRef
from tests.contract.api.conftest import Api, StartApi, outcomes, pod, stored
from tests.support import objects
from tests.support import stored as messages
from tests.support.cluster import Cluster, bound

NESTED = b"[" * 968 + b"]" * 968
"""With the mapping that holds it what version 0.1.0 accepted at most."""

ENDLESS = {
    "nested": (b'"spec":', b'"more":' + NESTED + b',"spec":'),
    "number": (b'"metadata":{', b'"metadata":{"generation":%d,' % 10**30),
}
DISTURBANCES = pytest.mark.parametrize("what", [*ENDLESS, "junk"])


def broken(resource: str, document: dict[str, Any], what: str) -> Outgoing:
    """A version that cannot be read, as the api of 0.1.0 or nobody at all wrote it."""
    message = messages.version(resource, document)
    if what == "junk":
        return message.but(payload=b"\xff")
    before, after = ENDLESS[what]
    assert before in message.payload
    return message.but(payload=message.payload.replace(before, after, 1))


async def put(api: Api, message: Outgoing) -> None:
    there = await api.bus.get("CLUSTER", message.subject)
    ack = await api.bus.publish(message.but(expect=there.sequence if there is not None else 0))
    await api.reached(ack.sequence)


def ref(name: str, resource: str = "pods") -> ObjectRef:
    return ObjectRef(resource=resource, namespace="default", name=name)


BUDGET = {
    "metadata": {"name": "web", "namespace": "default", "uid": "pdb"},
    "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}},
}


@DISTURBANCES
async def test_it_is_deleted_as_any_object_is_also_where_it_had_a_place(api: Api, what: str) -> None:
    document = objects.pod("a", uid="u1")
    await put(api, messages.version("pods", document))
    await api.reached(await Cluster(api.bus).commit([bound("a", "n1", uid="u1")]))
    await put(api, broken("pods", document, what))
    reply = await api.delete(ref("a"))
    assert (outcomes(reply), reply.results[0].message) == (["deleted"], "it could not be read")
    assert (await stored(api.bus, "pods", "a")).deleted
    assert outcomes(await api.delete(ref("a"))) == ["notFound"]


@DISTURBANCES
async def test_it_is_written_anew_as_if_nothing_were_there(api: Api, what: str) -> None:
    await put(api, broken("pods", objects.pod("a", uid="u1"), what))
    reply = await api.apply(pod("a"))
    assert outcomes(reply) == ["created"]
    assert (await stored(api.bus, "pods", "a")).uid == reply.results[0].uid != "u1"


@DISTURBANCES
async def test_a_budget_that_cannot_be_read_protects_every_pod_of_its_namespace_until_it_is_deleted(
    api: Api, what: str
) -> None:
    cluster = Cluster(api.bus)
    await put(api, messages.version("pods", objects.pod("a", uid="u1")))
    await cluster.status(PodStatusFact(namespace="default", name="a", uid="u1", node="n1", phase="Running"))
    await api.reached(await cluster.commit([bound("a", "n1", uid="u1")]))
    await put(api, broken("poddisruptionbudgets", BUDGET, what))
    reply = await api.evict(ref("a"))
    assert outcomes(reply) == ["blocked"]
    assert (
        "the disruption budget web cannot be read, so it may protect any pod of its namespace"
        in reply.results[0].message
    )
    assert outcomes(await api.delete(ref("web", "pdb"))) == ["deleted"]
    assert outcomes(await api.evict(ref("a"))) == ["evicted"]


async def test_a_pod_whose_agent_cannot_be_understood_keeps_its_budget(api: Api) -> None:
    cluster = Cluster(api.bus)
    await put(api, messages.version("pods", objects.pod("a", uid="u1", labels={"app": "web"})))
    await api.reached(await cluster.commit([bound("a", "n1", uid="u1")]))
    await put(api, messages.version("poddisruptionbudgets", BUDGET))
    assert outcomes(await api.evict(ref("a"), dry_run=True)) == ["evicted"], "it has not run yet: it serves nobody"
    await put(api, Outgoing(subjects.pod_status("n1", "default", "a", "u1"), b"7"))
    assert outcomes(await api.evict(ref("a"))) == ["blocked"]


async def test_a_pod_of_whose_place_nothing_is_known_is_treated_as_one_that_runs(bus: Bus, start_api: StartApi) -> None:
    await bus.publish(messages.version("pods", objects.pod("a", uid="u1", labels={"app": "web"})).but(expect=0))
    await bus.publish(messages.version("poddisruptionbudgets", BUDGET).but(expect=0))
    await bus.publish(Outgoing(subjects.binding("default", "a", "u1"), b"7", expect=0))
    api = await start_api(bus)
    assert outcomes(await api.evict(ref("a"))) == ["blocked"]
    assert outcomes(await api.delete(ref("a"))) == ["deleted"]
    assert (await stored(api.bus, "pods", "a")).document()["metadata"]["deletionGracePeriodSeconds"] == 30
    await api.delete(ref("a"), grace_period_s=0)
    assert (await stored(api.bus, "pods", "a")).deleted
