"""Rounds over pods, readings, restarts and changes of configuration, drawn by a seed, against a plain reading
of the rules.

The plain reading knows one file system, and no names of Kubernetes but the signals'. Amounts are pieces.
"""

from random import Random
from typing import NamedTuple

import pytest

from podyard.node_agent.core.eviction.dialogue import DONE, Answer, Ask, Failed, Kill, Question, Reading, Round
from podyard.node_agent.core.eviction.file_systems import Collector, Layout
from podyard.node_agent.core.eviction.manager import EvictionConfig, EvictionManager
from podyard.node_agent.core.eviction.stats import ContainerStats, FsUsage, Observation, PodStats, Summary
from podyard.node_agent.core.eviction.thresholds import parse_thresholds
from tests.unit.node_agent.make import pod

SEEDS = range(60)
ROUNDS = 60
TRANSITION_S = 60.0
MOST_GRACE_S = 40
CRITICAL = 2_000_000_000


class Rule(NamedTuple):
    signal: str
    below: int
    wait_s: float = 0.0


RULES = (
    Rule("memory.available", 100),
    Rule("memory.available", 300, 15.0),
    Rule("nodefs.available", 100),
    Rule("nodefs.available", 200, 10.0),
    Rule("pid.available", 100, 5.0),
)
"""In the order in which they are served."""

CONDITION = {"memory.available": "MemoryPressure", "nodefs.available": "DiskPressure", "pid.available": "PIDPressure"}


def rules_as_configured() -> EvictionConfig:
    hard = {rule.signal: str(rule.below) for rule in RULES if not rule.wait_s}
    soft = {rule.signal: str(rule.below) for rule in RULES if rule.wait_s}
    return EvictionConfig(
        thresholds=parse_thresholds(
            hard=hard,
            soft=soft,
            soft_grace={rule.signal: f"{rule.wait_s}s" for rule in RULES if rule.wait_s},
            min_reclaim={"nodefs.available": "50", "memory.available": "50"},
            enforce_allocatable=(),
        ),
        transition_s=TRANSITION_S,
        max_pod_grace_s=MOST_GRACE_S,
    )


class Guest:
    """A pod of the walk."""

    def __init__(self, draw: Random, number: int) -> None:
        self.name = f"p{number}"
        self.memory, self.disk, self.processes = draw.randrange(200), draw.randrange(200), draw.randrange(50)
        self.request = draw.choice([0, 50, 150])
        self.limit = draw.choice([0, 0, 0, 190])
        self.priority = draw.choice([-1, 0, 0, 5, CRITICAL]) if draw.random() < 0.9 else 0
        self.grace_s = draw.choice([5, 30, 120])
        self.measured = draw.random() < 0.9
        self.ends_at = float("inf")
        self.pod = pod(
            self.name,
            requests={"memory": str(self.request)} if self.request else {},
            limits={"ephemeral-storage": str(self.limit)} if self.limit else {},
            priority=self.priority,
            grace_s=self.grace_s,
        )

    def rank(self, signal: str) -> tuple[object, ...]:
        """The smaller, the sooner it goes."""
        if signal == "pid.available":
            return (self.priority, self.measured, -self.processes if self.measured else 0, self.name)
        if not self.measured:
            return (False, False, self.priority, 0, self.name)
        used, request = (self.memory, self.request) if signal == "memory.available" else (self.disk, 0)
        return (True, used <= request, self.priority, request - used, self.name)


class Going(NamedTuple):
    signal: str
    soft: bool
    until: float


class Plain:
    """The rules, read plainly."""

    def __init__(self, held: frozenset[str], now: float) -> None:
        self.since: dict[Rule, float] = {}
        self.acted: set[Rule] = set()
        self.seen = dict.fromkeys(held, now)
        self.held = set(held)
        self.last_at: float | None = None
        self.going: dict[str, Going] = {}

    def look(
        self, left: dict[str, int], freed: int, guests: list[Guest], measured: float, now: float, fails: set[str]
    ) -> list[tuple[str, int]]:
        """What goes, with how many seconds."""
        self.going = {name: one for name, one in self.going.items() if name in {guest.name for guest in guests}}
        rules = list(RULES)
        on = [r for r in rules if left[r.signal] < r.below + (self.more(r) if r in self.acted else 0)]
        self.since = {r: self.since.get(r, now) for r in on}
        self.acted = {r for r in on if now - self.since[r] >= r.wait_s}
        self.seen |= {CONDITION[r.signal]: now for r in on}
        self.held = {name for name, at in self.seen.items() if now - at < TRANSITION_S}
        fresh = self.last_at is None or measured > self.last_at
        self.last_at = measured
        over = [
            g
            for g in guests
            if g.measured and g.limit and g.disk > g.limit and g.name not in self.going and g.priority < CRITICAL
        ]
        if over:
            return [self.kill(g, "", 1, now, fails) for g in over]
        busy = any(now < one.until for one in self.going.values())
        acting = [r for r in rules if r in self.acted and fresh and (not r.wait_s or not busy)]
        if not acting:
            return []
        first = acting[0]
        if first.signal == "nodefs.available":
            after = left | {first.signal: left[first.signal] + freed}
            if all(after[r.signal] >= r.below + self.more(r) for r in rules):
                return []
        guests = sorted(guests, key=lambda g: g.rank(first.signal))
        slow = [g for g in guests if self.is_slow(g.name, first.signal)] if not first.wait_s else []
        free = [g for g in guests if g.name not in self.going and g.priority < CRITICAL]
        chosen = (slow or free)[:1]
        return [
            self.kill(g, first.signal, 1 if not first.wait_s else min(MOST_GRACE_S, g.grace_s), now, fails)
            for g in chosen
        ]

    def more(self, rule: Rule) -> int:
        return 50 if rule.signal != "pid.available" else 0

    def is_slow(self, name: str, signal: str) -> bool:
        one = self.going.get(name)
        return one is not None and one.soft and one.signal == signal

    def kill(self, guest: Guest, signal: str, grace_s: int, now: float, fails: set[str]) -> tuple[str, int]:
        if guest.name not in fails:
            self.going[guest.name] = Going(signal, grace_s > 1, now + max(10.0, 1.5 * grace_s))
        return (guest.name, grace_s)


class Walk:
    """The manager beside the plain reading."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.now = 1000.0
        self.measured = 999.0
        self.guests = [Guest(self.draw, number) for number in range(self.draw.randrange(1, 7))]
        self.born = len(self.guests)
        self.manager = EvictionManager(rules_as_configured())
        self.plain = Plain(frozenset(), self.now)
        self.left: dict[str, int] = {}
        self.freed = 0
        self.fails: set[str] = set()
        self.killed = 0

    def turn(self) -> None:
        self.now += self.draw.choice([1, 5, 10, 10, 30])
        self.guests = [guest for guest in self.guests if guest.ends_at > self.now]
        if self.draw.random() < 0.4:
            self.guests.append(Guest(self.draw, self.born))
            self.born += 1
        if self.draw.random() < 0.03:
            self.manager, before = EvictionManager(rules_as_configured()), self.manager
            self.manager.restore(before.conditions, self.now)
            self.plain = Plain(before.conditions, self.now)
        elif self.draw.random() < 0.03:  # another configuration, which says the same
            held, going = self.manager.conditions, self.plain.going
            self.manager = self.manager.restarted(rules_as_configured(), self.now)
            self.plain = Plain(held, self.now)
            self.plain.going = going
        if self.draw.random() < 0.8:
            self.measured = self.now
        self.left = {name: self.draw.choice([20, 99, 100, 120, 160, 220, 310, 900]) for name in CONDITION}
        self.freed = self.draw.choice([0, 50, 900])
        self.fails = {guest.name for guest in self.guests if self.draw.random() < 0.1}
        if self.draw.random() < 0.1:
            self.blind()
        else:
            self.look()

    def blind(self) -> None:
        """A failed reading changes nothing."""
        before = self.manager.conditions, self.manager.first_observed, self.manager.thresholds_met
        assert self.play(reads=False).kills == ()
        assert (self.manager.conditions, self.manager.first_observed, self.manager.thresholds_met) == before

    def look(self) -> None:
        expected = self.plain.look(self.left, self.freed, self.guests, self.measured, self.now, self.fails)
        found = self.play(reads=True)
        assert [(kill.pod.metadata.name, kill.grace_s) for kill in found.kills] == expected
        assert self.manager.conditions == self.plain.held
        for guest in self.guests:
            for name, grace_s in expected:
                if guest.name == name and name not in self.fails:
                    lasts = self.draw.choice([1.0, grace_s, 3.0 * grace_s])  # the last one is stuck
                    guest.ends_at = min(guest.ends_at, self.now + lasts)
                    self.killed += 1

    def play(self, *, reads: bool) -> Round:
        dialogue, freed = self.manager.round(), False
        try:
            ask: Ask = next(dialogue)
            while True:
                freed |= isinstance(ask, Collector)
                ask = dialogue.send(self.answer(ask, freed=freed, reads=reads))
        except StopIteration as done:
            return done.value

    def answer(self, ask: Ask, *, freed: bool, reads: bool) -> Answer:
        match ask:
            case Question.LAYOUT:
                return Layout.SINGLE
            case Question.READING:
                return self.reading(self.freed if freed else 0) if reads else Failed("no answer")
            case Kill():
                return Failed("no runtime") if ask.pod.metadata.name in self.fails else DONE
            case Collector():
                return DONE

    def reading(self, freed: int) -> Reading:
        left = self.left | {"nodefs.available": self.left["nodefs.available"] + freed}
        signals = {
            name: Observation(available=amount, capacity=1000, observed_at=self.measured)
            for name, amount in left.items()
        }
        pods = {
            f"uid-{guest.name}": PodStats(
                memory_bytes=guest.memory,
                processes=guest.processes,
                containers=(ContainerStats(name="main", rootfs=FsUsage(used_bytes=guest.disk)),),
                ephemeral_bytes=guest.disk,
            )
            for guest in self.guests
            if guest.measured
        }
        return Reading(Summary(signals=signals, pods=pods), tuple(guest.pod for guest in self.guests), self.now)


@pytest.mark.parametrize("seed", SEEDS)
def test_rounds_go_as_a_plain_reading_of_the_rules_says(seed: int) -> None:
    walk = Walk(seed)
    for _ in range(ROUNDS):
        walk.turn()
    assert walk.killed
