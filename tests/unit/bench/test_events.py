"""`bench events`: each kind of event does what it is said to, and the report says what was measured."""

import io
from typing import Any

import pytest
from rich.console import Console

from podyard.bench import event_kinds, events, parked
from podyard.bench.leading import Leading
from podyard.bench.render import events as shown_events
from podyard.bench.storm import StormResult
from podyard.plugins.defaults import default_profile

STORM = StormResult(
    parked=400,
    updates_per_s=1000.0,
    idle_pop_p50_ms=1.0,
    idle_pop_p99_ms=2.0,
    storm_pop_p50_ms=1.5,
    storm_pop_p99_ms=7.5,
    storm_pop_max_ms=9.0,
    behind_ms=3.0,
    moved=0,
    cpu_cores={"queue": 0.25},
)


@pytest.fixture
def few_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_kinds, "ROUNDS", 8)


@pytest.mark.usefixtures("few_rounds")
def test_every_kind_wakes_as_many_pods_as_it_says_and_is_shown() -> None:
    found = events.measure(default_profile(), 400)
    assert [cost.event for cost in found.costs] == [kind.name for kind in event_kinds.KINDS]
    assert found.none_us == max(cost.core_us for cost in found.costs if cost.wakes == 0)
    assert found.one_us == max(cost.core_us for cost in found.costs if cost.wakes == 1)
    out = io.StringIO()
    Console(file=out, width=120).print(shown_events.report(found, STORM))
    text = out.getvalue()
    assert all(kind.name in text for kind in event_kinds.KINDS)
    assert "7.5 ms at the 99th percentile" in " ".join(text.split())


@pytest.mark.usefixtures("few_rounds")
def test_an_event_that_wakes_others_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    kind = event_kinds.KINDS[0]._replace(wakes=1)
    monkeypatch.setattr(event_kinds, "KINDS", (kind,))
    with pytest.raises(events.UnexpectedMovesError, match="moved 0 parked pods, not 1"):
        events.measure(default_profile(), 400)


@pytest.mark.parametrize("cast", [parked.plain, parked.with_claims, parked.in_zones, parked.short_of_room])
def test_all_pods_of_a_cast_are_parked_for_their_plugins(cast: Any) -> None:
    leading = Leading(default_profile())
    leading.park(cast, 60)
    queue = leading.core.leader.queue
    assert len(queue.parked) == 60
    for number in range(60):
        one = cast(number)
        assert queue.pods[one.document["metadata"]["uid"]].unschedulable_plugins == set(one.rejectors)
