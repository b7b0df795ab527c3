"""The reference's answers hold however the cluster came to be: grown change by change, with detours, judged
all along by the same cycle."""

from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from podyard.bus import Delivery
from podyard.framework.cycle import Cycle
from tests.conformance import clusters, profiles, running
from tests.conformance.cases import Case
from tests.conformance.clusters import Cluster, ClusterInput
from tests.conformance.deliveries import Manifest, Stream, binding_of, name_of
from tests.conformance.suites import schedule

DATA = Path(__file__).parent / "data" / "schedule"


def in_any_order(stream: Stream, given: ClusterInput, random: Random) -> Iterator[Delivery]:
    """What ends in the cluster of the case: nodes, pods and other objects come mixed, some go again in
    between or are others first."""
    coming: list[Manifest] = [one for field in clusters.OTHERS for one in getattr(given, field)]
    coming += [*given.nodes, *(pod for pod in given.pods if name_of(pod) not in given.schedule)]
    random.shuffle(coming)
    placed = {name_of(pod) for pod in clusters.placed_pods(given)}
    for one in coming:
        if random.random() < 0.3:
            yield stream.put(otherwise(one))
        yield stream.put(one)
        if one["kind"] != "Pod":
            if random.random() < 0.3:
                yield stream.remove(one)
                yield stream.put(one)
        elif name_of(one) in placed:
            yield from bind(stream, one, random)
    for pod in given.pods:
        node = clusters.nominated_node_of(pod)
        if node:
            yield stream.nominate(pod, node)


def bind(stream: Stream, pod: Manifest, random: Random) -> Iterator[Delivery]:
    """The pod's binding; sometimes after another pod like it was there for a while."""
    if random.random() < 0.3:
        name = f"{pod['metadata']['name']}-double"
        double = {
            **pod,
            "metadata": {**pod["metadata"], "name": name, "uid": f"{name} {pod['metadata'].get('namespace')}"},
        }
        yield stream.put(double)
        yield stream.commit([double])
        yield stream.commit(released=[binding_of(double)])
        yield stream.remove(double)
    yield stream.commit([pod])


def otherwise(one: Manifest) -> Manifest:
    """The object as it was before: with other labels, a node tainted and without room."""
    was: dict[str, Any] = {**one, "metadata": {**one["metadata"], "labels": {"app": "before"}}}
    if one["kind"] == "Node":
        was["spec"] = {"taints": [{"key": "before", "effect": "NoSchedule"}], "unschedulable": True}
        was["status"] = {**one["status"], "allocatable": {"cpu": "1", "pods": "1"}}
    return was


def grown(case: Case, random: Random) -> tuple[Cluster, Cycle]:
    given = msgspec.convert(case.input, ClusterInput)
    cluster, stream = Cluster(), Stream()
    cycle = Cycle(profiles.configured(given.config).profiles[0], cluster.snapshot)
    for pod in given.pods:
        if name_of(pod) in given.schedule:
            cluster.take(stream.put(pod))
    for delivery in in_any_order(stream, given, random):
        cluster.take(delivery)
        if random.random() < 0.3:
            for name in given.schedule:
                cycle.run(cluster.pod(name))
    return cluster, cycle


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize(
    ("file", "first", "every"),
    [pytest.param("public.jsonl.gz", 7, 48, id="many"), pytest.param("public-large.jsonl.gz", 3, 40, id="large")],
)
def test_answers_do_not_depend_on_what_was_before(file, first, every, seed) -> None:
    for case in running.load("schedule", DATA / file)[first::every]:
        cluster, cycle = grown(case, Random(f"{case.id} {seed}"))
        profile = profiles.configured(case.input["config"]).profiles[0]
        for name, expected in case.expected["pods"].items():
            got = schedule.attempt(cycle, profile, cluster, cluster.pod(name)).told
            assert list(schedule.compare_pod(name, expected, got)) == [], case.id
