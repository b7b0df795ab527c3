"""The filters may be skipped only if they would say yes (docs/rules.md, skip-only-what-was-counted-on). The
argument stands in `binder.core.skipping`; here is the trial."""

import random
from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from podyard.binder.core import effects, node_takes_pod
from podyard.binder.core.world import World
from podyard.proto.facts import Nomination
from tests.support import stored, verified_skips
from tests.unit.binder.schedulers import Lagging, Puller, any_spec
from tests.unit.binder.stage import GATHER_S, uid_of

NODES = 4
OFTEN = {"pods": 4, "decide": 8, "send": 10, "time": 6, "answers": 5, "follow": 2}
SELDOM = (
    *("late request", "twice", "relabel", "relabel bound", "delete", "end", "force", "node", "taint", "nominate"),
    *("lost", "lost ack", "late", "stall", "take over", "list", "list binder", "session", "status"),
)
MENU = [*(step for step, weight in OFTEN.items() for _ in range(weight)), *SELDOM]


@pytest.fixture(autouse=True)
def verified(monkeypatch: pytest.MonkeyPatch) -> None:
    """After each skip the filters are asked all the same; the binder raises if they say no."""
    monkeypatch.setattr(node_takes_pod, "judge", verified_skips.judge)


class Drawn:
    """A run: several schedulers, a binder and its successors, and whatever the steps say. Equal for equal
    steps and seeds."""

    def __init__(self, steps: list[str], seed: int) -> None:
        self.chance = random.Random(seed)
        self.stage = stage = Lagging()
        for number in range(NODES):
            stage.zoned_node(f"n{number}", f"z{number % 2}")
        self.binder = stage.serving("binder-0")
        self.pullers = [Puller(stage, f"s{number}") for number in range(self.chance.choice([1, 1, 2, 3]))]
        self.names: list[str] = []
        self.binders = [self.binder]
        for step in steps:
            getattr(self, "do_" + step.replace(" ", "_"))()
        for _ in range(3):
            self.do_time()
            self.do_answers()

    @property
    def skipped(self) -> int:
        return sum(done.skipped for binder in self.binders for done in binder.of(effects.Committed))

    @property
    def verdicts(self) -> list[tuple[str, str, str, str]]:
        return [
            (one.decision.attempt, one.answer.result, one.answer.node, one.answer.cause)
            for binder in self.binders
            for settled in binder.of(effects.Settled)
            for one in settled.outcomes
        ]

    # ---- the schedulers and the binder

    def puller(self) -> Puller:
        return self.chance.choice(self.pullers)

    def do_pods(self) -> None:
        for _ in range(self.chance.randint(1, 4)):
            name, app = f"p{len(self.names)}", self.chance.choice("abc")
            self.names.append(name)
            self.stage.labelled_pod(name, app, **any_spec(self.chance, app))

    def do_follow(self) -> None:
        puller = self.puller()
        puller.follow(self.chance.randint(puller.position, self.stage.stream.last))

    def do_decide(self) -> None:
        puller = self.puller()
        if self.chance.random() < 0.8:
            puller.follow()
        puller.decide(*self.chance.sample(self.names, min(len(self.names), self.chance.randint(1, 6))))

    def do_send(self, keep: bool = False, at: int = 0) -> None:
        puller = self.puller()
        if len(puller.outbox) > at:
            puller.send(self.binder, at, keep=keep)

    def do_late_request(self) -> None:
        self.do_send(at=1)

    def do_twice(self) -> None:
        self.do_send(keep=True)

    def do_time(self) -> None:
        self.stage.pass_time(GATHER_S)
        self.stage.pass_time(0.003)

    def do_answers(self) -> None:
        for puller in self.pullers:
            if self.chance.random() < 0.7:
                puller.take_answers(self.binder)

    def do_session(self) -> None:
        self.puller().begin_anew()

    def do_list(self) -> None:
        self.puller().list_all()

    def do_list_binder(self) -> None:
        self.binder.list_all()
        self.binder.step(effects.Listed(self.binder.tombstones()))

    def do_take_over(self) -> None:
        self.binder = self.stage.term(f"binder-{len(self.binders)}")
        self.binders.append(self.binder)
        self.binder.elect()
        for puller in self.pullers:
            puller.outbox += puller.sent.values()
            puller.sent.clear()

    def do_lost(self) -> None:
        self.binder.faults.append("lost")

    def do_lost_ack(self) -> None:
        self.binder.faults.append("lost ack")

    def do_late(self) -> None:
        self.binder.faults.append("late")

    def do_stall(self) -> None:
        for answer in self.binder.release_held():
            self.binder.step(answer)

    # ---- the cluster

    def any_of(self, wanted: Callable[[str], bool]) -> str | None:
        found = [name for name in self.names if f"cluster.pods.default.{name}" in self.stage.stream.messages]
        found = [name for name in found if wanted(name)]
        return self.chance.choice(found) if found else None

    def is_bound(self, name: str) -> bool:
        return name in self.stage.stream.live()

    def do_relabel(self) -> None:
        name = self.any_of(lambda name: not self.is_bound(name))
        if name is not None:
            app = self.chance.choice("abc")
            self.stage.labelled_pod(name, app, **any_spec(self.chance, app))

    def do_relabel_bound(self) -> None:
        name = self.any_of(self.is_bound)
        if name is not None:
            self.stage.labelled_pod(name, self.chance.choice("abc"))

    def do_delete(self) -> None:
        name = self.any_of(lambda name: True)
        if name is not None:
            self.stage.remove("pods", name)
            self.names.remove(name)

    def do_end(self) -> None:
        name = self.any_of(self.is_bound)
        if name is not None:
            self.stage.status(name, node=self.stage.stream.live()[name])

    def do_status(self) -> None:
        name = self.any_of(self.is_bound)
        if name is not None:
            self.stage.status(name, node=self.stage.stream.live()[name], ended=False, phase="Running")

    def do_force(self) -> None:
        name = f"p{len(self.names)}"
        self.names.append(name)
        self.stage.labelled_pod(name, self.chance.choice("abc"), nodeName=f"n{self.chance.randrange(NODES)}")

    def do_node(self) -> None:
        number = self.chance.randrange(NODES)
        if self.chance.random() < 0.3:
            self.stage.remove("nodes", f"n{number}")
        self.stage.zoned_node(f"n{number}", f"z{self.chance.randrange(2)}")

    def do_taint(self) -> None:
        number = self.chance.randrange(NODES)
        taints = [{"key": "k", "value": "v", "effect": "NoSchedule"}] if self.chance.random() < 0.6 else []
        self.stage.zoned_node(f"n{number}", f"z{number % 2}", taints=taints)

    def do_nominate(self) -> None:
        name = self.any_of(lambda name: not self.is_bound(name))
        if name is not None:
            node = self.chance.choice(["", f"n{self.chance.randrange(NODES)}"])
            fact = Nomination(namespace="default", name=name, uid=uid_of(name), node=node, priority=0)
            self.stage.stream.put(stored.nomination(fact))


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(st.sampled_from(MENU), min_size=10, max_size=70), seed=st.integers(0, 2**32))
def test_judged_with_skips_and_always_filtered_the_verdicts_are_the_same(steps: list[str], seed: int) -> None:
    skipping_run = Drawn(steps, seed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(World, "may_skip", lambda world, pending: False)
        filtering_run = Drawn(steps, seed)
    assert filtering_run.skipped == 0
    assert skipping_run.verdicts == filtering_run.verdicts
    assert skipping_run.stage.stream.messages.keys() == filtering_run.stage.stream.messages.keys()


def test_skips_happen_in_such_runs_and_filters_say_no_in_them() -> None:
    """Or the property above would say nothing. A fixed set of runs: about one binding of four is made without
    the filters."""
    runs = [Drawn(random.Random(seed).choices(MENU, k=60), seed) for seed in range(25)]
    assert sum(run.skipped for run in runs) > 30
    causes = {cause for run in runs for _, _, _, cause in run.verdicts}
    assert {"InterPodAffinity", "PodTopologySpread", "TaintToleration", "podGone", "alreadyBound"} <= causes
