"""The scheduler: pods that are bound, that fit nowhere, that take others' room, that conflict, that wait in
the binder, that extenders are asked about; and a new session."""

import itertools

from podyard.binder.core import effects as binder_effects
from podyard.cluster.view import ClusterView
from podyard.framework.extenders import Extender, FilterAnswer
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest
from podyard.proto.queue_api import PoppedPod, PopReply
from podyard.scheduler.core.effects import AskExtenders, Bind
from podyard.scheduler.core.messages import (
    BindAnswered,
    Changed,
    ExtendersAnswered,
    Listed,
    Message,
    Popped,
    SessionStarted,
    Work,
    Would,
)
from podyard.scheduler.core.scheduler import Scheduler
from tests.contract.cores.recording import Case
from tests.unit.binder.stage import FOLLOWED, PROFILE, Stage, foreign_binding, uid_of

EXTENDER = Extender(name="http://filters", filters=True, managed_resources=frozenset({"example.com/gpu"}))


class Core(Scheduler):
    """The engine has it work while it is ready, and at `wake_at`. The suite asks for both at once."""

    @property
    def wake_at(self) -> float | None:
        return 0.0 if self.ready else super().wake_at


def begin() -> tuple[Core, ClusterView]:
    view = ClusterView()
    return Core({PROFILE.name: PROFILE}, view, "s1", extenders=(EXTENDER,)), view


class Play:
    """A scheduler on the binder's stage, and a binder that answers it."""

    def __init__(self) -> None:
        self.stage = Stage()
        self.core, self.view = begin()
        self.position = 0
        self.requests: list[BindRequest] = []
        self.asks: list[AskExtenders] = []
        self._attempts = itertools.count(1)
        self.stage.node(cpu="6")
        self.stage.node("n2", cpu="4")
        self._list()
        self.binder = self.stage.serving("binder-a")

    def _list(self) -> None:
        self.view.begin_listing()
        for delivery in self.stage.stream.listed():
            self.view.apply(delivery)
        self.position = self.stage.stream.last
        self.tell(Changed(self.view.end_listing(self.position)))
        self.tell(Listed())

    def tell(self, message: Message) -> None:
        for effect in self.core.step(message, self.stage.now):
            if isinstance(effect, Bind):
                self.requests.append(effect.request)
            elif isinstance(effect, AskExtenders):
                self.asks.append(effect)

    def follow(self) -> None:
        """The view comes to the end of the stream."""
        for delivery in self.stage.stream.after(self.position):
            changes = self.view.apply(delivery) if delivery.subject.startswith(FOLLOWED) else []
            self.view.advance(delivery.sequence)
            if changes:
                self.tell(Changed(changes))
        self.position = self.stage.stream.last
        self.view.advance(self.position)

    def pop(self, *names: str, ahead: int = 0, epoch: int = 1) -> None:
        popped = tuple(
            PoppedPod(namespace="default", name=name, uid=uid_of(name), attempt=f"{epoch}-{next(self._attempts)}")
            for name in names
        )
        self.tell(Popped(PopReply(epoch=epoch, position=self.stage.stream.last + ahead, pods=popped)))

    def work(self) -> None:
        self.follow()
        self.tell(Work(256))

    def bind(self) -> None:
        """The binder answers; its commits show in the view afterwards."""
        requests, self.requests = self.requests, []
        for request in requests:
            ticket = next(self.binder._tickets)  # pyright: ignore[reportPrivateUsage]
            self.binder.step(binder_effects.Requested(ticket, request))
            for _ in range(3):
                self.stage.pass_time(0.011)
            self.tell(BindAnswered(request, self.binder.replies[ticket]))
        self.follow()

    def answer_waiting(self) -> BindRequest:
        """The binder says that what it was asked last waits."""
        (request,), self.requests = self.requests, []
        answers = tuple(BindAnswer(attempt=one.attempt, uid=one.uid, result="waiting") for one in request.decisions)
        self.tell(BindAnswered(request, BindReply(epoch=1, position=self.stage.stream.last, answers=answers)))
        return request

    def answer_extenders(self) -> None:
        ask = self.asks.pop()
        nodes = (FilterAnswer(nodes=call.nodes) for call in ask.calls)  # type: ignore[union-attr]
        self.tell(ExtendersAnswered(ask.ticket, tuple(nodes)))

    def later(self, seconds: float) -> None:
        self.stage.pass_time(seconds)
        self.work()


def play() -> None:
    one = Play()
    for name in ("a", "b", "c"):
        one.stage.pod(name)
    one.pop("a", "b", "c", "nobody")
    one.work()
    one.bind()
    one.stage.pod("large", cpu="9")
    one.stage.pod("late")
    one.pop("large", "late", ahead=2)
    one.work()
    one.later(1.0)
    _waits(one)
    _conflicts(one)
    _asks(one)
    one.tell(Would(1, ("default", "large"), 10))
    one.tell(Would(2, ("default", "nobody"), 0))
    one.stage.pod("urgent", cpu="6", priority=10)
    one.pop("urgent")
    one.work()
    one.later(60.0)
    one.tell(SessionStarted("s2"))
    one.pop("late", epoch=2)
    one.later(1.0)
    one.bind()


def _waits(one: Play) -> None:
    one.stage.pod("w", cpu="100m")
    one.stage.pod("x", cpu="100m")
    one.pop("w", "x")
    one.work()
    one.answer_waiting()
    for _ in range(3):
        one.later(0.4)
    one.answer_waiting()
    one.later(1.1)
    one.bind()


def _conflicts(one: Play) -> None:
    one.stage.pod("conflicting", cpu="2500m")
    one.pop("conflicting")
    one.work()
    (request,) = one.requests
    one.stage.pod("other", cpu="2500m")
    one.stage.stream.put(foreign_binding("other", request.decisions[0].node))
    one.stage.pump()
    one.bind()
    one.work()
    one.bind()


def _asks(one: Play) -> None:
    one.stage.node("n3", cpu="4")
    for name in ("gpu", "gpu2"):
        one.stage.pod(name, cpu="100m", requests={"example.com/gpu": "0"})
    one.pop("gpu", "gpu2")
    one.work()
    one.tell(Would(3, ("default", "gpu2"), 0))
    one.stage.node("n4", cpu="1")
    one.follow()
    one.answer_extenders()
    one.later(0.1)
    one.answer_extenders()
    one.work()
    one.answer_extenders()
    one.bind()


CASE = Case("scheduler", Scheduler, ClusterView, play, begin, Work(256), (BindAnswered, ExtendersAnswered))
