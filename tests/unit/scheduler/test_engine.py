"""The engine: whoever waits for the core to do something is woken; it goes on as far as the binder's answers
let it."""

from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
import prometheus_client

from podyard.cluster.changes import Change, Origin
from podyard.cluster.nodes import NodeView
from podyard.framework.extenders import Extender, FilterAnswer
from podyard.proto.binder_api import BindAnswer, BindReply, BindRequest
from podyard.runtime import clock
from podyard.scheduler import window
from podyard.scheduler.core.effects import AskExtenders
from podyard.scheduler.core.messages import ExtendersAnswered, Listed, Work
from podyard.scheduler.core.scheduler import Scheduler
from podyard.scheduler.engine import Engine
from podyard.scheduler.instruments import Instruments
from podyard.scheduler.pace import FEWEST
from podyard.shell import causes
from podyard.shell.causes import Cause
from podyard.shell.event_correlator import Event
from podyard.telemetry.tracing import Spans
from tests.unit.framework.builders import make_node, make_pod
from tests.unit.scheduler.play import Play
from tests.unit.scheduler.test_preempting import high, low, stand

MOST_UNDER_WAY: Final = 16


class Unexpected:
    """A boundary where no core raises."""

    def raised(self, cause: Cause, error: Exception) -> None:
        del cause
        raise error


NOBODY_RAISES: Final[Any] = Unexpected()


async def asks_nothing(ask: Any) -> Any:
    raise AssertionError(ask)


def engine_of(
    core: Scheduler,
    instruments: Instruments,
    *,
    most_under_way: int,
    ask: Callable[[AskExtenders], Awaitable[ExtendersAnswered]] = asks_nothing,
    tell: Callable[[Event], None] = lambda event: None,
) -> Engine:
    return Engine(
        core,
        now=clock.now,
        boundary=NOBODY_RAISES,
        cause=causes.unknown,
        ask=ask,
        keep=lambda record: None,
        tell=tell,
        reply=lambda effect: None,
        spans=Spans(),
        instruments=instruments,
        slice_s=0.005,
        most_under_way=most_under_way,
    )


async def test_all_who_wait_for_progress_are_woken_by_the_next() -> None:
    instruments = Instruments(prometheus_client.CollectorRegistry(), Spans())
    engine = engine_of(Play(make_node("a")).core, instruments, most_under_way=512)
    woken: list[str] = []

    async def wait(name: str) -> None:
        await engine.progress()
        woken.append(name)
        await engine.progress()
        woken.append(f"{name} again")

    with anyio.fail_after(5):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(wait, "pop")
            tasks.start_soon(wait, "preemption")
            await anyio.wait_all_tasks_blocked()
            engine.step(Listed())
            await anyio.wait_all_tasks_blocked()
            assert sorted(woken) == ["pop", "preemption"]
            engine.step(Listed())
    assert len(woken) == 4


class Reached:
    """An informer that is always where it should be."""

    position = 10**9


async def test_it_decides_no_further_ahead_of_the_binders_answers_than_its_window() -> None:
    registry = prometheus_client.CollectorRegistry()
    play = Play(make_node("a"))
    engine = engine_of(play.core, Instruments(registry, Spans()), most_under_way=MOST_UNDER_WAY)
    pods = [make_pod(f"p-{number:02}") for number in range(3 * MOST_UNDER_WAY)]
    play.add(*pods)
    play.pop(*pods)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(engine.work, Reached())
        for _ in range(3):
            await anyio.wait_all_tasks_blocked()
            requests = await asked(engine)
            assert sum(len(request.decisions) for request in requests) == MOST_UNDER_WAY
            for request in requests:
                engine.answered(request, bound(request))
        await anyio.wait_all_tasks_blocked()
        assert (len(engine.binds), engine.core.backlog) == (0, 0)
        tasks.cancel_scope.cancel()


async def test_while_much_is_refused_it_asks_the_queue_for_few_pods_and_says_so() -> None:
    registry = prometheus_client.CollectorRegistry()
    play = Play(make_node("a"))
    engine = engine_of(play.core, Instruments(registry, Spans()), most_under_way=256)
    engine.pace.measured(1000, 0.01)
    for _ in range(20):
        engine.pace.measured(1000, 0.01)
    assert engine.wanted > FEWEST
    pods = [make_pod(f"p-{number:02}") for number in range(8)]
    play.add(*pods)
    play.pop(*pods)
    engine.step(Work(8))
    (request,) = await asked(engine)
    engine.answered(request, refused(request))
    assert engine.wanted == FEWEST
    assert registry.get_sample_value("podyard_scheduler_window_pods") == engine.window.size == window.FEWEST
    assert registry.get_sample_value("podyard_scheduler_bind_conflicts_total", {"cause": "fit"}) == 8
    assert registry.get_sample_value("podyard_scheduler_bind_retries_total") == 8
    assert registry.get_sample_value("podyard_scheduler_results_total", {"outcome": "bindError"}) is None


async def test_a_victim_that_was_only_assumed_is_told_of_as_kube_scheduler_does() -> None:
    play, told = stand("a", "b"), list[Event]()
    engine = engine_of(
        play.core, Instruments(prometheus_client.CollectorRegistry(), Spans()), most_under_way=256, tell=told.append
    )
    pods = high("first", "1"), low(), high("later", "1", 2), high("high", "4")
    play.add(*pods)
    play.pop(*pods)
    engine.step(Work(8))
    (event,) = told
    node = event.message.split()[6]
    assert event.message == f"Preempted by pod uid-high on node {node} (in kube-scheduler memory)."
    assert (event.reason, event.action, event.controller, event.about.name) == (
        "Preempted",
        "Preempting",
        "default-scheduler",
        "low",
    )


async def asked(engine: Engine) -> list[BindRequest]:
    """What waits for the binder."""
    return await engine.binds.take(1000) if len(engine.binds) else []


def bound(request: BindRequest) -> BindReply:
    return _reply(request, result="bound")


def refused(request: BindRequest) -> BindReply:
    return _reply(request, result="conflict", cause="fit")


def _reply(request: BindRequest, **more: Any) -> BindReply:
    return BindReply(
        epoch=1,
        position=Reached.position,
        answers=tuple(BindAnswer(attempt=one.attempt, uid=one.uid, **more) for one in request.decisions),
    )


async def test_its_window_follows_the_number_of_nodes() -> None:
    play = Play()
    instruments = Instruments(prometheus_client.CollectorRegistry(), Spans())
    engine = engine_of(play.core, instruments, most_under_way=256)
    nodes = [NodeView(make_node(name), name, name, 1) for name in map(str, range(100))]
    engine.on_changes([Change("nodes", node.name, None, node, Origin()) for node in nodes])
    assert engine.window.size == len(nodes) // window.NODES_A_DECISION
    engine.on_changes([Change("nodes", node.name, node, None, Origin()) for node in nodes[80:]])
    assert engine.window.size == 80 // window.NODES_A_DECISION


class _Informer:
    """A view that is always where it should be."""

    position = 1 << 60


async def test_the_engine_sleeps_no_longer_than_to_the_next_question_about_a_wait() -> None:
    registry = prometheus_client.CollectorRegistry()
    play, pod = Play(make_node("a")), make_pod("p")
    engine = engine_of(play.core, Instruments(registry, Spans()), most_under_way=MOST_UNDER_WAY)
    play.add(pod)
    play.pop(pod)
    informer: Any = _Informer()
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(engine.work, informer)
            (request,) = await engine.binds.take(1)
            await anyio.wait_all_tasks_blocked()
            (decision,) = request.decisions
            waits = BindAnswer(attempt=decision.attempt, uid=decision.uid, result="waiting")
            engine.answered(request, BindReply(epoch=1, answers=(waits,)))
            assert registry.get_sample_value("podyard_scheduler_waiting_pods") == 1
            (again,) = await engine.binds.take(1)
            tasks.cancel_scope.cancel()
    assert again.decisions == request.decisions


async def test_the_work_goes_on_when_the_extenders_have_answered() -> None:
    play = Play(make_node("a"), extenders=(Extender(name="http://filters", filters=True),))
    may_answer, asked = anyio.Event(), list[int]()

    async def ask(question: AskExtenders) -> ExtendersAnswered:
        asked.append(question.ticket)
        await may_answer.wait()
        return ExtendersAnswered(question.ticket, (FilterAnswer(nodes=("a",)),))

    instruments = Instruments(prometheus_client.CollectorRegistry(), Spans())
    engine = engine_of(play.core, instruments, most_under_way=MOST_UNDER_WAY, ask=ask)
    pods = make_pod("p"), make_pod("q")
    play.add(*pods)
    play.pop(*pods)
    async with engine.driver as tasks:
        tasks.start_soon(engine.work, Reached())
        await anyio.wait_all_tasks_blocked()
        assert (asked, engine.core.backlog) == ([1], 1)
        may_answer.set()
        await anyio.wait_all_tasks_blocked()
        assert (asked, engine.core.backlog) == ([1, 2], 0)
        decisions = [decision for request in await engine.binds.take(9) for decision in request.decisions]
        assert [decision.name for decision in decisions] == ["p", "q"]
        engine.driver.end()
