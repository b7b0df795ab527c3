"""What the binder counts: decisions by result, cause, profile and scheduler, and how often the filters were
skipped."""

import prometheus_client
import pytest

from podyard.binder import instruments
from podyard.binder.core import effects
from podyard.binder.core.points import PointTime
from podyard.binder.instruments import Instruments
from tests.unit.binder.stage import Stage

DECISIONS = "podyard_binder_decisions_total"


@pytest.fixture
def registry() -> prometheus_client.CollectorRegistry:
    return prometheus_client.CollectorRegistry()


def counted(
    registry: prometheus_client.CollectorRegistry, *, session: str, stage: Stage, names: str, node: str
) -> None:
    """Let a binder settle decisions of a session, and count them."""
    told = Instruments(registry)
    binder = stage.serving()
    binder.ask(*(stage.decide(name, node=node) for name in names), session=session)
    for settled in binder.of(effects.Settled):
        told.settled(settled, stage.now)
    for committed in binder.of(effects.Committed):
        told.committed(committed)


def test_conflicts_are_counted_by_cause_and_scheduler(registry: prometheus_client.CollectorRegistry) -> None:
    stage = Stage()
    stage.node("n1", cpu="2")
    for name in "abc":
        stage.pod(name)
    counted(registry, session="scheduler-a-0123abcd-2", stage=stage, names="abc", node="n1")

    def value(result: str, cause: str) -> float | None:
        labels = {"result": result, "cause": cause, "profile": "default-scheduler", "scheduler": "scheduler-a"}
        return registry.get_sample_value(DECISIONS, labels)

    assert value("bound", "") == 2
    assert value("conflict", "fit") == 1


def test_made_up_names_make_no_more_counters_than_so_many(registry: prometheus_client.CollectorRegistry) -> None:
    known = instruments.Schedulers()
    names = [known.name_of(f"scheduler-host-{number:08x}-0123abcd") for number in range(3000)]
    assert len(set(names)) == instruments.MOST_SCHEDULERS + 1
    assert names[-1] == instruments.OTHERS
    assert known.name_of("scheduler-host-00000000-ffffffff-7") == "scheduler-host-00000000", (
        "one that has a counter keeps it"
    )
    assert len(known._by_session) <= instruments.MOST_SESSIONS


def test_bindings_without_filters_are_counted(registry: prometheus_client.CollectorRegistry) -> None:
    told = Instruments(registry)
    told.committed(effects.Committed(n=1, bound=(), releases=(), sent_at=1.0, settled_at=2.0, wire_bytes=10, skipped=7))
    assert registry.get_sample_value("podyard_binder_skipped_filters_total") == 7


def test_extension_points_of_a_binding_are_timed(registry: prometheus_client.CollectorRegistry) -> None:
    """PreBind before the commit, Bind is the commit, PostBind after it."""
    told = Instruments(registry)
    told.took([PointTime("PreBind", "Success", "default-scheduler", 0.25), PointTime("PreBind", "Wait", "batch", 1.0)])
    stage = Stage()
    stage.node("n1")
    stage.pod("a")
    binder = stage.serving()
    binder.ask(stage.decide("a", node="n1"))
    for committed in binder.of(effects.Committed):
        told.committed(committed._replace(sent_at=1.0, settled_at=1.5))
    for settled in binder.of(effects.Settled):
        told.settled(settled, stage.now)
    told.took(binder.core.world.point_times.take())

    def seconds(point: str, status: str = "Success", profile: str = "default-scheduler") -> float | None:
        labels = {"extension_point": point, "status": status, "profile": profile}
        return registry.get_sample_value("scheduler_framework_extension_point_duration_seconds_sum", labels)

    assert (seconds("PreBind"), seconds("PreBind", "Wait", "batch")) == (0.25, 1.0)
    assert (seconds("Bind"), seconds("PostBind")) == (0.5, 0.0)
