"""The README's tour is real: each of its commands, played in order, prints what the README shows."""

import time
from pathlib import Path
from typing import Final

import anyio
import pytest

from podyard.bus import BusSettings, connect
from podyard.cli.demo.evidence import Evidence, gather
from tests.e2e.played import lab, masked, of_tour
from tests.e2e.stage import WITHIN_S, cli

ROOT: Final = Path(__file__).parents[2]
README: Final = ROOT / "README.md"
BACKOFF_S: Final = 2.0
"""The first backoff is over 2 s after the attempt at the latest: a reader is never that fast."""

WEB_PODS: Final = 4
"""Replicas in examples/tour/web.yaml."""


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("18:07:06.647  bound to node-4", "01:02:03.004  bound to node-4"),
        ("uid 898a0579-32a8-4365-8435-d8cce98c7a99 · created 10s ago", "uid 12345678-32a8-4365-8435-d8cce98c7a99 · created 1m2s ago"),
        ("done by cli:root: one more CPU", "done by cli:somebody: one more CPU"),
        (
            "web-546549b95b-5r8d9   1/1     Running   0          3s    <none>   node-2   <none>",
            "web-546549b95b-zzzzz   1/1     Running   0          12s   <none>   node-1   <none>",
        ),
        (
            "web-546549b95b-24m5s   1/1     Running   0          3s    <none>   node-2   <none>",
            "web-546549b95b-zzzzz   1/1     Running   0          12s   <none>   node-1   <none>",
        ),
    ],
)  # fmt: skip
def test_what_differs_from_run_to_run_is_masked(one: str, other: str) -> None:
    assert masked(one) == masked(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("18:07:06.647  bound to node-4", "18:07:06.647  bound to node-3"),
        ("attempt 2: scheduled", "attempt 3: scheduled"),
        ("done by cli:root: one more CPU", "done by cli:root"),
        ("web-546549b95b-5r8d9   1/1     Running  ", "web-546549b95b-5r8d9   0/1     Pending  "),
    ],
)
def test_what_a_reader_learns_is_not_masked(one: str, other: str) -> None:
    assert masked(one) != masked(other)


@pytest.mark.timeout(180)
async def test_the_tour_prints_what_the_readme_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    up, *tour = of_tour(README.read_text(encoding="utf-8"))
    assert up.words[0] == "up"
    assert len(tour) >= 6
    async with (
        lab(up.words, tmp_path) as url,
        connect(BusSettings(servers=(url,), name="test", service="test")) as bus,
        gather(bus) as seen,
    ):
        await seen.until("the nodes", lambda: len(seen.view.nodes) == int(up.words[-1]), WITHIN_S)
        for shown in tour:
            await as_a_reader(seen, shown.words)
            done = await cli(*shown.words, url=url)
            assert masked(done.out + done.err) == masked(shown.output), str(shown)
            assert done.code == (2 if shown.output.startswith("error: ") else 0)


async def as_a_reader(seen: Evidence, words: list[str]) -> None:
    """Wait until what a person would have waited for has happened."""
    if words[0] == "get":
        await seen.until("the web pods running", lambda: len(seen.running("web")) == WEB_PODS, WITHIN_S)
        first = await seen.until("an attempt in vain", lambda: seen.attempts[:1], WITHIN_S)
        await anyio.sleep(max(0.0, first[0].at + BACKOFF_S - time.time()))
    if words[0] == "explain":
        await seen.until("the pod running", lambda: is_running(seen, words[-1]), WITHIN_S)


def is_running(seen: Evidence, name: str) -> bool:
    """Whether a pod of namespace `default` runs."""
    pod = seen.view.pods.get(("default", name))
    return pod is not None and pod.status is not None and pod.status.phase == "Running"
