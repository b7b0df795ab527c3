"""Random walks over pods that are processes: bound, ended by themselves, deleted, given up, evicted, with
agents that die at any moment. What the host was ordered is held against a plain reading of the rules."""

import random
from typing import Any

import pytest

from podyard.node_agent.core import effects
from podyard.node_agent.core.effects import LookUpPod, StartContainer, StopPod
from podyard.node_agent.core.eviction.dialogue import DONE, Question
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.messages import (
    Answered,
    ContainerEnded,
    ContainerStarted,
    Found,
    Message,
    Noticed,
    Planned,
    PodGone,
    Run,
    RunEnd,
)
from podyard.node_agent.core.programs import Program
from podyard.objects.pod import Pod
from podyard.proto.facts import PodStatusFact
from tests.unit.node_agent.host_stage import HostStage, measured
from tests.unit.node_agent.make import MEBIBYTE, deleted, node, pod, view

STEPS = 500
WALKS = 40
DELETED_AT = "2026-01-01T00:00:00Z"


class Walk:
    """One host with agents one after the other, and what is known of it."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now = 1000.0
        self.pods: dict[str, Pod] = {}
        """Bound pods whose object lives, by uid."""
        self.facts: dict[str, PodStatusFact] = {}
        self.runs: dict[tuple[str, str], Run] = {}
        """On the host: the last run of each container whose pod was not removed."""
        self.orders: list[effects.Effect] = []
        """Not carried out yet."""
        self.low = False
        self.number = 0
        self.seen_attempts: dict[tuple[str, str], int] = {}
        self.begin()

    # the agent

    def begin(self) -> None:
        """An agent dies, whatever it was about; another one goes on."""
        self.orders = []
        self.agent = HostStage(runs=True)
        found: dict[str, list[Run]] = {}
        for (uid, _), run in self.runs.items():
            found.setdefault(uid, []).append(run)
        self.tell(Found(found))
        bound = [view(one, status=self.facts.get(uid)) for uid, one in self.pods.items()]
        self.take(self.agent.node_seen(node(), bound, self.now))

    def tell(self, message: Message) -> None:
        self.take(self.agent.step(message, self.now))

    def take(self, found: list[effects.Effect]) -> None:
        for one in found:
            match one:
                case effects.PutPodStatus(fact):
                    self.note(fact)
                case effects.RemovePodStatus(_, _, _, uid):
                    self.facts.pop(uid, None)
                case effects.AskHost(ticket, _, ask):
                    read = measured((50 if self.low else 4096) * MEBIBYTE, at=self.now)
                    answers: dict[Any, Any] = {Question.LAYOUT: Layout.SINGLE, Question.READING: read}
                    if isinstance(ask, effects.KillPod):
                        self.orders.append(StopPod(ask.uid, ask.grace_s))
                    self.tell(Answered(ticket, answers.get(ask, DONE)))
                case LookUpPod() | StartContainer() | StopPod():
                    self.orders.append(one)
                case _:
                    pass

    def note(self, fact: PodStatusFact) -> None:
        """Nothing runs of a pod that is said to have ended, and it stays so."""
        before = self.facts.get(fact.uid)
        assert before is None or not before.ended or fact.ended, f"{fact.name} lives again"
        if fact.ended:
            assert not self.alive(fact.uid), f"{fact.name} is said to have ended, and runs"
        self.facts[fact.uid] = fact

    # the host

    def alive(self, uid: str) -> list[tuple[str, str]]:
        return [key for key, run in self.runs.items() if key[0] == uid and run.end is None]

    def carry_out(self) -> None:
        """One of the orders; those of one pod in their order."""
        if not self.orders:
            return
        uids = [one.uid if isinstance(one, StopPod) else one.about.uid for one in self.orders]  # type: ignore[attr-defined]
        uid = self.random.choice(uids)
        match self.orders.pop(uids.index(uid)):
            case LookUpPod():
                if uid in self.pods:
                    self.tell(
                        Planned(uid, {one.name: Program(argv=("run",)) for one in self.pods[uid].spec.containers})
                    )
            case StartContainer(_, name, attempt):
                self.start(uid, name, attempt)
            case StopPod():
                for key in self.alive(uid):
                    self.end(key, 143)
                if self.random.random() < 0.1:
                    self.begin()  # it has ended, and nobody was told
                    return
                self.tell(PodGone(uid))
                self.runs = {key: run for key, run in self.runs.items() if key[0] != uid}
            case _:
                pass

    def stops(self, uid: str) -> bool:
        """Whether its end is ordered."""
        return any(isinstance(one, StopPod) and one.uid == uid for one in self.orders)

    def check(self) -> None:
        """Who has no business any more on the host is being ended."""
        for uid in {key[0] for key, run in self.runs.items() if run.end is None}:
            one = self.pods.get(uid)
            if one is None or one.metadata.deletion_timestamp:
                assert self.stops(uid), f"{uid} runs, is {'gone' if one is None else 'deleted'}, and nobody ends it"

    def start(self, uid: str, name: str, attempt: int) -> None:
        key = (uid, name)
        before = self.runs.get(key)
        assert before is None or before.end is not None, f"{key} runs already"
        assert attempt > self.seen_attempts.get(key, -1), f"run {attempt} of {key} was started before"
        self.seen_attempts[key] = attempt
        assert uid in self.pods or self.stops(uid), f"{key} was started, and its pod is gone"
        policy = self.pods[uid].spec.restart_policy if uid in self.pods else "Always"
        assert attempt == 0 or policy != "Never", f"{key} was started again"
        ended_well = before is not None and before.end is not None and not before.end.code
        assert policy == "Always" or not ended_well, f"{key} had ended well, and was started again"
        if self.random.random() < 0.2:
            self.runs[key] = Run(name, attempt, self.now, RunEnd(128, self.now, "StartError"))
            self.tell(ContainerEnded(uid, name, attempt, self.now, RunEnd(128, self.now, "StartError", "no")))
            return
        self.runs[key] = Run(name, attempt, self.now)
        if self.random.random() < 0.1:
            self.begin()  # it was started, and nobody was told
        else:
            self.tell(ContainerStarted(uid, name, attempt, self.now))

    def end(self, key: tuple[str, str], code: int, *, told: bool = True) -> None:
        run = self.runs[key] = self.runs[key]._replace(end=RunEnd(code, self.now))
        if told:
            assert run.end is not None
            self.tell(ContainerEnded(*key, run.attempt, run.started_at, run.end))

    # what happens

    def step(self) -> None:
        self.now += self.random.choice((0.0, 0.0, 0.1, 1.0, 12.0))
        self.take(self.agent.tick(self.now))
        match self.random.randrange(24):
            case 0 | 1:
                self.bind()
            case 2 if self.pods:
                self.delete(self.random.choice([*self.pods]))
            case 3 if self.pods and len(self.pods) > 3:
                self.give_up(self.random.choice([*self.pods]))
            case 4 | 5 | 7:
                running = [key for key, run in self.runs.items() if run.end is None]
                if running:
                    self.end(self.random.choice(running), self.random.choice((0, 1)))
            case 8:
                self.low = self.random.random() < 0.3
                self.tell(Noticed("n1"))
            case 9 if self.random.random() < 0.4:
                running = [key for key, run in self.runs.items() if run.end is None]
                if running:
                    self.end(self.random.choice(running), 0, told=False)
                self.begin()
            case _:
                self.carry_out()

    def bind(self) -> None:
        self.number += 1
        policy = self.random.choice(("Always", "OnFailure", "Never"))
        parts = [{"name": name} for name in ("main", "other")[: self.random.randint(1, 2)]]
        made = pod(f"p{self.number}", requests={"cpu": "1m"}, spec={"restartPolicy": policy, "containers": parts})
        self.pods[made.metadata.uid] = made
        self.take(self.agent.pod_seen(view(made), self.now, self.now))

    def delete(self, uid: str) -> None:
        self.pods[uid] = deleted(self.pods[uid], DELETED_AT, self.random.choice((0, 5, 30)))
        self.take(self.agent.pod_seen(view(self.pods[uid], status=self.facts.get(uid)), self.now, self.now))

    def give_up(self, uid: str) -> None:
        """Its object goes."""
        del self.pods[uid]
        self.take(self.agent.pod_gone(uid, self.now))

    def settle(self) -> None:
        """Nobody does anything more but the agent and the host."""
        self.low = False
        for _ in range(400):
            self.carry_out()
            if not self.orders:
                self.now += 1.0
                self.take(self.agent.tick(self.now))


@pytest.mark.parametrize("seed", range(WALKS))
def test_nothing_is_started_twice_and_nothing_stays(seed: int):
    walk = Walk(seed)
    for _ in range(STEPS):
        walk.step()
        walk.check()
    walk.settle()
    over = {uid for uid, fact in walk.facts.items() if fact.ended}
    stopping = {uid for uid, one in walk.pods.items() if one.metadata.deletion_timestamp}
    assert stopping <= over, "what was to end has ended"
    for key, run in walk.runs.items():
        if run.end is None:
            assert key[0] in walk.pods, f"{key} runs, and its pod is gone"
            assert key[0] not in over, f"{key} runs, and its pod has ended"
    for uid, one in walk.pods.items():
        if one.spec.restart_policy == "Always" and uid not in over:
            expected = {(uid, part.name) for part in one.spec.containers}
            backing_off = any(part.reason for part in walk.facts[uid].containers)
            assert backing_off or set(walk.alive(uid)) == expected, f"{one.metadata.name} does not run"
    assert walk.number > 10
