"""Matching of events and the registry built from registrations."""

from collections.abc import Sequence

import pytest

from podyard.framework import event_registry, events
from podyard.framework.event_registry import EventRegistry, RegistrationChangedError, watched_resources
from podyard.framework.events import ClusterEvent, Registration
from podyard.plugins.defaults import default_profile
from podyard.proto.actions import ActionType

ADD_OR_LABEL = ActionType.ADD | ActionType.UPDATE_NODE_LABEL


class Declares:
    def __init__(self, *registrations: Registration) -> None:
        self.registrations = registrations

    def events_to_register(self) -> Sequence[Registration]:
        return self.registrations


@pytest.mark.parametrize(
    ("registered", "incoming", "expected"),
    [
        pytest.param(("Node", ADD_OR_LABEL), ("Node", ActionType.ADD), True, id="one bit of several"),
        pytest.param(("Node", ActionType.ADD), ("Node", ActionType.DELETE), False, id="another bit"),
        pytest.param(
            ("Node", ActionType.UPDATE_NODE_LABEL), ("Node", ActionType.UPDATE), False, id="30 general update"
        ),
        pytest.param(("Node", ActionType.UPDATE), ("Node", ActionType.UPDATE_NODE_LABEL), True, id="30 one update bit"),
        pytest.param(("Pod", ActionType.DELETE), ("AssignedPod", ActionType.DELETE), True, id="pod takes assigned"),
        pytest.param(("Pod", ActionType.ADD), ("UnschedulablePod", ActionType.ADD), True, id="pod takes unschedulable"),
        pytest.param(("AssignedPod", ActionType.ADD), ("Pod", ActionType.ADD), False, id="assigned takes no other"),
        pytest.param(("*", ActionType.ALL), ("foos.v1.example.com", ActionType.ADD), True, id="wildcard takes all"),
        pytest.param(("Node", ActionType.ALL), ("*", ActionType.ALL), False, id="only wildcard takes wildcard"),
        pytest.param(("*", ActionType.ADD), ("Node", ActionType.ADD), True, id="any resource, one action"),
    ],
)
def test_match(registered, incoming, expected) -> None:
    assert events.match(ClusterEvent(*registered), ClusterEvent(*incoming)) is expected


@pytest.mark.parametrize(
    ("event", "label"),
    [
        (events.NODE_UPDATE_TAINT, "NodeUpdateNodeTaint"),
        (events.UNSCHEDULED_POD_UPDATE, "UnschedulablePodUpdate"),
        (events.UNSCHEDULABLE_TIMEOUT, "UnschedulableTimeout"),
        (ClusterEvent("Node", ADD_OR_LABEL), "Node"),
    ],
)
def test_label(event, label) -> None:
    assert event.label == label


def test_node_add_brings_taint_updates_that_always_queue() -> None:
    added = event_registry.registrations_of(Declares(Registration(events.NODE_ADD, lambda *_: events.skip("no"))))
    assert added[1:] == (Registration(events.NODE_UPDATE_TAINT, None),)


def test_no_taint_updates_for_a_plugin_that_registered_taints_itself() -> None:
    both = Registration(ClusterEvent("Node", ActionType.ADD | ActionType.UPDATE_NODE_TAINT))
    assert event_registry.registrations_of(Declares(both)) == (both,)


def test_a_plugin_that_declares_nothing_gets_all_events() -> None:
    registry = EventRegistry.of_plugins([("Silent", object())])
    assert registry.is_interested(ClusterEvent("resource.k8s.io/DeviceClass", ActionType.DELETE))
    assert registry.listeners(events.NODE_DELETE)["Silent"].hints == (None,)


def test_a_plugin_with_an_empty_list_gets_none() -> None:
    registry = EventRegistry.of_plugins([("Deaf", Declares())])
    assert not registry.is_interested(events.NODE_ADD)
    assert registry.is_interested(events.RETRY_ALL), "wildcard events interest always"


def test_an_answer_that_changes_is_an_error() -> None:
    class Moody:
        calls = 0

        def events_to_register(self) -> Sequence[Registration]:
            self.calls += 1
            return (Registration(events.NODE_ADD),) * self.calls

    with pytest.raises(RegistrationChangedError, match="Moody"):
        EventRegistry.of_plugins([("Moody", Moody())])


def test_listeners_come_in_profile_order_with_all_matching_hints() -> None:
    def first(*_):
        return events.skip("a")

    def second(*_):
        return events.skip("b")

    registry = EventRegistry(
        {
            "Z": (Registration(events.NODE_ADD, first), Registration(ClusterEvent("*", ActionType.ADD), second)),
            "A": (Registration(ClusterEvent("Node", ADD_OR_LABEL), second),),
            "N": (Registration(events.NODE_DELETE),),
        }
    )
    found = registry.listeners(events.NODE_ADD)
    assert [(one.plugin, one.hints) for one in found.values()] == [("Z", (first, second)), ("A", (second,))]


def test_union_of_actions_and_the_map_of_the_default_profile() -> None:
    registry = EventRegistry.of_profile(default_profile())
    assert "PrioritySort" not in registry.plugins, "it cannot reject a pod"
    assert registry.actions_by_resource()["Node"] & ActionType.UPDATE_NODE_CONDITION == 0
    assert registry.event_to_plugins()["Node", int(ActionType.ADD | ActionType.UPDATE_NODE_TAINT)] == (
        "NodeUnschedulable",
        "TaintToleration",
    )


def test_watched_resources_are_plurals_of_what_is_registered() -> None:
    custom = Registration(ClusterEvent("foos.v1.example.com", ActionType.ADD))
    anything = Registration(ClusterEvent("*", ActionType.ALL))
    claims = Registration(ClusterEvent("PersistentVolumeClaim", ActionType.ADD))
    registry = EventRegistry({"P": (custom, anything, claims)})
    assert watched_resources([registry]) == ("foos.v1.example.com", "persistentvolumeclaims")
