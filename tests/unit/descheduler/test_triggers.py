"""Cycles that events start: of the plugins that they concern, gathered, one at a time, after a pause."""

from typing import Any, ClassVar

import pytest

from podyard.cluster.changes import Change
from podyard.cluster.view import ClusterView
from podyard.descheduler.core import descheduler as core
from podyard.descheduler.core import own_plugins, triggers
from podyard.descheduler.core.descheduler import Descheduler
from podyard.descheduler.core.effects import CycleEnded, CycleFailed, Effect, Evict, List, Remember
from podyard.descheduler.core.event_hints import NODE_CAME
from podyard.descheduler.core.evictions import EvictionDone, EvictionFailed, EvictionResult
from podyard.descheduler.core.framework import Evict as Wanted
from podyard.descheduler.core.framework import Registration
from podyard.descheduler.core.messages import Changed, EvictionAnswered, Listed, Relisted, Tick
from podyard.descheduler.core.plugins.node_taints import RemovePodsViolatingNodeTaints
from podyard.descheduler.core.plugins.pod_lifetime import PodLifeTime
from podyard.descheduler.core.triggers import LISTED_AGAIN, OWN_BYTES, WITHOUT_HINT, Triggers
from podyard.framework import events
from podyard.proto.placement import BoundPod, Release
from tests.support import objects, stored
from tests.support.stream import ClusterStream
from tests.unit.descheduler.make import NOW, OWNER, known, policy
from tests.unit.descheduler.test_plugins_that_fail import Sweep

GATHER_S, PAUSE_S, INTERVAL_S = 5.0, 30.0, 300.0
TAINT = {"key": "gpu", "value": "", "effect": "NoSchedule"}


class Watchful(Sweep):
    """Evicts one pod whenever a pod has left."""

    NAME: ClassVar[str] = "Watchful"

    @classmethod
    def events_to_register(cls, args: Any) -> tuple[Registration, ...]:
        return (Registration(events.ASSIGNED_POD_DELETE),)


class Failing(Sweep):
    NAME: ClassVar[str] = "Failing"

    @classmethod
    def events_to_register(cls, args: Any) -> tuple[Registration, ...]:
        def hint(old: object | None, new: object | None) -> str:
            raise ZeroDivisionError("no")

        return (Registration(events.NODE_UPDATE_TAINT, hint),)


class Stage:
    """A term that follows the cluster: nodes n1 to n3 and pods on n1."""

    def __init__(self, *plugins: type, interval_s: float | None = INTERVAL_S) -> None:
        self.now = NOW
        chosen = policy(*plugins, args={"PodLifeTime": {"maxPodLifeTimeSeconds": 10**9}})
        found = Triggers(chosen, known(*plugins), gather_s=GATHER_S, pause_s=PAUSE_S)
        self.core = Descheduler(chosen, known(*plugins), interval_s=interval_s, triggers=found)
        self.view = ClusterView()
        self.stream = ClusterStream(lambda: self.now)
        self._heard = 0
        self._commits = 0
        self._versions: dict[str, dict] = {}
        for name in ("n1", "n2", "n3"):
            self._put("nodes", objects.node(name))
        self.pod("a")
        self.pod("b")
        self.listed_again()

    def _put(self, resource: str, document: dict) -> None:
        self.stream.put(stored.version(resource, document))

    def pod(self, name: str) -> None:
        pod = objects.pod(name, metadata={"ownerReferences": OWNER})
        self._put("pods", pod)
        bound = BoundPod(namespace="default", name=name, uid=pod["metadata"]["uid"], node="n1", attempt=name)
        self._commits += 1
        self.stream.put_all(stored.commit(self._commits, bindings=[bound]))

    def node(self, name: str, **more: Any) -> None:
        self._put("nodes", objects.node(name, **more))
        self.hear()

    def release(self, name: str) -> None:
        uid = objects.pod(name)["metadata"]["uid"]
        self._commits += 1
        self.stream.put_all(
            stored.commit(
                self._commits,
                releases=[Release(namespace="default", name=name, uid=uid, node="n1", reason="terminated")],
            )
        )
        self.hear()

    def listed_again(self) -> None:
        self.view.begin_listing()
        for delivery in self.stream.listed():
            self.view.apply(delivery)
        self.core.step(Changed(self.view.end_listing(self.stream.last)), self.now)
        self._heard = self.stream.last
        self.core.step(Relisted(), self.now)

    def hear(self) -> None:
        """What a reader follows: commits in the place of the bindings that they tell of."""
        changes: list[Change] = []
        for delivery in self.stream.log[self._heard :]:
            if not delivery.subject.startswith("placement.bindings."):
                changes += self.view.apply(delivery)
        self._heard = self.stream.last
        assert self.core.step(Changed(changes), self.now) == []

    def skip(self) -> None:
        """What was written last is never heard of."""
        self._heard = self.stream.last

    def cycle(self, *, release: bool = False, result: EvictionResult | None = None) -> CycleEnded:
        """The cycle that is due now, all evictions done.

        :param result: what becomes of them in fact
        """
        (effect,) = self._step(Tick())
        assert isinstance(effect, List), "a cycle is due"
        view = ClusterView()
        view.begin_listing()
        for delivery in self.stream.listed():
            view.apply(delivery)
        view.end_listing(self.stream.last)
        (effect,) = self._step(Listed(effect.ticket, view))
        while isinstance(effect, Evict):
            going = effect
            (effect,) = self._step(EvictionAnswered(effect.ticket, result or EvictionDone()))
            if release:
                self.release(going.eviction.pod.metadata.name)
        assert isinstance(effect, CycleEnded)
        return effect

    def _step(self, message: Any) -> list[Effect]:
        return [one for one in self.core.step(message, self.now) if not isinstance(one, Remember)]


def ran(end: CycleEnded) -> list[str]:
    return [step.plugin for step in end.record.steps]


def test_a_node_that_gets_a_taint_starts_a_cycle_of_the_plugin_that_looks_at_taints():
    stage = Stage(RemovePodsViolatingNodeTaints, PodLifeTime)
    assert ran(stage.cycle()) == ["RemovePodsViolatingNodeTaints", "PodLifeTime"], "the first one is of all"
    stage.now += PAUSE_S
    stage.node("n1", taints=[TAINT])
    assert stage.core.wake_at == stage.now + GATHER_S
    stage.now += GATHER_S
    end = stage.cycle()
    assert ran(end) == ["RemovePodsViolatingNodeTaints"]
    assert end.record.evicted == 2
    (cause,) = end.record.causes
    assert cause.told == (
        "NodeUpdateNodeTaint of n1 for RemovePodsViolatingNodeTaints: taints were added: gpu:NoSchedule"
    )
    assert stage.core.wake_at == NOW + INTERVAL_S, "that of all plugins comes when it would have come"


@pytest.mark.parametrize("effect", ["PreferNoSchedule", "NoExecute"])
def test_a_taint_that_the_plugin_does_not_look_at_starts_nothing(effect: str):
    stage = Stage(RemovePodsViolatingNodeTaints)
    stage.cycle()
    stage.node("n1", taints=[{**TAINT, "effect": effect}])
    assert stage.core.wake_at == NOW + INTERVAL_S


def test_what_comes_while_events_are_gathered_belongs_to_the_same_cycle():
    stage = Stage(RemovePodsViolatingNodeTaints, interval_s=None)
    stage.cycle()
    stage.now += PAUSE_S
    stage.node("n1", taints=[TAINT])
    stage.now += GATHER_S - 1
    stage.node("n2", taints=[TAINT])
    stage.now += 1
    assert [cause.object for cause in stage.cycle().record.causes] == ["n1", "n2"]
    assert stage.core.wake_at is None, "nothing else has happened, and there is no interval"


def test_a_cycle_that_events_start_keeps_its_distance_from_the_one_before():
    stage = Stage(RemovePodsViolatingNodeTaints, interval_s=None)
    stage.cycle()
    stage.node("n1", taints=[TAINT])
    assert stage.core.wake_at == NOW + PAUSE_S


def test_an_event_during_a_cycle_waits_for_its_end():
    stage = Stage(RemovePodsViolatingNodeTaints, interval_s=None)
    (effect,) = stage.core.step(Tick(), stage.now)
    assert isinstance(effect, List)
    stage.node("n1", taints=[TAINT])
    assert stage.core.wake_at is None
    assert stage.core.step(Tick(), stage.now + 1000) == []


def test_the_cycle_of_all_plugins_sees_to_what_has_happened():
    stage = Stage(RemovePodsViolatingNodeTaints)
    stage.cycle()
    stage.now = NOW + INTERVAL_S - 1
    stage.node("n1", taints=[TAINT])
    stage.now += 1
    end = stage.cycle()
    assert (end.record.causes, end.record.evicted) == ((), 2)
    assert stage.core.wake_at == NOW + 2 * INTERVAL_S


@pytest.mark.parametrize("how", ["it failed", "it went no further"])
def test_a_cycle_that_was_not_finished_is_followed_by_another_where_only_events_start_any(how: str):
    stage = Stage(RemovePodsViolatingNodeTaints, PodLifeTime, interval_s=None)
    stage.cycle()
    stage.now += PAUSE_S
    stage.node("n1", taints=[TAINT])
    stage.now += GATHER_S
    if how == "it failed":
        (effect,) = stage.core.step(Tick(), stage.now)
        assert isinstance(effect, List)
        stage.core._policy = object()  # type: ignore[assignment]
        (told,) = stage._step(Listed(effect.ticket, stage.view))
        assert isinstance(told, CycleFailed)
    else:
        told = stage.cycle(result=EvictionFailed("nobody answers", ends_cycle=True))
        assert told.record.ended == "nobody answers"
    assert stage.core.wake_at == stage.now + max(PAUSE_S, core.AGAIN_S)
    if how == "it went no further":
        stage.now += max(PAUSE_S, core.AGAIN_S)
        end = stage.cycle()
        assert (end.record.evicted, stage.core.wake_at) == (2, None)


def test_what_an_own_eviction_did_starts_no_cycle_but_what_others_did():
    stage = Stage(Watchful, interval_s=None)
    assert stage.cycle(release=True).record.evicted == 2
    assert stage.core.wake_at is None
    stage.pod("c")
    stage.hear()
    stage.release("c")
    assert stage.core.wake_at is not None


def test_a_plugin_whose_hint_raises_runs_and_is_told_of():
    stage = Stage(Failing, interval_s=None)
    stage.cycle()
    stage.node("n1", taints=[TAINT])
    stage.node("n2", taints=[TAINT])
    stage.now += PAUSE_S
    end = stage.cycle()
    assert ran(end) == ["Failing"]
    (fault,) = end.record.faults
    assert (fault.plugin, fault.detail) == ("Failing", "its hint failed: ZeroDivisionError: no")


def test_the_first_cycle_waits_until_the_cluster_is_followed():
    plugins = known(RemovePodsViolatingNodeTaints)
    chosen = policy(RemovePodsViolatingNodeTaints)
    found = Triggers(chosen, plugins, gather_s=0, pause_s=0)
    core = Descheduler(chosen, plugins, interval_s=None, triggers=found)
    assert core.wake_at is None
    core.step(Relisted(), NOW)
    assert core.wake_at == NOW


def test_after_another_listing_all_plugins_that_listen_run_and_no_change_is_asked_about():
    stage = Stage(RemovePodsViolatingNodeTaints, PodLifeTime, interval_s=None)
    stage.cycle()
    stage.stream.put(stored.version("nodes", objects.node("n1", taints=[TAINT])))
    stage.listed_again()
    stage.now += PAUSE_S
    end = stage.cycle()
    assert ran(end) == ["RemovePodsViolatingNodeTaints"]
    assert [cause.reason for cause in end.record.causes] == [LISTED_AGAIN]


def test_a_change_of_which_versions_were_missed_counts_as_any():
    stage = Stage(RemovePodsViolatingNodeTaints, interval_s=None)
    stage.cycle()
    stage.stream.put(stored.version("nodes", objects.node("n1", taints=[TAINT])))
    stage.skip()
    stage.node("n1", taints=[TAINT], labels={"a": "b"})
    stage.now += PAUSE_S
    (cause,) = stage.cycle().record.causes
    assert (cause.object, cause.reason) == ("n1", WITHOUT_HINT)


def test_own_evictions_that_are_remembered_stay_within_their_bound():
    found = Triggers(policy(Watchful), known(Watchful), gather_s=0, pause_s=0)
    for number in range(OWN_BYTES // 200):
        found.evicted(f"uid-{number:0>100}")
    assert found._own.bytes <= OWN_BYTES


def test_a_node_counts_as_new_when_it_takes_pods():
    def hint(old: dict | None, new: dict) -> str:
        assert NODE_CAME.hint is not None
        return NODE_CAME.hint(None if old is None else objects.typed_node("n1", **old), objects.typed_node("n1", **new))

    unready: dict = {"status": {"conditions": [{"type": "Ready", "status": "False"}]}}
    assert hint(None, {})
    assert not hint(None, unready)
    assert hint(unready, {})
    assert hint({"taints": [TAINT]}, {})
    assert not hint({}, {})


def test_a_plugin_that_registers_in_vain_is_refused_before_the_start():
    class Instance(Sweep):
        NAME: ClassVar[str] = "Instance"

        def events_to_register(self, args: Any) -> tuple[Registration, ...]:
            return ()

    class Wrong(Sweep):
        NAME: ClassVar[str] = "Wrong"

        @classmethod
        def events_to_register(cls, args: Any) -> Any:
            return (Wanted,)

    assert any("@classmethod" in fault for fault in own_plugins.faults(Instance))
    with pytest.raises(TypeError, match="not Registration"):
        triggers.registrations(Wrong, None)
