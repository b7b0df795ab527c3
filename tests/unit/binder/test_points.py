"""PreBind, Bind and PostBind run in the binder; what PreBind wants written is durable with the binding, or
not at all."""

from typing import Any, ClassVar

import pytest

from podyard.binder.core import effects
from podyard.framework import status as statuses
from podyard.framework.interfaces import ObjectWrite, PreBindResult
from podyard.framework.profile import Enabled, Profile, resolve
from podyard.framework.status import Status
from podyard.plugins.priority_sort.plugin import PrioritySort
from podyard.proto import subjects
from tests.support import stored
from tests.unit.binder.stage import Stage

CLAIM = subjects.object_("persistentvolumeclaims", "default", "data")


class Volumes:
    name: ClassVar[str] = "Volumes"

    def __init__(self) -> None:
        self.version = "0"
        self.status = statuses.SUCCESS
        self.bound: list[str] = []
        self.bind_status: Status = statuses.SUCCESS
        self.fails = False

    def pre_bind(self, state: Any, pod: Any, cluster: Any, node_name: str) -> PreBindResult:
        if self.fails:
            raise RuntimeError("no such disk")
        document = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default", "uid": "c", "resourceVersion": self.version},
            "spec": {"volumeName": f"pv-of-{pod.name}"},
        }
        write = ObjectWrite(resource="persistentvolumeclaims", namespace="default", name="data", document=document)
        return PreBindResult(status=self.status, writes=(write,))

    def bind(self, state: Any, pod: Any, cluster: Any, node_name: str) -> Status:
        return self.bind_status

    def post_bind(self, state: Any, pod: Any, cluster: Any, node_name: str) -> None:
        self.bound.append(f"{pod.name} on {node_name}")
        if self.fails:
            raise RuntimeError("PostBind is broken too")


@pytest.fixture
def plugin() -> Volumes:
    return Volumes()


@pytest.fixture
def profile(plugin: Volumes) -> Profile:
    return resolve("default-scheduler", [Enabled(plugin=PrioritySort()), Enabled(plugin=plugin)])


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node()
    stage.pod("a")
    stage.pod("b")
    return stage


def test_objects_of_pre_bind_stand_in_the_batch_before_the_record(stage: Stage, plugin: Volumes, profile: Profile):
    binder = stage.serving(profile=profile)
    assert binder.bind(stage.decide("a")) == ["bound"]
    written = [write.subject.split(".")[1] for write in binder.sends[-1].writes]
    assert written == ["bindings", "persistentvolumeclaims", "commits", "fence"]
    document = stored.document(stage.stream.messages[CLAIM])
    assert document["spec"]["volumeName"] == "pv-of-a"
    assert "resourceVersion" not in document["metadata"]
    assert plugin.bound == ["a on n1"]


def test_a_plugin_is_not_asked_about_pods_that_it_has_nothing_to_do_for(stage: Stage):
    class OnlyForB(Volumes):
        def pre_bind_pre_flight(self, pod: Any) -> bool:
            return pod.name == "b"

    profile = resolve("default-scheduler", [Enabled(plugin=PrioritySort()), Enabled(plugin=OnlyForB())])
    binder = stage.serving(profile=profile)
    assert binder.bind(stage.decide("a"), stage.decide("b")) == ["bound", "bound"]
    written = [write.subject for write in binder.sends[-1].writes if write.subject.startswith("cluster.")]
    assert written == [CLAIM]
    assert stored.document(stage.stream.messages[CLAIM])["spec"]["volumeName"] == "pv-of-b"


def test_an_object_that_changed_meanwhile_is_a_conflict_of_that_decision(
    stage: Stage, plugin: Volumes, profile: Profile
):
    claim = {"metadata": {"name": "data", "namespace": "default", "uid": "c"}}
    stage.put_object("persistentvolumeclaims", claim)
    plugin.version = "1"
    binder = stage.serving(profile=profile)
    (answer,) = binder.answers(binder.ask(stage.decide("a")))
    assert (answer.result, answer.cause) == ("conflict", "PreBind")
    assert stage.stream.placement("a") is None
    assert plugin.bound == []


def test_two_pods_that_write_one_object_go_in_two_batches(stage: Stage, plugin: Volumes, profile: Profile):
    binder = stage.serving(profile=profile)
    ticket = binder.ask(stage.decide("a"), stage.decide("b"))
    stage.pass_time(0.05)
    assert [answer.result for answer in binder.answers(ticket)] == ["bound", "conflict"]  # its version is old by then


def test_a_refusal_of_pre_bind_is_an_error(stage: Stage, plugin: Volumes, profile: Profile):
    plugin.status = statuses.error("the disk is full")
    binder = stage.serving(profile=profile)
    (answer,) = binder.answers(binder.ask(stage.decide("a")))
    assert (answer.result, answer.cause, answer.reasons) == ("error", "Volumes", ("the disk is full",))


def test_a_plugin_that_raises_fails_its_decision_only(stage: Stage, plugin: Volumes, profile: Profile):
    plugin.fails = True
    binder = stage.serving(profile=profile)
    (answer,) = binder.answers(binder.ask(stage.decide("a")))
    assert (answer.result, answer.cause) == ("error", "Volumes")
    assert "no such disk" in answer.reasons[0]
    plugin.fails = False
    assert binder.bind(stage.decide("a")) == ["bound"]


def test_bind_that_skips_leaves_it_to_the_binder(stage: Stage, plugin: Volumes, profile: Profile):
    plugin.bind_status = statuses.SKIP
    assert stage.serving(profile=profile).bind(stage.decide("a")) == ["bound"]


def test_bind_that_refuses_is_an_error(stage: Stage, plugin: Volumes, profile: Profile):
    plugin.bind_status = statuses.unschedulable("not by me")
    assert stage.serving(profile=profile).bind(stage.decide("a")) == ["error"]


def test_a_failing_post_bind_changes_nothing(stage: Stage, plugin: Volumes, profile: Profile):
    binder = stage.serving(profile=profile)
    binder.faults.append("hold")
    ticket = binder.ask(stage.decide("a"))
    plugin.fails = True
    (answer,) = binder.release_held()
    binder.step(answer)
    assert [found.result for found in binder.answers(ticket)] == ["bound"]
    (failed,) = binder.of(effects.PluginFailed)
    assert (failed.plugin, "PostBind is broken" in failed.detail) == ("Volumes", True)
