"""What `bench growth` plays, and what it makes of the memory that it saw."""

from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import msgspec
import pytest
from rich.console import Console

from podyard.bench import churn
from podyard.bench.churn import StoredNode
from podyard.bench.growth import Growth, GrowthResult, Sample, result, slopes
from podyard.bench.render import growth as shown_growth
from podyard.bench.render import growth_picture
from podyard.bus import Ack, Delivery, Outgoing
from podyard.bus.errors import BusError, Unclear
from podyard.cli.errors import InputError
from podyard.proto import codec, subjects
from podyard.proto.signals import NodeHeartbeat
from podyard.runtime.settings import RetentionSettings


def samples(sizes: dict[str, list[float]], step: int = 100_000) -> tuple[Sample, ...]:
    count = len(next(iter(sizes.values())))
    return tuple(
        Sample(
            at_s=number * 10.0,
            changes=number * step,
            played=number * step // 2,
            memory_mb={name: found[number] for name, found in sizes.items()},
        )
        for number in range(count)
    )


RUN = result(samples({"queue": [50, 80, 90, 90, 90], "api": [40, 41, 42, 44, 46]}), nodes=3, living=10, divided_by=10)


def test_only_the_second_half_counts() -> None:
    assert slopes(RUN.samples) == {"queue": 0.0, "api": 2.0}
    assert (RUN.changes, RUN.played, RUN.changes_per_second) == (400_000, 200_000, 10_000.0)


def test_a_line_is_drawn_through_samples_that_go_up_and_down() -> None:
    found = slopes(samples({"a": [0, 0, 10, 10, 20, 10, 20]}))
    assert 0 < found["a"] < 3


def test_a_run_is_told_worst_growth_first() -> None:
    console = Console(width=150, record=True, file=StringIO())
    console.print(shown_growth.report(RUN))
    text = console.export_text()
    assert "+2.00 MB per 100,000 changes at most" in text
    assert [line.split()[-1] for line in text.splitlines() if line.startswith(("queue", "api"))] == ["+0.00", "+2.00"]


def test_a_kept_run_is_drawn_again(tmp_path: Path) -> None:
    kept = msgspec.json.decode(msgspec.json.encode(RUN), type=GrowthResult)
    picture = tmp_path / "growth.svg"
    growth_picture.draw(kept, picture)
    assert "api: +2.00" in picture.read_text(encoding="utf-8") or picture.stat().st_size > 10_000


def test_every_round_brings_names_that_no_round_before_it_had() -> None:
    def names(round_: int) -> set[str]:
        numbers = range(round_ * churn.CREATED, (round_ + 1) * churn.CREATED)
        documents = [churn.pod(number, round_) for number in numbers]
        documents += [churn.relabelled(document, round_) for document in documents[:4]]
        documents += [churn.node(number, round_) for number in range(8)]
        return set(_texts(documents))

    usual = names(4) & names(40)
    assert not {
        text for text in usual if "example.com/device" in text or text.startswith(("key-", "nobody-", "missing-"))
    }
    assert len(names(40) - usual) > 100


def _texts(value: object) -> "list[str]":
    if isinstance(value, dict):
        return [text for key, held in value.items() for text in (str(key), *_texts(held))]
    if isinstance(value, list):
        return [text for held in value for text in _texts(held)]
    return [str(value)]


def test_retention_is_divided_for_services_and_benchmark_alike() -> None:
    found = churn.variables(churn.retention(10))
    assert found["PODYARD_RETENTION_MARKERS_S"] == str(RetentionSettings().markers_s // 10)
    assert set(found) == {f"PODYARD_RETENTION_{name.upper()}" for name in RetentionSettings.__struct_fields__}


class Ears:
    """A bus on which only heartbeats are sent."""

    def __init__(self) -> None:
        self.heard: list[str] = []

    def send(self, subject: str, payload: bytes) -> None:
        assert codec.decode(NodeHeartbeat, payload).node == subjects.parse_heartbeat(subject)
        self.heard.append(subject)


def test_nodes_whose_agent_is_played_beat() -> None:
    """The others' agent does so itself."""
    bus = Ears()
    growth = Growth(bus, {}, nodes=5, living=1, tell=lambda sample: None)  # type: ignore[arg-type]
    growth._beat()
    growth._beat()
    assert bus.heard == ["heartbeat.node-00001", "heartbeat.node-00003"]


class SilentOnce:
    """A bus whose first answer to changes of nodes is lost; CLUSTER stored them at 7."""

    def __init__(self) -> None:
        self.expected: list[int | None] = []

    async def publish_many(self, messages: Sequence[Outgoing], *, timeout_s: float) -> list[Ack | BusError]:
        self.expected += [message.expect for message in messages]
        lost = len(self.expected) == 1
        return [Unclear(one.subject, "no answer") if lost else Ack(9) for one in messages]

    async def get(self, _stream: str, subject: str) -> Delivery:
        return Delivery(subject, b'{"uid": "u"}', 7)


async def test_a_change_whose_answer_is_lost_ends_no_run() -> None:
    bus = SilentOnce()
    run = Growth(bus, {}, nodes=1, living=1, tell=lambda sample: None)  # type: ignore[arg-type]
    run._nodes = [StoredNode(0, "u", 3)]
    for _ in range(3):
        await run._change_nodes()
    assert bus.expected == [3, 7, 9]


@pytest.mark.parametrize(
    "wrong", [{"changes": 10}, {"retention_divided_by": 100}, {"plot": "growth.txt"}, {"again": "/nowhere"}]
)
def test_what_makes_no_sense_is_said_before_anything_starts(wrong: dict[str, object]) -> None:
    from podyard.bench.commands.growth import growth

    with pytest.raises(InputError):
        growth(**wrong)  # type: ignore[arg-type]
