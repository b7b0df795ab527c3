"""The template's test: one node with room and one without, a pod that cares and one that does not."""

from examples.plugins.busy_nodes import BusyNodes
from podyard.framework.one_node import filter_one
from podyard.framework.profile import Enabled, resolve
from podyard.plugins.priority_sort.plugin import PrioritySort
from tests.unit.framework.builders import make_node, make_pod, on, snapshot_of

PROFILE = resolve("test", [Enabled(plugin=PrioritySort()), Enabled(plugin=BusyNodes())])


def test_pods_that_need_low_latency_avoid_busy_nodes():
    cluster = snapshot_of(make_node("busy"), make_node("quiet"))
    for number in range(20):
        cluster.nodes.place(on(make_pod(f"p{number}"), "busy"))
    picky, easy = make_pod("picky", labels={"latency": "low"}), make_pod("easy")
    assert filter_one(PROFILE, "quiet", picky, cluster).ok
    assert filter_one(PROFILE, "busy", easy, cluster).ok
    assert filter_one(PROFILE, "busy", picky, cluster).reasons == ("node(s) ran too many pods for low latency",)
