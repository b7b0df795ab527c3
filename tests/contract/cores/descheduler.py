"""The descheduler: listings that come and one that does not, evictions that are done and refused, a limit."""

import msgspec

from podyard.cluster.view import ClusterView
from podyard.descheduler.core.descheduler import RETRY_S, Descheduler
from podyard.descheduler.core.evictions import EvictionFailed
from podyard.descheduler.core.messages import EvictionAnswered, Listed, NotListed, Queried, Tick
from tests.contract.cores.recording import Case
from tests.unit.descheduler.make import known, policy, querying
from tests.unit.descheduler.stage import INTERVAL_S, Stage
from tests.unit.descheduler.test_plugins_that_fail import Sweep

QUERYING = querying("cpu")
SWEEPING = policy(Sweep, maxNoOfPodsToEvictTotal=3)
POLICY = msgspec.structs.replace(
    SWEEPING, profiles=(*SWEEPING.profiles, *QUERYING.profiles), metrics_providers=QUERYING.metrics_providers
)


def begin() -> tuple[Descheduler, ClusterView]:
    """No view is kept up to date for it: each listing makes one."""
    return Descheduler(POLICY, known(Sweep), interval_s=INTERVAL_S), ClusterView()


def play() -> None:
    stage = Stage(POLICY, Sweep)
    stage.tick()
    stage.not_listed()
    stage.tick(1.0)
    stage.cycle(RETRY_S - 1.0)
    stage.pods("a", "b", "c", "d")
    stage.pods("e", node="n2")
    for late_s in (0.0, 1.0, INTERVAL_S):
        stage.cycle(INTERVAL_S + late_s)
    for _ in range(8):
        stage.tick(INTERVAL_S)
        stage.listed()
        stage.queried()
        for _ in range(5):
            stage.answer(EvictionFailed("its budget"))
        for _ in range(4):
            stage.tick(1.0)


CASE = Case(
    "descheduler", Descheduler, ClusterView, play, begin, Tick(), (Listed, NotListed, Queried, EvictionAnswered)
)
