"""What keeps pods from being lost or forgotten in the queue and the schedulers, switched off one by one."""

from typing import Any

from podyard.framework.events import ASSIGNED_POD_DELETE
from podyard.queue.core import restart
from podyard.queue.core.attempts import Session, Sessions
from podyard.queue.core.leader import Leader
from podyard.queue.core.scheduling_queue import SchedulingQueue
from tests.simulation.sabotaged import Sabotage, end_all, kill_all
from tests.simulation.simulation import Simulation


def _sleeps_through_releases(simulation: Simulation) -> None:
    """The queue wakes nobody when room comes free, nor when it lists again."""
    move = SchedulingQueue.move_wanted

    def deaf(self: Any, incoming: Any, *arguments: Any, **options: Any) -> Any:
        if incoming.event == ASSIGNED_POD_DELETE:
            return None
        return move(self, incoming, *arguments, **options)

    SchedulingQueue.move_wanted = deaf  # type: ignore[method-assign]
    SchedulingQueue.retry_all = lambda *_: None  # type: ignore[method-assign]


def _new_leader_forgets(simulation: Simulation) -> None:
    """A new leader of the queue takes only pods that come after it."""
    restart.fill = lambda *_: 0  # type: ignore[assignment]
    kill_all(simulation, "queue")


def _forgets_answers(simulation: Simulation) -> None:
    """A pop that is asked again gets other pods. Nothing comes of it: attempts that no heartbeat lists go
    back (`attempts given back`)."""
    answered = Session.answered

    def forget(self: Session, pop_id: str, reply: Any) -> None:
        answered(self, pop_id, reply)
        self.replies.clear()

    Session.answered = forget  # type: ignore[method-assign]
    _loses_answers_to_schedulers(simulation)


def _never_gives_back(simulation: Simulation) -> None:
    """The same, and attempts whose pop answer was lost stay with a scheduler that never got them."""
    _forgets_answers(simulation)
    heartbeat = Leader.heartbeat

    def deaf(self: Any, request: Any, now: float) -> Any:
        session = self.sessions.get(request.session)
        for attempt in () if session is None else session.attempts.values():
            attempt.missing = -1_000_000
        return heartbeat(self, request, now)

    Leader.heartbeat = deaf  # type: ignore[method-assign]


def _loses_answers_to_schedulers(simulation: Simulation) -> None:
    for process in simulation.processes:
        if process.service == "scheduler":
            process.network.loss = 0.1
            simulation.clock.later(60.0, lambda network=process.network: setattr(network, "loss", 0.0))


def _sessions_never_die(simulation: Simulation) -> None:
    """What was with a scheduler that died stays with it."""
    Sessions.expire = lambda self, now: []  # type: ignore[method-assign]
    kill_all(simulation, "scheduler")


def _nobody_hears_of_an_end(simulation: Simulation) -> None:
    """What a scheduler held that ended in order stays with it: its session is forgotten, and no more."""
    Leader.end_session = lambda self, session_id, now: self.sessions.end(session_id)  # type: ignore[method-assign,assignment]
    end_all(simulation, "scheduler")


SABOTAGES: dict[str, Sabotage] = {
    "wake-up by releases": Sabotage(_sleeps_through_releases, ("missed wake-up",)),
    "new leader's pods": Sabotage(_new_leader_forgets, ("is lost",), 6),
    "answers of pops": Sabotage(_forgets_answers, (), 3),
    "attempts given back": Sabotage(_never_gives_back, ("still in",), 10),
    "end of sessions": Sabotage(_sessions_never_die, ("still in",), 6),
    "what ends in order": Sabotage(_nobody_hears_of_an_end, ("still in",), 6),
}
