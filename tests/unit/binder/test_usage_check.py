"""Usage never drifts from the sum of live bindings, and it is noticed if it does (issue 7, item 1)."""

import random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podyard.binder.core import effects
from tests.unit.binder.stage import Stage, uid_of


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node(cpu="4")
    for name in "abc":
        stage.pod(name)
    return stage


def run_a_round(stage: Stage) -> None:
    for _ in range(31):
        stage.pass_time(1.0)


def test_a_right_table_passes(stage: Stage):
    binder = stage.serving()
    binder.bind(stage.decide("a"), stage.decide("b"))
    stage.status("a")
    run_a_round(stage)
    assert not binder.of(effects.UsageDrift)


def test_a_column_that_drifted_is_noticed_and_put_right(stage: Stage):
    binder = stage.serving()
    binder.bind(stage.decide("a"))
    table = binder.core.world.table
    table.room.requested[0, table.row_of["n1"]] += 500
    run_a_round(stage)
    (drift,) = binder.of(effects.UsageDrift)
    assert drift.details == ["n1: cpu: the bindings add up to 1000, the table has 1500"]
    assert binder.of(effects.Relist)
    table = binder.core.world.table
    assert table.room.requested[0, table.row_of["n1"]] == 1000


def test_a_pod_that_is_missing_from_the_table_is_noticed(stage: Stage):
    binder = stage.serving()
    binder.bind(stage.decide("a"))
    binder.core.world.table.remove(uid_of("a"))
    run_a_round(stage)
    assert uid_of("a") in binder.of(effects.UsageDrift)[0].details[0]
    assert binder.core.world.table.placed(uid_of("a")) is not None


def test_own_writes_that_the_view_does_not_show_are_no_drift(stage: Stage):
    binder = stage.serving()
    binder.faults.append("hold")
    binder.ask(stage.decide("a"))
    assert binder.core._check.differences(["n1"]) == []
    (answer,) = binder.release_held()
    honest, binder.pump = binder.pump, lambda: None
    binder.step(answer)
    assert binder.core._check.differences(["n1"]) == []
    binder.pump = honest
    binder.pump()
    assert binder.core._check.differences(["n1"]) == []
    assert binder.core.world.unseen == {}


def test_every_node_is_looked_at_within_a_round(stage: Stage):
    for number in range(100):
        stage.node(f"m{number}")
    binder = stage.serving()
    table = binder.core.world.table
    table.room.requested[0, table.row_of["m57"]] = 1
    run_a_round(stage)
    assert len(binder.of(effects.UsageDrift)) == 1


STEPS = st.lists(
    st.sampled_from(
        ["bind", "bind", "bind", "finish", "delete", "node", "lost", "lost ack", "late", "take over", "stall", "wait"]
    ),
    min_size=5,
    max_size=40,
)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(steps=STEPS, seed=st.integers(0, 2**32))
def test_promises_hold_whatever_happens(steps: list[str], seed: int):
    """One binding per uid, ever; no node over its allocatable at any commit; the table is the sum of the live
    bindings."""
    chance = random.Random(seed)
    stage = Stage()
    for number in range(3):
        stage.node(f"n{number}", cpu="3")
    for number in range(12):
        stage.pod(f"p{number}", cpu=str(chance.choice([1, 2])))
    binder = stage.serving("binder-0")
    terms = 1
    for step in steps:
        name = f"p{chance.randrange(12)}"
        node = f"n{chance.randrange(3)}"
        match step:
            case "bind":
                picked = chance.sample(range(12), 4)
                binder.ask(
                    *(stage.decide(f"p{n}", node=f"n{chance.randrange(3)}", attempt=f"{terms}-{n}") for n in picked)
                )
            case "finish":
                if name in stage.stream.live():
                    stage.status(name, node=stage.stream.live()[name])
            case "delete":
                if f"cluster.pods.default.{name}" in stage.stream.messages:
                    stage.remove("pods", name)
            case "node":
                stage.remove("nodes", node)
                stage.pass_time(0.02)
                stage.node(node, cpu="3")
            case "lost" | "lost ack" | "late":
                binder.faults.append(step)
            case "take over":
                terms += 1
                binder = stage.term(f"binder-{terms}")
                binder.faults.extend(chance.sample(["ok", "lost", "lost ack", "late"], 2))
                binder.elect()
            case "stall":
                for term in stage.terms:
                    for answer in term.release_held():
                        term.step(answer)
            case _:
                stage.pass_time(0.3)
    for _ in range(4):
        stage.pass_time(1.0)
    check_history(stage)
    assert binder.core.world.live_on(["n0"])["n0"].keys() == {
        uid_of(p) for p, n in stage.stream.live().items() if n == "n0"
    }
    assert binder.core._check.differences(["n0", "n1", "n2"]) == []
    assert not binder.of(effects.UsageDrift)
    epochs = [record.epoch for record in stage.stream.commits]
    assert epochs == sorted(epochs)
    assert [record.n for record in stage.stream.commits] == list(range(1, len(epochs) + 1))


def check_history(stage: Stage) -> None:
    """Fold the commit records, as `bench/podyard/bench/checking/checker.py` does, in short."""
    bound_ever: set[str] = set()
    on_node: dict[str, dict[str, int]] = {}
    for record in stage.stream.commits:
        for release in record.releases:
            assert on_node[release.node].pop(release.uid, None) is not None
        for pod in record.bindings:
            assert pod.uid not in bound_ever, f"{pod.uid} is bound twice"
            bound_ever.add(pod.uid)
            on_node.setdefault(pod.node, {})[pod.uid] = pod.usage.requests["cpu"]
        for node, pods in on_node.items():
            assert sum(pods.values()) <= 3000, f"{node} is over its allocatable at commit {record.n}"
