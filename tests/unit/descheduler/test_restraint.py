"""Whom a cycle leaves alone by what became of earlier moves."""

from typing import Any

import pytest
from msgspec.structs import replace

from podyard.descheduler.core.restraint import FIRST_PAUSE_S, LABEL, LONGEST_PAUSE_S, UNKNOWN_S
from podyard.objects import times
from podyard.proto.moves import MoveRecord
from tests.support import objects
from tests.unit.descheduler.make import NOW, policy
from tests.unit.descheduler.test_plugins_that_fail import Sweep
from tests.unit.descheduler.world import Document, Play, owned, pod, view_of

GPU = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
NODES = [objects.node("n1", taints=[GPU]), objects.node("n2")]
"""What goes from n1 goes to n2."""
SWEEP = policy(Sweep)


def move(at: float, outcome: str = "back", **more: Any) -> MoveRecord:
    """One of the ReplicaSet `web`, that took `old` from n1."""
    return replace(
        MoveRecord(
            id=f"m{at}",
            namespace="default",
            kind="ReplicaSet",
            name="web",
            owner="web",
            owner_uid="rs-web",
            pod="old",
            uid=f"uid-old-{at}",
            from_node="n1",
            at=at,
            profile="p",
            plugin="Sweep",
            outcome=outcome,  # type: ignore[arg-type]
            known_at=at,
        ),
        **more,
    )


def replicaset(replicas: int, **labels: str) -> tuple[str, Document]:
    metadata = {"name": "web", "namespace": "default", "uid": "rs-web", "labels": labels}
    return "replicasets", {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": metadata,
        "spec": {"replicas": replicas},
    }


def play(
    *earlier: MoveRecord, obey: bool = True, replicas: int = 1, label: str = "", on: str = "pod", **more: Any
) -> Play:
    """A cycle in which `a` of that ReplicaSet is to go."""
    labels = {LABEL: label} if label else {}
    metadata = {"labels": {**owned("web")["labels"], **(labels if on == "pod" else {})}}
    others = [replicaset(replicas, **(labels if on == "owner" else {}))] if replicas else []
    view = view_of(NODES, {"n1": [pod("a", metadata=metadata)]}, others)
    return Play(SWEEP, view, Sweep, obey=obey, earlier=earlier, **more)


@pytest.mark.parametrize("obey", [True, False])
def test_a_workload_whose_pod_came_back_is_left_alone(obey: bool):
    found = play(move(NOW - 60), obey=obey)
    until = times.rfc3339(NOW - 60 + FIRST_PAUSE_S)
    why = f"it is left alone until {until}: its last moved pod came back to where it was taken from"
    if obey:
        assert found.kept == {"a": why}
        return
    assert found.moved == {"a": "n2"}, "told, not obeyed"
    assert [one.plan_problem for one in found.attempts] == [why]
    assert [one.plan_problem for one in found.remembered] == [why]


@pytest.mark.parametrize(
    ("count", "pause_s"), [(1, 600), (2, 1200), (3, 2400), (8, 76800), (9, LONGEST_PAUSE_S), (40, LONGEST_PAUSE_S)]
)
def test_the_pause_doubles_and_ends(count: int, pause_s: float):
    for late_s, kept in ((-1.0, ["a"]), (0.0, [])):
        last = NOW - pause_s - late_s
        earlier = [move(last - number) for number in range(count)]
        assert list(play(*earlier).kept) == kept


def test_one_that_ran_elsewhere_ends_the_row():
    earlier = [move(NOW - 900), move(NOW - 800), move(NOW - 700, "running"), move(NOW - 650)]
    assert play(*earlier).kept == {}
    assert play(*earlier[:2], move(NOW - 650)).kept.keys() == {"a"}


def test_moves_that_another_plugin_undid_count_as_come_back():
    assert play(move(NOW - 60, "running", undoes="p/Other")).kept.keys() == {"a"}


def test_a_refusal_is_no_move():
    assert play(move(NOW - 60, "refused")).kept == {}


@pytest.mark.parametrize("on", ["pod", "owner"])
@pytest.mark.parametrize(("label", "kept"), [("0", []), ("30s", []), ("2h", ["a"]), ("soon", ["a"]), ("-5m", ["a"])])
def test_a_label_sets_or_lifts_the_pause(label: str, kept: list[str], on: str):
    found = play(move(NOW - 1000), label=label, on=on)
    assert list(found.kept) == kept
    if label in ("soon", "-5m"):
        assert f"label {LABEL}" in found.kept["a"]


@pytest.mark.parametrize("outcome", ["moving", "pending"])
def test_a_workload_whose_last_moved_pod_is_not_running_is_not_moved(outcome: str):
    assert play(move(NOW - 60, outcome), replicas=2).kept == {
        "a": "what comes in the place of old, which was moved before, is not running yet"
    }


def test_nobody_waits_for_what_never_comes():
    """The ReplicaSet has all that it wants; of another controller nobody knows, so an hour is enough."""
    assert play(move(NOW - 60, "moving"), replicas=1).kept == {}
    assert play(move(NOW - UNKNOWN_S + 1, "moving"), replicas=0).kept.keys() == {"a"}
    assert play(move(NOW - UNKNOWN_S, "moving"), replicas=0).kept == {}
    assert play(move(NOW - 60, "pending", to_uid="uid-gone"), replicas=2).kept == {}
    assert play(move(NOW - 60, "pending", to_uid="uid-a"), replicas=2).kept.keys() == {"a"}


def test_no_plugin_takes_a_pod_back_to_where_another_took_it_from():
    came = move(NOW - 3000, "running", plugin="Other", from_node="n2", to_uid="uid-a")
    assert play(came).kept == {"a": "it would undo the move of p/Other, which took it from n2"}
    assert play(replace(came, plugin="Sweep")).kept == {}
    assert play(replace(came, from_node="n3")).kept == {}


def test_a_dry_run_knows_what_was_moved_and_remembers_nothing():
    found = play(move(NOW - 60), dry_run=True)
    assert (list(found.kept), found.remembered) == (["a"], [])
    came = move(NOW - 60, "pending", to_uid="uid-a")
    assert play(came).remembered, "it has a node now, which is remembered"
    assert play(came, dry_run=True).remembered == []


def test_other_workloads_are_not_concerned():
    assert play(move(NOW - 60, name="db"), move(NOW - 60, namespace="prod")).kept == {}
