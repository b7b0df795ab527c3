"""A group of two: the first waits, the second lets both go; a member that loses its place takes the other
with it."""

from examples.plugins.pod_group import Args, PodGroup
from podyard.framework.cycle_state import CycleState
from podyard.framework.permits import WaitingPods
from podyard.framework.snapshot import Snapshot
from podyard.framework.status import Code
from tests.unit.framework.builders import make_node, make_pod, on, table_of

MEMBERS = {"pod-group": "g", "pod-group-size": "2"}


def test_a_group_goes_on_when_it_is_whole():
    plugin, state, waiting = PodGroup(Args()), CycleState(), WaitingPods()
    cluster = Snapshot(table_of(make_node("n")), waiting=waiting)
    one, two = (make_pod(name, labels=MEMBERS) for name in ("one", "two"))
    cluster.nodes.place(on(one, "n"))
    answer = plugin.permit(state, one, cluster, "n")
    assert (answer.status.code, answer.timeout_s) == (Code.WAIT, 60.0)
    waiting.wait(one.uid, {plugin.name: answer.timeout_s}, now=0.0)
    cluster.nodes.place(on(two, "n"))
    assert plugin.permit(state, two, cluster, "n").status.ok
    assert [(settled.uid, settled.status.ok) for settled in waiting.settle(1.0)] == [(one.uid, True)]


def test_a_group_that_loses_a_member_gives_its_places_back():
    plugin, state, waiting = PodGroup(Args()), CycleState(), WaitingPods()
    cluster = Snapshot(table_of(make_node("n")), waiting=waiting)
    one, two = (make_pod(name, labels=MEMBERS | {"pod-group-size": "3"}) for name in ("one", "two"))
    for pod in (one, two):
        cluster.nodes.place(on(pod, "n"))
        waiting.wait(pod.uid, {plugin.name: 60.0}, now=0.0)
    waiting.forget(two.uid)
    plugin.unreserve(state, two, cluster, "n")
    (settled,) = waiting.settle(1.0)
    assert (settled.uid, settled.status.message) == (one.uid, "two of the group g has lost its place")


def test_pods_without_a_group_do_not_wait():
    cluster = Snapshot(table_of(make_node("n")))
    assert PodGroup(Args()).permit(CycleState(), make_pod("p"), cluster, "n").status.ok
