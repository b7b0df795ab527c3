"""Nodes and pods at random, for hours of the core's time, with what must hold of every moment. The walk is
the same each time: its seeds are written here."""

import itertools
import random

import pytest

from podyard.objects import times
from podyard.proto.facts import NodeLifeFact
from podyard.workloads.core.node_life import Hearing, NodeLife, Tick
from tests.unit.workloads.node_stage import Stage, tolerating

ZONE = "topology.kubernetes.io/zone"
NODES = 14
GRACE_S = 50.0
STEPS = 250
TOLERATIONS = (0, 20, 120, 300, None)


class Walk:
    """Beside the stage it keeps by itself what was audible when."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.stage = Stage()
        self.names = [f"n{number:02}" for number in range(NODES)]
        for number, name in enumerate(self.names):
            self.stage.node(name, labels={ZONE: "abc"[number % 3]})
        self.audible_since = self.stage.now
        self.hears = True
        self.sign: dict[str, float] = {}
        self.was: dict[str, NodeLifeFact] = {}
        self.given_up: dict[str, list[float]] = {zone: [] for zone in "abc"}
        self.tolerated: dict[str, tuple[str, float | None]] = {}
        self.checked = 0
        self.lost = 0
        self.pods = 0
        step, beat = self.stage.step, self.stage.beat

        def checked_step(message: object) -> object:
            effects = step(message)  # type: ignore[arg-type]
            self.check()
            return effects

        def noted_beat(names: list[str]) -> None:
            if self.stage.reaches:
                self.sign.update(dict.fromkeys(names, self.stage.now))
            beat(names)

        self.stage.step = checked_step  # type: ignore[assignment,method-assign]
        self.stage.beat = noted_beat  # type: ignore[assignment,method-assign]

    def go(self) -> None:
        moves = (self.silence, self.silence, self.wake, self.wake, self.pod, self.pod, self.deafen, self.stop,
                 self.take_over, self.relist, self.silence_zone, self.wake_all)  # fmt: skip
        for _ in range(STEPS):
            self.random.choice(moves)()
            self.stage.pass_time(self.random.choice((0.3, 4.0, 15.0, 60.0)))

    # ---- what happens

    def silence(self) -> None:
        self.stage.alive.discard(self.random.choice(self.names))

    def silence_zone(self) -> None:
        first = self.random.randrange(3)
        self.stage.alive.difference_update(self.names[first::3])

    def wake(self) -> None:
        self.stage.alive.add(self.random.choice(self.names))

    def wake_all(self) -> None:
        self.stage.alive.update(self.names)

    def pod(self) -> None:
        self.pods += 1
        seconds = self.random.choice(TOLERATIONS)
        node = self.random.choice(self.names)
        self.tolerated[f"p{self.pods}"] = node, seconds
        self.stage.pod(f"p{self.pods}", node, *([] if seconds == 0 else [tolerating(seconds)]))

    def deafen(self) -> None:
        if self.hears:
            self.stage.reaches = self.hears = False
            self.stage.step(Hearing(False))
        else:
            self.hear()

    def hear(self) -> None:
        self.stage.reaches = self.hears = True
        self.audible_since = self.stage.now
        self.stage.step(Hearing(True))

    def stop(self) -> None:
        """The process stands still, and what agents sent meanwhile is read after the first tick."""
        self.stage.now += self.random.choice((8.0, 90.0, 400.0))
        self.audible_since = self.stage.now
        self.stage.step(Tick())

    def take_over(self) -> None:
        self.audible_since = self.stage.now
        self.hears = self.stage.reaches = True
        self.stage.begin()

    def relist(self) -> None:
        self.stage.relist()

    # ---- what must hold

    def check(self) -> None:
        stage, view = self.stage, self.stage.view
        for name, life in view.node_lives.items():
            before = self.was.get(name)
            if _is_lost(life) and not (before is not None and _is_lost(before)):
                self.lost += 1
                silent_since = max(self.audible_since, self.sign.get(name, 0.0))
                assert self.hears, f"{name} was declared lost by who hears nothing"
                assert stage.now > silent_since + GRACE_S, f"{name} was silent for {stage.now - silent_since} s only"
            if _is_given_up(life) and not (before is not None and _is_given_up(before)):
                self.given_up["abc"[self.names.index(name) % 3]].append(stage.now)
        self.was = dict(view.node_lives)
        for at, pod in stage.deletions[self.checked :]:
            node, seconds = self.tolerated[pod]
            taints = [one for one in view.nodes[node].node.spec.taints if one.effect == "NoExecute"]
            assert taints, f"{pod} was ended, and {node} has no taint"
            assert seconds is not None, f"{pod} tolerates for ever"
            assert at >= times.seconds_of(taints[0].time_added or "") + seconds, f"{pod} was ended too early"
        self.checked = len(stage.deletions)


def _is_lost(life: NodeLifeFact) -> bool:
    return bool(life.conditions)


def _is_given_up(life: NodeLifeFact) -> bool:
    return any(taint.effect == "NoExecute" for taint in life.taints)


@pytest.mark.parametrize("seed", range(4))
def test_nobody_is_lost_or_ended_before_it_may_be(seed: int) -> None:
    walk = Walk(seed)
    walk.go()
    assert walk.lost > 10, "the walk led nowhere"
    assert len(walk.stage.deletions) > 3, "the walk led nowhere"


def test_a_zone_gives_up_one_node_in_ten_seconds_whatever_happens() -> None:
    """Without take-overs: a term's bucket is full at first."""
    walk = Walk(11)
    walk.take_over = lambda: None  # type: ignore[method-assign]
    walk.go()
    assert sum(map(len, walk.given_up.values())) > 10, "the walk led nowhere"
    for given_up in walk.given_up.values():
        for first, second in itertools.pairwise(given_up):
            assert second - first >= 10.0 - 1e-6, "two within ten seconds"


def test_the_walk_would_notice(monkeypatch: pytest.MonkeyPatch) -> None:
    """A core that does not begin to listen anew is found out."""
    monkeypatch.setattr(NodeLife, "_begin_hearing", lambda self, now: setattr(self, "_hears_since", 0.0))
    walk = Walk(0)
    with pytest.raises(AssertionError, match="was silent for"):
        walk.go()
