"""`bench deschedule`: what it measures, and how it is told."""

import itertools
import time
from collections.abc import Generator

import msgspec
import pytest
from rich.console import Console

from podyard.bench import deschedule, drifted
from podyard.bench.render import deschedule as shown_deschedule
from podyard.descheduler.core import registry

PLUGINS = {name for name, plugin in registry.by_name().items() if name != "DefaultEvictor"}


def test_every_plugin_finds_something_in_the_cluster_and_is_told() -> None:
    told: list[str] = []
    result = deschedule.measure(300, 3000, told.append)
    assert told[0] == "300 nodes: placing 3,000 pods"
    shares = {one.plugin: one for one in result.shares}
    assert set(shares) == {*PLUGINS, "DefaultEvictor", deschedule.OTHER}
    assert {name for name in PLUGINS if not shares[name].evicted} <= {"HighNodeUtilization"}
    assert sum(one.evicted for one in result.shares) == result.evicted
    assert result.wall_s >= result.longest_step_s > 0
    assert result.memory_mib > 0
    failed = shares["RemoveFailedPods"].evicted
    assert result.evicted - 2 * failed <= result.planned <= result.evicted - failed, "all but those that have failed"
    assert result.planned >= result.placed > result.planned * 0.9
    assert result.plan_cpu_s > 0
    document = msgspec.json.decode(msgspec.json.encode(result))
    assert set(document["shares"][0]) == {"plugin", "cpu_s", "evicted"}
    console = Console(width=80)
    with console.capture() as written:
        console.print(shown_deschedule.report(result))
    text = " ".join(written.get().split())
    assert all(name in text for name in PLUGINS)
    assert f"{result.evicted:,} pods would go" in text
    assert f"a plan of {result.planned} moves more" in text


def test_in_a_full_cluster_hardly_a_pod_finds_another_node() -> None:
    assert deschedule.measure(300, 3000, full=True).evicted < deschedule.measure(300, 3000).evicted / 2


def test_a_share_is_the_plugins_own_time_without_that_of_whom_it_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "thread_time", itertools.count().__next__)

    class Asked:
        NAME = "asked"

        def filter(self) -> bool:
            return True

    class Asking:
        NAME = "asking"

        def balance(self) -> Generator[str, str, None]:
            evictor.filter()
            assert (yield "first") == "gone"

    watch = deschedule._Watch()
    evictor = deschedule._timed(Asked, watch)()
    run = deschedule._timed(Asking, watch)().balance()
    assert next(run) == "first"
    assert watch.read() == {"asking": 2, "asked": 1}
    with pytest.raises(StopIteration):
        run.send("gone")
    assert watch.read() == {"asking": 3, "asked": 1}


def test_a_cycle_that_breaks_off_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    senseless = {**drifted.policy(), "nodeSelector": "a in (b"}
    monkeypatch.setattr(drifted, "policy", lambda: senseless)
    with pytest.raises(deschedule.IncompleteError, match="broke off"):
        deschedule.measure(20, 40)
