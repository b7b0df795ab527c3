"""What keeps deadlines from depending on the wall clock, switched off."""

from podyard.runtime.clock import Clock
from tests.simulation.sabotaged import Sabotage
from tests.simulation.simulation import Simulation

SET_AT_S = 20.0
HOUR_S = 3600.0


def _asks_the_wall_clock(simulation: Simulation) -> None:
    """All times are the wall clock's; those of queues and binders are set back by an hour, besides the seed's
    own."""
    Clock.now = lambda self: self._wall()  # type: ignore[method-assign]
    _set_back(simulation)


def _set_back(simulation: Simulation) -> None:
    """The wall clocks of queues and binders are set back by an hour. Nothing comes of it: theirs are
    steady."""
    for process in simulation.processes:
        if process.service != "scheduler":
            simulation.clock.later(SET_AT_S, lambda process=process: simulation.faults.set_clock(process, -HOUR_S))


SABOTAGES: dict[str, Sabotage] = {
    "steady clocks": Sabotage(_asks_the_wall_clock, ("still in", "missed wake-up", "is lost"), 2),
    "wall clocks": Sabotage(_set_back, ()),
}
