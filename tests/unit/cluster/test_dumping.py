"""Rows of what is counted on nodes: bounded, with how much is left out."""

from podyard.cluster.dumping import WaitingRow, of_table, of_waiting
from podyard.cluster.node_table import NodeTable
from podyard.cluster.nominations import Nominations
from podyard.proto.facts import Nomination
from tests.support import objects
from tests.support.cluster import bound


def placed(name: str, on: str):
    found = objects.view(objects.pod(name, cpu="500m", memory="1Gi"))
    return found.with_placement(bound(name, on, usage=found.usage), None)


def test_nodes_have_what_is_requested_allocatable_placed_and_nominated():
    table = NodeTable()
    table.set_node(objects.typed_node("n1", cpu="4", memory="8Gi"))
    table.place(placed("a", "n1"))
    table.place(placed("b", "gone"))
    nomination = Nomination(namespace="default", name="c", uid="uid-c", node="n1")
    nominated = Nominations([objects.view(objects.pod("c"), nomination=nomination)])
    found = of_table(table, nominated, {"uid-a": "assumed"}, position=7, most=10, most_pods=10)
    gone, there = found.nodes
    assert (found.position, found.count, found.left_out) == (7, 2, 0)
    assert (there.name, there.deleted, there.requested) == ("n1", False, {"cpu": "500m", "memory": str(2**30)})
    assert there.allocatable == {"cpu": "4000m", "memory": str(8 * 2**30)}
    assert [(pod.name, pod.own) for pod in there.pods] == [("a", "assumed")]
    assert [(pod.name, pod.nominated_node) for pod in there.nominated] == [("c", "n1")]
    assert (gone.name, gone.deleted, gone.requested["cpu"]) == ("gone", True, "500m")


def test_what_is_too_much_is_left_out_and_counted():
    table = NodeTable()
    for name in ("n1", "n2", "n3"):
        table.set_node(objects.typed_node(name))
    for number in range(5):
        table.place(placed(f"p{number}", "n1"))
    found = of_table(table, Nominations(), {}, position=1, most=2, most_pods=3)
    assert ([node.name for node in found.nodes], found.count, found.left_out) == (["n1", "n2"], 3, 1)
    assert (found.nodes[0].pod_count, len(found.nodes[0].pods), found.nodes[0].left_out) == (5, 3, 2)


def test_what_waits_is_counted_by_where_and_shown_up_to_a_bound():
    rows = [WaitingRow(namespace="d", name=f"p{n}", uid=f"u{n}", where="a" if n else "b") for n in range(4)]
    found = of_waiting(rows, 3)
    assert (found.counts, len(found.pods), found.left_out) == ({"b": 1, "a": 3}, 3, 1)
