"""The example plugins, in a profile of their own."""

from collections.abc import Mapping
from typing import Any

import msgspec
import pytest

from examples.plugins import data_locality, gpu_packing, node_resource_topology
from podyard.framework.cycle import Cycle
from podyard.framework.event_registry import EventRegistry, watched_resources
from podyard.framework.events import HintAnswer
from podyard.framework.interfaces import Plugin
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.snapshot import Snapshot
from podyard.plugins.node_resources_fit.args import Args as FitArgs
from podyard.plugins.node_resources_fit.plugin import NodeResourcesFit
from podyard.plugins.priority_sort.plugin import PrioritySort
from tests.support.known_objects import KnownObjects
from tests.support.objects import typed_node
from tests.unit.framework.builders import make_node, make_pod, on, table_of

GPU = "nvidia.com/gpu"


def profile_with(*plugins: Plugin) -> Profile:
    return resolve("test", [Enabled(plugin=PrioritySort()), *(Enabled(plugin=plugin) for plugin in plugins)])


def gpu_node(name: str, count: int) -> Any:
    return typed_node(name, cpu="64", memory="64Gi", amounts={GPU: str(count)})


def test_gpu_packing_fills_what_is_in_use():
    nodes = table_of(gpu_node("empty", 8), gpu_node("half", 8), gpu_node("full", 8), make_node("none"))
    nodes.place(on(make_pod("a", requests={GPU: "4"}), "half"))
    nodes.place(on(make_pod("b", requests={GPU: "8"}), "full"))
    profile = profile_with(NodeResourcesFit(FitArgs()), gpu_packing.GpuPacking(gpu_packing.Args()))
    cycle = Cycle(profile, Snapshot(nodes))
    result = cycle.run(make_pod("wants", requests={GPU: "2"}))
    assert result.node == "half"
    points = {one.node: one.plugins["GpuPacking"] for one in result.scores}
    assert points == {"half": 75, "empty": 25}
    assert "GpuPacking" not in cycle.run(make_pod("plain")).scores[0].plugins


def dataset(objects: KnownObjects, name: str, *nodes: str) -> Any:
    metadata = {"name": name, "namespace": "default", "uid": name}
    return objects.put(data_locality.RESOURCE, {"metadata": metadata, "spec": {"nodes": list(nodes)}})


def reading(name: str) -> Any:
    pod = make_pod(f"reads-{name}")
    metadata = msgspec.structs.replace(pod.stored.metadata, annotations={data_locality.ANNOTATION: name})
    pod.stored = msgspec.structs.replace(pod.stored, metadata=metadata)
    return pod


def test_data_locality_follows_the_data():
    objects = KnownObjects()
    cycle = Cycle(
        profile_with(data_locality.DataLocality()), Snapshot(table_of(make_node("a"), make_node("b")), objects)
    )
    assert 'data set "genomes" not found' in cycle.run(reading("genomes")).message
    dataset(objects, "genomes", "b")
    assert cycle.run(reading("genomes")).node == "b"
    dataset(objects, "genomes", "a")
    assert cycle.run(reading("genomes")).node == "a"
    assert cycle.run(make_pod("plain")).nodes_feasible == 2


@pytest.mark.parametrize(
    ("name", "before", "after", "answer", "reason"),
    [
        ("genomes", (), ("a",), HintAnswer.QUEUE, "data set genomes is on a now"),
        ("genomes", ("a",), ("a", "b"), HintAnswer.QUEUE, "data set genomes is on b now"),
        ("genomes", ("a", "b"), ("a",), HintAnswer.SKIP, "data set genomes is on no further node"),
        ("films", (), ("a",), HintAnswer.SKIP, "data set films is not what the pod reads"),
    ],
)
def test_data_locality_wakes_for_its_own_data(
    name: str, before: tuple[str, ...], after: tuple[str, ...], answer: HintAnswer, reason: str
):
    old = dataset(KnownObjects(), name, *before) if before else None
    found = data_locality.after_dataset(reading("genomes").pod, old, dataset(KnownObjects(), name, *after))
    assert (found.answer, found.reason) == (answer, reason)


def topology(objects: KnownObjects, node: str, *zones: Mapping[str, str], scope: str = "container") -> None:
    attributes = [
        {"name": "topologyManagerPolicy", "value": "single-numa-node"},
        {"name": "topologyManagerScope", "value": scope},
    ]
    listed = [
        {
            "name": f"node-{number}",
            "type": "Node",
            "resources": [
                {"name": name, "capacity": amount, "allocatable": amount, "available": amount}
                for name, amount in zone.items()
            ],
        }
        for number, zone in enumerate(zones)
    ]
    objects.put(
        node_resource_topology.RESOURCE,
        {"metadata": {"name": node, "uid": node}, "attributes": attributes, "zones": listed},
    )


def guaranteed(*containers: Mapping[str, str], init: tuple[Mapping[str, str], ...] = ()) -> Any:
    def as_container(number: int, amounts: Mapping[str, str]) -> dict[str, Any]:
        return {"name": f"c{number}", "resources": {"requests": dict(amounts), "limits": dict(amounts)}}

    spec = {
        "containers": [as_container(*one) for one in enumerate(containers)],
        "initContainers": [as_container(*one) for one in enumerate(init, start=10)],
    }
    return make_pod("aligned", spec=spec)


def amounts(cpu: int, memory: str = "1Gi", **more: str) -> dict[str, str]:
    return {"cpu": str(cpu), "memory": memory, **more}


CASES = [
    pytest.param("container", [amounts(4), amounts(4)], guaranteed(amounts(4)), "", id="fits one zone"),
    pytest.param("container", [amounts(4), amounts(4)], guaranteed(amounts(5)), "container", id="spans two zones"),
    pytest.param(
        "container", [amounts(4), amounts(4)], guaranteed(amounts(3), amounts(3)), "", id="a zone for each container"
    ),
    pytest.param(
        "pod", [amounts(4), amounts(4)], guaranteed(amounts(3), amounts(3)), "pod", id="no zone for the whole pod"
    ),
    pytest.param(
        "container",
        [amounts(4), amounts(4)],
        guaranteed(amounts(3), amounts(3), amounts(3)),
        "container",
        id="the third container finds both zones taken",
    ),
    pytest.param(
        "container",
        [amounts(4), amounts(2)],
        guaranteed(amounts(4), init=(amounts(4), amounts(4))),
        "",
        id="init containers give back what they took",
    ),
    pytest.param(
        "pod", [amounts(4)], guaranteed(amounts(2), init=(amounts(5),)), "pod", id="the highest init container counts"
    ),
    pytest.param(
        "container", [amounts(1)], make_pod("burstable", cpu="3"), "", id="only Guaranteed pods need cpu aligned"
    ),
    pytest.param(
        "container",
        [{GPU: "2"}, {GPU: "2"}],
        make_pod("devices", requests={GPU: "3"}),
        "container",
        id="devices are aligned for all",
    ),
    pytest.param(
        "container", [{"cpu": "4"}], guaranteed(amounts(4, "100Gi")), "", id="what no zone has is not aligned"
    ),
]


@pytest.mark.parametrize(("scope", "zones", "pod", "misfit"), CASES)
def test_pods_are_aligned_as_the_kubelet_would(scope: str, zones: list[dict[str, str]], pod: Any, misfit: str):
    objects = KnownObjects()
    cycle = Cycle(
        profile_with(node_resource_topology.NodeResourceTopologyMatch()),
        Snapshot(table_of(make_node("numa", cpu="64")), objects),
    )
    assert cycle.run(pod).node == "numa", "a node that publishes nothing takes any pod"
    topology(objects, "numa", *zones, scope=scope)
    result = cycle.run(pod)
    wanted = f"0/1 nodes are available: 1 cannot align {misfit}." if misfit else ""
    assert result.message == wanted


def test_their_resources_are_followed():
    plugins = (data_locality.DataLocality(), node_resource_topology.NodeResourceTopologyMatch())
    registry = EventRegistry.of_profile(profile_with(*plugins))
    assert set(watched_resources([registry])) == {
        data_locality.RESOURCE,
        node_resource_topology.RESOURCE,
        "nodes",
        "pods",
    }
