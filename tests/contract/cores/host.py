"""The node agent with a host: rounds that ask, answers that come late or fail, processes that start, end, are
evicted and found again, and a node that goes while its round waits."""

from podyard.node_agent.agent_view import AgentView
from podyard.node_agent.core import effects
from podyard.node_agent.core.agent import Agent
from podyard.node_agent.core.effects import AskHost, KillPod, LookUpPod, StartContainer, StopPod
from podyard.node_agent.core.eviction.dialogue import DONE, Failed, Question
from podyard.node_agent.core.eviction.file_systems import Layout
from podyard.node_agent.core.host_node import Host, HostAnswer
from podyard.node_agent.core.messages import (
    Answered,
    ContainerEnded,
    ContainerStarted,
    Found,
    Measured,
    Noticed,
    Planned,
    PodGone,
    Run,
    RunEnd,
    Tick,
)
from podyard.node_agent.core.programs import Faults, Program
from podyard.node_agent.core.real_pod import Order
from tests.contract.cores import node_agent
from tests.contract.cores.node_agent import MEBIBYTE
from tests.contract.cores.recording import Case
from tests.unit.node_agent.host_stage import measured

HOST = Host("n1", runs=True)


def begin() -> tuple[Agent, AgentView]:
    return node_agent.begin(HOST)


class Play(node_agent.Play):
    """What is asked is answered at the next look, unless it is held."""

    def __init__(self) -> None:
        super().__init__(HOST)
        self.asked: list[AskHost] = []
        self.orders: list[Order] = []
        self.running: dict[tuple[str, str], int] = {}
        """The run of each container that runs, by uid of its pod and name."""
        self.held = False
        self.failing = False
        self.used: tuple[int, dict[str, int]] = (4096, {})

    def other(self, effect: effects.Effect) -> None:
        if isinstance(effect, AskHost):
            self.asked.append(effect)
        elif isinstance(effect, Order):
            self.orders.append(effect)

    def follow(self) -> None:
        super().follow()
        while self.asked and not self.held:
            one = self.asked.pop(0)
            self.tell(Answered(one.ticket, self._answer(one)))
        while self.orders:
            self._carry_out(self.orders.pop(0))

    def _carry_out(self, order: Order) -> None:
        match order:
            case LookUpPod(about):
                plan = {"main": Program(argv=("run",))}
                self.tell(Planned(about.uid, Faults(("spec.volumes: no",)) if about.name == "wrong" else plan))
            case StartContainer(about, name, attempt) if about.name == "unable":
                end = RunEnd(128, self.now, "StartError", "no such file")
                self.tell(ContainerEnded(about.uid, name, attempt, self.now, end))
            case StartContainer(about, name, attempt):
                self.running[about.uid, name] = attempt
                self.tell(ContainerStarted(about.uid, name, attempt, self.now))
            case StopPod(uid):
                self.end(uid, 143)
                self.tell(PodGone(uid))
            case _:
                pass

    def end(self, uid: str, code: int) -> None:
        """All processes of a pod end."""
        for one in [one for one in self.running if one[0] == uid]:
            self.tell(ContainerEnded(*one, self.running.pop(one), self.now - 1.0, RunEnd(code, self.now)))

    def _answer(self, asked: AskHost) -> HostAnswer:
        match asked.ask:
            case Question.LAYOUT:
                return Layout.SINGLE
            case Question.READING:
                return Failed("no answer within 10 s") if self.failing else self._read()
            case KillPod("uid-stays"):
                return Failed("it may not be signalled")
            case _:
                return DONE

    def uses(self, available: int, **pods: int) -> None:
        """What is read from now on, in MiB."""
        self.failing, self.used = False, (available, pods)

    def _read(self) -> Measured:
        available, pods = self.used
        used = {name: many * MEBIBYTE for name, many in pods.items()}
        return measured(available * MEBIBYTE, used, at=self.now)


def play() -> None:
    one = Play()
    one.tell(Found({"uid-old": (Run("main", 0, one.now - 5.0),), "uid-a": (Run("main", 0, one.now - 5.0),)}))
    first = one.node("n1")
    one.node("n2")
    for name in ("a", "b", "stays"):
        one.pod(name, "n1", memory="1Gi")
    one.list()
    one.pass_time(2.0)
    _lives(one)
    one.observe("n1", 50)
    one.failing = True
    one.pass_time(26.0)
    one.uses(50, a=1536, b=2048, stays=3072)
    one.tell(Noticed("n1"))
    one.pass_time(28.0)
    one.uses(50, a=1536, b=2048, stays=1)
    one.pass_time(26.0)
    one.held = True
    one.pass_time(12.0)
    one.tell(Noticed("n1"))
    one.held = False
    one.uses(4096)
    one.pass_time(45.0)
    assert one.evicted == ["b", "a"]
    one.held = True
    one.pass_time(12.0)
    one.remove("nodes", first)
    one.held = False
    one.pass_time(5.0)


def _lives(one: Play) -> None:
    """One that ends and is started again, one that cannot be started, one that is refused, one that is
    deleted."""
    for name in ("again", "unable", "wrong"):
        one.pod(name, "n1", restartPolicy="Always")
    goes = one.pod("goes", "n1")
    one.pass_time(1.0)
    for code in (1, 2):
        one.end("uid-again", code)
        one.pass_time(1.0)
    one.delete(goes)
    one.pass_time(12.0)
    for name in ("again", "unable", "goes"):
        one.release(name, "n1")
    one.pass_time(1.0)
    phases = {name: one.facts[f"uid-{name}"].phase for name in ("again", "unable", "wrong", "goes")}  # type: ignore[union-attr]
    assert phases == {"again": "Running", "unable": "Running", "wrong": "Failed", "goes": "Failed"}


ANSWERS = (Answered, Planned, ContainerStarted, ContainerEnded, PodGone)
CASE = Case("node_agent with a host", Agent, AgentView, play, begin, Tick(), ANSWERS)
