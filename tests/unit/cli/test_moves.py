"""The story of a workload's moves, as a value and as text."""

from io import StringIO
from typing import Any

from rich.console import Console

from podyard.cli.render import moves as rendered
from podyard.cli.render import times
from podyard.proto.moves import MoveRecord
from podyard.telling.moves import Opposed, story_of

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
