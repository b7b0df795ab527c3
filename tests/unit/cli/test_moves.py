"""The story of a workload's moves, as a value and as text."""

from io import StringIO
from typing import Any

from rich.console import Console

from podyard.cli.explain.gather import known_now
from podyard.cli.render import moves as rendered
from podyard.cli.render import times
from podyard.cluster.pods import PodView
from podyard.cluster.view import ClusterView
from podyard.objects import times as podyard_times
from podyard.proto.facts import PodStatusFact
from podyard.proto.moves import MoveRecord
from podyard.proto.placement import BoundPod
from podyard.telling.moves import Opposed, story_of
from tests.support import objects

AT = 1_800_000_000.0


def move(number: int, **more: Any) -> MoveRecord:
    said: dict[str, Any] = {
        "id": f"m{number}", "namespace": "default", "kind": "Deployment", "name": "web", "owner": "web-5d9",
        "pod": f"web-5d9-{number}", "uid": f"u{number}", "from_node": "node-1", "at": AT + number,
        "profile": "p", "plugin": "Tidy", "reason": "is alone",
    }  # fmt: skip
    return MoveRecord(**(said | more))


RECORDS = (
    move(1),
    move(2, kind="StatefulSet", owner="web", pod="web-0"),
    move(1, outcome="running", to_pod="web-5d9-x", to_node="node-2", to_uid="ux", planned_node="node-9",
         plan_problem="it would come back to node-9"),
    move(3, pod="web-5d9-x", plugin="Untidy", outcome="running", from_node="node-2", to_pod="web-5d9-y",
         to_node="node-1", undoes="p/Tidy"),
    move(4, outcome="refused", problem="web needs 2 healthy pods", planned_node="node-3"),
)  # fmt: skip


def text(kind: str, name: str) -> list[str]:
    console = Console(width=80, record=True, file=StringIO())
    console.print(rendered.view(story_of("default", kind, name, RECORDS)))
    return [line[14:] if line[:1].isdigit() else line.rstrip() for line in console.export_text().splitlines()]


def test_of_a_move_with_an_open_end_it_is_told_when_that_was_looked_at() -> None:
    """A cycle on demand looks once: what came later only the next cycle knows."""
    console = Console(width=80, record=True, file=StringIO())
    console.print(rendered.view(story_of("default", "Deployment", "web", (move(1, known_at=AT + 1),))))
    *_, last = console.export_text().splitlines()
    assert last.strip() == f"nothing was in its place when last looked at, {times.clock(AT + 1)}"


def view_of(*pods: PodView) -> ClusterView:
    view = ClusterView()
    view.pods = {pod.key: pod for pod in pods}  # as a listing leaves it
    return view


def made_after(name: str, owner_uid: str, **more: Any) -> PodView:
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web-5d9", "uid": owner_uid, "controller": True}
    made = {"ownerReferences": [owner], "creationTimestamp": podyard_times.rfc3339(AT + 5)}
    status = PodStatusFact(namespace="default", name=name, uid=f"uid-{name}", node="node-2", phase="Running")
    bound = BoundPod(namespace="default", name=name, uid=f"uid-{name}", node="node-2")
    return objects.view(objects.pod(name, metadata=made), bound=bound, status=status, **more)


def test_what_came_in_the_place_of_a_moved_pod_is_looked_for_now() -> None:
    """A cycle on demand looks once; the descheduler may not run any more."""
    open_move = move(1, owner_uid="rs", known_at=AT + 1)
    view = view_of(made_after("web-5d9-new", "rs"), made_after("other", "another"))
    (known,) = story_of("default", "Deployment", "web", known_now([open_move], view, AT + 60)).moves
    assert (known.outcome, known.to_pod, known.to_node, known.known_at) == ("running", "web-5d9-new", "node-2", AT + 60)


def test_where_nothing_came_it_is_told_that_it_was_looked_for_now() -> None:
    (known,) = story_of("default", "Deployment", "web", known_now([move(1, known_at=AT + 1)], view_of(), AT + 60)).moves
    assert (known.outcome, known.known_at) == ("moving", AT + 60)


def test_a_move_whose_end_is_known_stays_as_it_is() -> None:
    ended = move(1, owner_uid="rs", outcome="running", to_pod="x", to_uid="ux", to_node="node-3", known_at=AT + 1)
    assert known_now([ended], view_of(made_after("web-5d9-new", "rs")), AT + 60) == [ended]


def test_the_last_record_of_a_move_counts_and_each_is_told_with_what_came_of_it() -> None:
    assert text("Deployment", "web") == [
        "Deployment default/web  2 moves, 1 refused",
        "web-5d9-1 evicted from node-1",
        "              by p/Tidy: is alone",
        "              planned to go to node-9",
        "              against the plan: it would come back to node-9",
        "              runs on node-2 as web-5d9-x",
        "web-5d9-x evicted from node-2",
        "              by p/Untidy: is alone",
        "              runs on node-1 as web-5d9-y",
        "              undoes the move of p/Tidy",
        "web-5d9-4 stays on node-1",
        "              by p/Tidy: is alone",
        "              would go to node-3",
        "              refused: web needs 2 healthy pods",
        "two plugins undo each other's moves: p/Untidy took back what p/Tidy had moved",
    ]


def test_a_replicaset_and_a_pod_have_their_own() -> None:
    story = story_of("default", "ReplicaSet", "web-5d9", RECORDS)
    assert [one.id for one in story.moves] == ["m1", "m3", "m4"]
    assert story.opposed == (Opposed(plugin="p/Untidy", undoes="p/Tidy", times=1),)
    assert [one.id for one in story_of("default", "Pod", "web-5d9-x", RECORDS).moves] == ["m1", "m3"]
    assert text("Deployment", "other") == [
        "Deployment default/other  0 moves",
        "  the descheduler has moved nothing of it in the last week",
    ]
