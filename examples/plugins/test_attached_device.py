"""A binder, a pod, and somebody who attaches devices, or cannot."""

from typing import Any

import pytest

from examples.plugins.attached_device import REQUESTS, Args, AttachedDevice
from podyard.framework.profile import Enabled, resolve
from podyard.plugins.priority_sort.plugin import PrioritySort
from tests.unit.binder.stage import Stage, Term, uid_of

PROFILE = resolve("default-scheduler", [Enabled(plugin=PrioritySort()), Enabled(plugin=AttachedDevice(Args()))])
META = {"name": "p", "namespace": "default", "uid": uid_of("p"), "annotations": {"device": "fpga"}}


@pytest.fixture
def stage() -> Stage:
    stage = Stage()
    stage.node()
    stage.put_object("pods", {"metadata": META, "spec": {"containers": []}})
    return stage


def say(stage: Stage, binder: Term, status: str) -> None:
    known: Any = binder.view.objects(REQUESTS)["default", "p"]
    stage.put_object(REQUESTS, known.raw | {"status": status})
    stage.pass_time(0.05)


def test_the_pod_is_bound_when_its_device_is_there(stage: Stage):
    binder = stage.serving(profile=PROFILE)
    decision = stage.decide("p")
    assert binder.bind(decision) == ["waiting"]
    assert binder.view.objects(REQUESTS)["default", "p"].raw["node"] == "n1"
    say(stage, binder, "Ready")
    assert binder.bind(decision) == ["bound"]


def test_a_device_that_cannot_be_attached_is_a_refusal(stage: Stage):
    binder = stage.serving(profile=PROFILE)
    decision = stage.decide("p")
    binder.ask(decision)
    say(stage, binder, "Failed")
    (answer,) = binder.answers(binder.ask(decision))
    assert (answer.result, answer.reasons) == ("error", ("the device cannot be attached to n1",))


def test_pods_without_a_device_do_not_wait(stage: Stage):
    stage.pod("q")
    assert stage.serving(profile=PROFILE).bind(stage.decide("q")) == ["bound"]
