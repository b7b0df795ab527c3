"""What keeps nodes from being played twice or given up wrongly, and their pods from running on, switched off
one by one."""

from typing import Any

from podyard.node_agent.core.claims import Claims, Standing
from podyard.node_agent.core.pods import Pods
from podyard.workloads.core.node_life import NodeLife
from podyard.workloads.core.zones import Zones
from tests.simulation.node_life import NodePlan
from tests.simulation.sabotaged import Sabotage
from tests.simulation.simulation import Simulation


def _plays_what_it_sees(simulation: Simulation) -> None:
    """An agent plays the nodes of its choice whatever their status says."""
    Claims.judge = lambda *_, **__: Standing.PLAY  # type: ignore[method-assign]


def _counts_silence_of_its_own(simulation: Simulation) -> None:
    """What workloads could not hear was not said."""
    NodeLife._begin_hearing = lambda self, now: setattr(self, "_hears_since", 0.0)  # type: ignore[method-assign]


def _gives_up_all_at_once(simulation: Simulation) -> None:
    """Zones have no rates."""

    def due(self: Any, now: float) -> list[str]:
        found = [node for zone in self._zones.values() for node in zone.waiting]
        for zone in self._zones.values():
            zone.waiting.clear()
        return found

    Zones.due = due  # type: ignore[method-assign]


def _lets_deleted_pods_run(simulation: Simulation) -> None:
    """A node that lives again goes on as if nothing had happened: what was asked of its pods is not done."""
    Pods._follow = lambda *_: None  # type: ignore[method-assign]


SABOTAGES: dict[str, Sabotage] = {
    "claims of nodes": Sabotage(_plays_what_it_sees, ("and both hear the bus",), 1, NodePlan),
    "silence of our own": Sabotage(_counts_silence_of_its_own, ("is declared lost, though it beat",), 5, NodePlan),
    "rates of zones": Sabotage(_gives_up_all_at_once, ("are given up within",), 1, NodePlan),
    "end of deleted pods": Sabotage(_lets_deleted_pods_run, ("it is being deleted", "is still being"), 1, NodePlan),
}
