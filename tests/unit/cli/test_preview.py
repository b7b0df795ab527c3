"""Whom a node would evict, as a table and as JSON."""

import json

import pytest

from podyard.cli import app
from podyard.cli.commands import eviction
from podyard.cli.render import preview as rendered
from podyard.objects import times
from podyard.proto.agents_api import (
    PreviewedCollection,
    PreviewedPod,
    PreviewedThreshold,
    PreviewReply,
    PreviewRequest,
    SparedPod,
)

AT = 1_800_000_000.0
MEBIBYTE = 2**20
GIBIBYTE = 2**30


def went(name: str, at: float, **more: object) -> PreviewedPod:
    said = {"namespace": "default", "uid": f"uid-{name}", "signal": "memory.available", "by": "usage"} | more
    return PreviewedPod(name=name, at=AT + at, **said)  # type: ignore[arg-type]


REPLY = PreviewReply(
    node="node-1",
    at=AT,
    conditions=("MemoryPressure",),
    thresholds=(
        PreviewedThreshold(
            signal="memory.available",
            value="100Mi",
            state="acts",
            available=50 * MEBIBYTE,
            capacity=8 * GIBIBYTE,
            min_reclaim="1Gi",
        ),
        PreviewedThreshold(
            signal="memory.available",
            value="500Mi",
            state="waits",
            grace_s=90,
            until=AT + 75,
            available=50 * MEBIBYTE,
            capacity=8 * GIBIBYTE,
        ),
        PreviewedThreshold(signal="nodefs.inodesFree", value="5%", state="notMet", available=7000, capacity=100000),
        PreviewedThreshold(signal="imagefs.available", value="15%", state="notObserved", grace_s=60),
    ),
    collections=(PreviewedCollection(what="images", resource="ephemeral-storage", at=AT),),
    pods=(
        went("greedy-5d9c7b8f4-x2x8q", 0, used=3 * GIBIBYTE // 2, request=GIBIBYTE, over=GIBIBYTE // 2, by="request"),
        went("web", 1, priority=1000, used=100, request=2 * GIBIBYTE, by="last"),
        went("logs", 2, signal="ephemeralpodfs.limit", by="limit"),
    ),
    spared=(SparedPod(namespace="kube-system", name="dns", uid="u", why="critical: priority 2000001000"),),
    left_out=4,
)

TABLE = """\
node-1: MemoryPressure

THRESHOLD                LEFT   OF       STATE
memory.available<100Mi   50Mi   8Gi      acts, held until 1Gi more
memory.available<500Mi   50Mi   8Gi      soft, waits 75s more
nodefs.inodesFree<5%     7000   100000   not met
imagefs.available<15%                    soft (60s), not observed

would collect images, for ephemeral-storage

would go for memory.available, in this order while nothing gets better:
    POD                              WHEN    PRIO   USED    REQUEST   BY
1   default/greedy-5d9c7b8f4-x2x8q   now     0      1.5Gi   1Gi       request
2   default/web                      in 1s   1000   100     2Gi       last

would go for ephemeralpodfs.limit, in this order while nothing gets better:
    POD            WHEN    PRIO   USED   REQUEST   BY
3   default/logs   in 2s   0                       its limit
... and 4 more: raise --limit
BY: what puts a pod before the next; USED, REQUEST: of what is to be relieved

SPARED            WHY
kube-system/dns   critical: priority 2000001000"""


def test_the_table():
    assert "\n".join(rendered.lines(REPLY)) == TABLE


def test_the_table_reads_well_at_80_columns():
    assert max(map(len, rendered.lines(REPLY))) <= 80


def test_a_calm_node_and_a_round_that_fails():
    assert rendered.lines(PreviewReply(node="n", at=AT))[-1] == "no pod would go"
    failing = rendered.lines(PreviewReply(node="n", at=AT, faults=("eviction manager: no device",)))
    assert failing[-1] == "the round fails: eviction manager: no device"
    assert "no pod would go" not in failing


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list[object]:
    """The command, with an agent that says REPLY; what it was asked."""
    asked: list[object] = []

    async def ask(bus: object, request: object) -> PreviewReply:
        asked.append(request)
        return REPLY

    def with_a_bus(nats: object, work: object) -> int:
        del nats
        with pytest.raises(StopIteration) as done:
            work(None).send(None)  # type: ignore[operator]
        return done.value.value

    monkeypatch.setattr(eviction, "ask", ask)
    monkeypatch.setattr("podyard.cli.session.run", with_a_bus)
    assert app.run(["eviction", "preview", *arguments]) == 0
    return asked


def test_json_has_all_of_the_reply(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    run(monkeypatch, "node-1", "-o", "json")
    said = json.loads(capsys.readouterr().out)
    assert [(pod["name"], pod["by"]) for pod in said["pods"]] == [
        ("greedy-5d9c7b8f4-x2x8q", "request"),
        ("web", "last"),
        ("logs", "limit"),
    ]
    assert (said["thresholds"][1]["until"], said["leftOut"], said["spared"][0]["name"]) == (
        times.rfc3339_micro(AT + 75),
        4,
        "dns",
    )


def test_signals_and_limit_are_asked_for(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    given = ("--signal", "memory.available=200Mi", "--signal", "pid.available=5 of 10")
    (asked,) = run(monkeypatch, "node-1", *given, "--limit", "3")
    signals = {"memory.available": "200Mi", "pid.available": "5 of 10"}
    assert asked == PreviewRequest(node="node-1", signals=signals, limit=3)
    assert capsys.readouterr().out == TABLE + "\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--signal", "memory.available"), "expected SIGNAL=AVAILABLE"),
        (("--signal", "a=1", "--signal", "a=2"), "each signal once"),
        (("--limit", "0"), "must be from 1 to 110"),
    ],
)
def test_what_makes_no_sense_is_told_before_anybody_is_asked(
    arguments: tuple[str, ...], told: str, capsys: pytest.CaptureFixture[str]
):
    assert app.run(["eviction", "preview", "n", *arguments]) == 2
    assert told in capsys.readouterr().err
