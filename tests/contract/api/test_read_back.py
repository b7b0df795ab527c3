"""What was read here and is applied again unchanged, with all that readers show: `podyard get -o yaml`."""

from typing import Any

from podyard.bus import Bus, Outgoing
from podyard.cli import stored_objects
from podyard.cluster.keys import ObjectKey
from podyard.proto import codec, subjects
from podyard.proto.decisions import AttemptRecord
from podyard.proto.facts import Condition, NodeStatusFact, PodStatusFact, QuotaUsageFact, TaintFact
from podyard.telling.pod_conditions import Evidence
from tests.contract.api.conftest import Api, outcomes, pod, stored
from tests.support import objects
from tests.support.cluster import Cluster, bound
from tests.support.objects import written


async def shown(bus: Bus, resource: str, name: str, namespace: str = "default") -> dict[str, Any]:
    return (await stored_objects.read(bus, [resource])).document(ObjectKey(resource, namespace, name))


async def test_a_bound_pod_that_runs(bus: Bus, api: Api) -> None:
    created = (await api.apply(pod("a"))).results[0]
    cluster = Cluster(bus)
    await api.reached(await cluster.commit([bound("a", "node-1", uid=created.uid)]))
    status = PodStatusFact(namespace="default", name="a", uid=created.uid, node="node-1", phase="Running")
    await cluster.status(status)
    document = await shown(bus, "pods", "a")
    assert (document["spec"]["nodeName"], document["status"]["phase"]) == ("node-1", "Running")
    assert outcomes(await api.apply(document)) == ["unchanged"]
    document["metadata"]["labels"] = {"new": "label"}
    assert outcomes(await api.apply(document)) == ["configured"]
    assert "nodeName" not in (await stored(bus, "pods", "a")).document()["spec"]
    document["spec"]["nodeName"] = "node-2"
    assert "nodeName" in (await api.apply(document)).results[0].errors[0].detail


async def test_a_node_of_which_its_agent_says_something(bus: Bus, api: Api) -> None:
    await api.apply(written(objects.node("node-1", taints=[{"key": "gpu", "effect": "NoSchedule"}])))
    pressure = TaintFact(key="node.kubernetes.io/memory-pressure", effect="NoSchedule")
    condition = Condition(type="MemoryPressure", status="True")
    fact = NodeStatusFact(node="node-1", conditions=(condition,), taints=(pressure,))
    await bus.publish(Outgoing(subjects.node_status("node-1"), codec.encode(fact)))
    document = await shown(bus, "nodes", "node-1", "")
    assert [taint["key"] for taint in document["spec"]["taints"]] == ["gpu", pressure.key]
    assert document["status"]["conditions"]
    assert outcomes(await api.apply(document)) == ["unchanged"]
    document["spec"]["unschedulable"] = True
    assert outcomes(await api.apply(document)) == ["configured"]
    assert [one["key"] for one in (await stored(bus, "nodes", "node-1", "")).document()["spec"]["taints"]] == ["gpu"]


async def test_a_pod_that_waits_and_says_why(bus: Bus, api: Api) -> None:
    created = (await api.apply(pod("a"))).results[0]
    objects = await stored_objects.read(bus, ["pods"])
    record = AttemptRecord(
        namespace="default",
        name="a",
        uid=created.uid,
        attempt="1",
        outcome="unschedulable",
        at=1.8e9,
        message="no room",
    )
    objects.evidence[created.uid] = Evidence(attempts=(record,))
    document = objects.document(ObjectKey("pods", "default", "a"))
    assert [(one["type"], one["reason"]) for one in document["status"]["conditions"]] == [
        ("PodScheduled", "Unschedulable")
    ]
    assert outcomes(await api.apply(document)) == ["unchanged"]


async def test_a_quota_with_what_is_used_of_it(bus: Bus, api: Api) -> None:
    quota = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "q"}, "spec": {"hard": {"pods": "3"}}}
    created = (await api.apply(quota)).results[0]
    fact = QuotaUsageFact(namespace="default", name="q", uid=created.uid, hard={"pods": "3"}, used={"pods": "1"})
    await bus.publish(Outgoing(subjects.quota_usage("default", "q", created.uid), codec.encode(fact)))
    document = await shown(bus, "resourcequotas", "q")
    assert document["status"] == {"hard": {"pods": "3"}, "used": {"pods": "1"}}
    assert outcomes(await api.apply(document)) == ["unchanged"]
