"""Kinds that only a plugin knows: registering one is all it takes for its changes to wake the pods that the
plugin rejected."""

from typing import Any, Final

from podyard.proto.requeues import HintCall, PodMove, RequeueRecord
from tests.e2e import labs
from tests.e2e.stage import WITHIN_S, Stand, node

TOPOLOGIES: Final = "noderesourcetopologies.v1alpha2.topology.node.k8s.io"
DATASETS: Final = "datasets.v1.data.example.com"


def topology(name: str, *zones: str) -> dict[str, Any]:
    """What a node publishes of itself: the CPUs that are free in each NUMA zone."""
    return {
        "apiVersion": "topology.node.k8s.io/v1alpha2",
        "kind": "NodeResourceTopology",
        "metadata": {"name": name},
        "attributes": [
            {"name": "topologyManagerPolicy", "value": "single-numa-node"},
            {"name": "topologyManagerScope", "value": "pod"},
        ],
        "zones": [
            {
                "name": f"node-{number}",
                "type": "Node",
                "resources": [
                    {"name": "cpu", "capacity": "4", "allocatable": "4", "available": cpus},
                    {"name": "memory", "capacity": "8Gi", "allocatable": "8Gi", "available": "8Gi"},
                ],
            }
            for number, cpus in enumerate(zones)
        ],
    }


def dataset(here: Stand, name: str, *nodes: str) -> dict[str, Any]:
    return {
        "apiVersion": "data.example.com/v1",
        "kind": "Dataset",
        "metadata": {"name": name, "namespace": here.namespace},
        "spec": {"nodes": list(nodes)},
    }


def guaranteed(here: Stand, name: str, cpu: str) -> dict[str, Any]:
    """A pod whose CPUs must come from one zone."""
    manifest = here.pod(name, schedulerName=labs.TOPOLOGIES)
    amounts = {"cpu": cpu, "memory": "1Gi"}
    manifest["spec"]["containers"][0]["resources"] = {"requests": amounts, "limits": dict(amounts)}
    return manifest


def reads(here: Stand, name: str, data: str) -> dict[str, Any]:
    """A pod that reads a data set."""
    return here.pod(name, schedulerName=labs.DATASETS, metadata={"annotations": {"data.example.com/dataset": data}})


def elsewhere(here: Stand, profile: str) -> dict[str, Any]:
    """A pod that waits for something else."""
    return here.pod("elsewhere", schedulerName=profile, nodeSelector={"disk": "ssd"})


async def rejected(here: Stand, name: str, *plugins: str) -> None:
    """Wait for the pod's first attempt, which these plugins, and no others, turn down."""
    await here.attempted(name)
    assert set(here.attempts(name)[0].unschedulable_plugins) == set(plugins)


async def requeue(here: Stand, label: str, object_name: str) -> RequeueRecord:
    """The record of an event, once it is stored."""

    def find() -> RequeueRecord | None:
        return next((one for one in here.seen.requeues if (one.event, one.object) == (label, object_name)), None)

    return await here.seen.until(f"{label} of {object_name}", find, WITHIN_S)


def moves(record: RequeueRecord) -> list[tuple[str, str]]:
    """Pods that the event moved, with the plugin that decided."""
    return [(move.name, move.plugin) for move in record.moved]


async def test_a_pod_wakes_when_the_topology_of_its_node_is_first_published(here: Stand) -> None:
    plugin = "NodeResourceTopologyMatch"
    await here.join(node("node-1"), node("node-2", cpu="1"))
    await here.do.apply([topology("node-1", "1", "1")], "one says that its zones are full")
    await here.do.apply([guaranteed(here, "aligned", "2"), elsewhere(here, labs.TOPOLOGIES)], "pods that wait")
    await rejected(here, "aligned", plugin, "NodeResourcesFit")
    await rejected(here, "elsewhere", "NodeAffinity")

    await here.do.apply([topology("node-2", "1")], "the other node publishes its zones for the first time")
    first = await requeue(here, f"{TOPOLOGIES}Add", "node-2")
    assert moves(first) == [("aligned", plugin)]
    assert not first.skipped
    await here.attempted("aligned", 2)
    assert (woken := here.attempts("aligned")[1].woken_by) is not None
    assert woken.plugin == plugin
    # the queue may hear of the event before the end of the attempt: the record's key then names that attempt,
    # too
    assert first.event_id.startswith(f"{woken.event_id}-") or first.event_id == woken.event_id

    await here.do.apply([topology("node-1", "1", "3")], "room in one zone")
    assert moves(await requeue(here, f"{TOPOLOGIES}Update", "node-1")) == [("aligned", plugin)]
    await here.running("aligned")
    assert len(here.attempts("elsewhere")) == 1

    told = await here.cli("explain", "pod", "aligned")
    for expected in (f"{TOPOLOGIES}Add", f"{TOPOLOGIES}Update", plugin):
        assert expected in told.out
    other = await here.cli("explain", "pod", "elsewhere")
    assert "NodeAffinity" in other.out
    assert TOPOLOGIES not in other.out


async def test_a_pod_wakes_for_its_own_object_of_a_kind_that_a_user_made_up(here: Stand) -> None:
    plugin = "DataLocality"
    await here.join(node("node-1"), node("node-2"))
    waiting = [reads(here, "genome-reader", "genomes"), reads(here, "map-reader", "maps")]
    await here.do.apply([*waiting, elsewhere(here, labs.DATASETS)], "pods that wait")
    await rejected(here, "genome-reader", plugin)
    await rejected(here, "map-reader", plugin)
    await rejected(here, "elsewhere", "NodeAffinity")

    await here.do.apply([dataset(here, "genomes", "node-2")], "the first data set of all")
    record = await requeue(here, f"{DATASETS}Add", f"{here.namespace}/genomes")
    assert (record.resource, moves(record)) == (DATASETS, [("genome-reader", plugin)])
    assert reason(record.moved[0]) == "data set genomes is on node-2 now"
    [skipped] = record.skipped
    assert (skipped.name, said(skipped.hints)) == ("map-reader", "data set genomes is not what the pod reads")
    await here.running("genome-reader")
    assert here.bound_to("genome-reader") == "node-2"
    assert [len(here.attempts(name)) for name in ("map-reader", "elsewhere")] == [1, 1]

    told = await here.cli("explain", "pod", "genome-reader")
    for expected in (f"{DATASETS}Add", "data set genomes is on node-2 now"):
        assert expected in told.out
    left = await here.cli("explain", "pod", "map-reader")
    for expected in ('data set "maps" not found', "data set genomes is not what the pod reads"):
        assert expected in left.out
    assert DATASETS not in (await here.cli("explain", "pod", "elsewhere")).out


def reason(move: PodMove) -> str:
    return said(move.hints)


def said(hints: tuple[HintCall, ...]) -> str:
    """The only hint's reason."""
    [call] = hints
    return call.reason
