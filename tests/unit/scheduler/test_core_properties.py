"""Safety and liveness of the scheduler's core under random orders of events.

Safety: no node is overcommitted by what is bound and assumed; at most one decision of a pod is unanswered.
Liveness: every popped attempt ends in a result, and when everything is answered and seen, the table counts
exactly what is bound.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from podyard.cluster.pods import PodView
from podyard.cluster.room import CPU
from podyard.proto.binder_api import Decision
from podyard.proto.placement import BoundPod
from podyard.scheduler.core.effects import Bind
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.scheduler.play import Play


class CoreMachine(RuleBasedStateMachine):
    """Queue, cluster and binder do as they please."""

    def __init__(self) -> None:
        super().__init__()
        self.play = Play(make_node("a", cpu="2"), make_node("b", cpu="1"))
        self.pods: list[PodView] = []
        self.asked: dict[str, Decision] = {}
        """Unanswered decisions, by uid."""
        self.unseen: dict[str, Decision] = {}
        """Committed and not shown in the view."""
        self.popped: set[str] = set()
        self.committed: set[str] = set()

    @property
    def table(self) -> Any:
        return self.play.core._placing.table  # pyright: ignore[reportPrivateUsage] - what the safety property is about

    def take(self) -> None:
        """New requests reach the binder."""
        for effect in self.play.of(Bind):
            for decision in effect.request.decisions:
                assert decision.uid not in self.asked, "two unanswered decisions of one pod"
                assert decision.uid not in self.committed, "a decision for a pod that this scheduler knows to be bound"
                self.asked[decision.uid] = decision
        self.play.effects = [effect for effect in self.play.effects if not isinstance(effect, Bind)]

    @rule(cpu=st.sampled_from([100, 400, 900]))
    def create(self, cpu: int) -> None:
        pod = make_pod(f"p{len(self.pods)}", cpu=f"{cpu}m")
        self.pods.append(pod)
        self.play.add(pod)

    @rule(choice=st.integers(0, 100), ahead=st.integers(0, 1), epoch=st.just(1))
    @precondition(lambda self: self.pods)
    def pop(self, choice: int, ahead: int, epoch: int) -> None:
        pod = self.pods[choice % len(self.pods)]
        if pod.key in self.play.view.pods and pod.uid not in self.committed:
            self.popped.update(self.play.pop(pod, ahead=ahead, epoch=epoch))

    @rule(limit=st.integers(1, 3))
    def work(self, limit: int) -> None:
        self.play.work(limit)
        self.take()

    @rule(choice=st.integers(0, 100), result=st.sampled_from(["bound", "bound", "conflict", "error", "gone"]))
    @precondition(lambda self: self.asked)
    def answer(self, choice: int, result: str) -> None:
        uid = sorted(self.asked)[choice % len(self.asked)]
        decision = self.asked.pop(uid)
        if result == "bound":
            self.committed.add(uid)
            self.unseen[uid] = decision
        self.play.answer(decision, result, cause="x", ahead=choice % 2)  # pyright: ignore[reportArgumentType]
        self.take()

    @rule(choice=st.integers(0, 100))
    @precondition(lambda self: self.unseen)
    def see(self, choice: int) -> None:
        uid = sorted(self.unseen)[choice % len(self.unseen)]
        self.play.bind(self.unseen.pop(uid))

    @rule(choice=st.integers(0, 100))
    @precondition(lambda self: self.pods)
    def delete(self, choice: int) -> None:
        pod = self.pods[choice % len(self.pods)]
        if pod.key in self.play.view.pods and pod.uid not in self.committed:
            self.play.delete(pod)

    @rule()
    def something_else_happens(self) -> None:
        self.play.set_node(make_node("a", cpu="2"))

    @invariant()
    def no_node_is_overcommitted(self) -> None:
        table = self.table
        assert (table.room.requested[CPU] <= table.room.allocatable[CPU]).all()

    def teardown(self) -> None:
        """Let everything come to rest."""
        for _ in range(8):
            self.something_else_happens()
            self.play.work()
            self.take()
            for uid in sorted(self.asked):
                decision = self.asked.pop(uid)
                self.committed.add(uid)
                self.unseen[uid] = decision
                self.play.answer(decision, "bound")
            self.take()
        for uid in sorted(self.unseen):
            self.play.bind(self.unseen.pop(uid))
        assert self.popped <= {result.attempt for result in self.play.results()}
        assert self.play.core.unanswered == 0
        bound = [one for one in self.play.view.placements.values() if isinstance(one, BoundPod)]
        assert self.table.pod_count.sum() == len(bound)
        assert self.table.room.requested[CPU].sum() == sum(one.usage.requests["cpu"] for one in bound)


CoreMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
test_nothing_is_lost_and_nothing_is_overcommitted = CoreMachine.TestCase
