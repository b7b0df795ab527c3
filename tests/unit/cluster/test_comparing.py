"""What a reader holds against what the stream says: pure, given two views of one position."""

import msgspec

from podyard.cluster import comparing
from podyard.cluster.comparing import Books, Contents, Held, Waiting, compare
from podyard.cluster.node_table import NodeTable
from podyard.cluster.nodes import NodeView
from podyard.cluster.pods import PodView
from tests.support import objects
from tests.support.cluster import bound


def node(name: str, cpu: str = "4", sequence: int = 1) -> NodeView:
    return NodeView(objects.typed_node(name, cpu=cpu), name, f"uid-{name}", sequence)


def pod(name: str, on: str = "", cpu: str = "1", sequence: int = 2) -> PodView:
    found = objects.view(objects.pod(name, cpu=cpu), sequence=sequence)
    return found.with_placement(bound(name, on, usage=found.usage), None) if on else found


def contents(nodes: list[NodeView], pods: list[PodView], **objects_: dict) -> Contents:
    return Contents(9, {one.name: one for one in nodes}, {one.uid: one for one in pods}, objects_)


def books(nodes: list[NodeView], pods: list[PodView], **more: object) -> Books:
    table = NodeTable()
    for one in nodes:
        table.set_node(one.node)
    for one in pods:
        table.place(one)
    return comparing.books(table, more.pop("own", {}), more.pop("freed", ()))


def test_equal_contents_do_not_differ():
    nodes, pods = [node("n1")], [pod("a", "n1"), pod("b")]
    held = Held(contents(nodes, pods), books(nodes, [pods[0]]), Waiting({"uid-b": "b"}, lambda one: not one.bound))
    found = compare(contents(nodes, pods), held)
    assert not found.differs
    assert (found.position, found.nodes.same, found.pods.same) == (9, 1, 2)
    assert found.counted is not None
    assert found.counted.same == 1
    assert msgspec.to_builtins(found)["nodes"] == {"same": 1}, "what does not differ takes no lines"


def test_missed_redundant_and_stale_nodes_and_pods_are_named():
    listed = contents([node("n1"), node("n2"), node("n3", cpu="8")], [pod("a"), pod("b"), pod("c", sequence=5)])
    found = compare(listed, Held(contents([node("n1"), node("n3"), node("gone")], [pod("a"), pod("c"), pod("old")])))
    assert (found.nodes.missed.first, found.nodes.redundant.first, found.nodes.stale.first) == (
        ("n2",),
        ("gone",),
        ("n3",),
    )
    assert found.pods.missed.first == ("default/b (uid-b)",)
    assert found.pods.redundant.first == ("default/old (uid-old)",)
    assert found.pods.stale.first == ("default/c (uid-c)",)
    assert found.differs


def test_other_objects_are_compared_by_resource():
    listed = contents([], [], pvcs={("default", "x"): 1, ("default", "y"): 2})
    found = compare(listed, Held(contents([], [], pvcs={("default", "y"): 3})))
    assert found.objects["pvcs"].missed.first == ("default/x",)
    assert found.objects["pvcs"].stale.first == ("default/y",)


def test_what_the_table_counts_is_what_the_stream_binds():
    nodes = [node("n1"), node("n2")]
    listed = contents(nodes, [pod("a", "n1"), pod("b", "n1"), pod("c", "n1")])
    found = compare(listed, Held(listed, books(nodes, [pod("a", "n1"), pod("b", "n2"), pod("x", "n1")])))
    assert found.counted is not None
    assert found.counted.missed.first == ("default/c (uid-c)",)
    assert found.counted.redundant.first == ("default/x (uid-x)",)
    assert found.counted.stale.first == ("default/b (uid-b)",)
    assert found.differs


def test_assumed_pods_are_not_redundant_and_freed_ones_not_missed():
    nodes = [node("n1")]
    listed = contents(nodes, [pod("assumed"), pod("freed", "n1")])
    counts = books(nodes, [pod("assumed", "n1")], own={"uid-assumed": "assumed"}, freed=["uid-freed"])
    assert not compare(listed, Held(listed, counts)).differs


def test_a_node_that_the_table_lacks_is_missed():
    listed = contents([node("n1"), node("n2")], [])
    found = compare(listed, Held(listed, books([node("n1")], [])))
    assert found.nodes.missed.first == ("n2",)


def test_sums_that_are_not_what_the_pods_take_are_told():
    nodes, pods = [node("n1")], [pod("a", "n1", cpu="1")]
    listed, counts = contents(nodes, pods), books(nodes, pods)
    wrong = counts._replace(requested={"n1": {"cpu": 1500}})
    found = compare(listed, Held(listed, wrong))
    assert found.requested is not None
    assert found.requested.first == ("n1: cpu is 1500, its pods take 1000",)
    assert found.differs


def test_pods_that_ought_to_wait_and_do_not_are_told():
    listed = contents([], [pod("a"), pod("b")])
    found = compare(listed, Held(listed, waiting=Waiting({"uid-a": "default/a", "uid-z": "default/z"}, lambda _: True)))
    assert found.waiting is not None
    assert found.waiting.missed.first == ("default/b (uid-b)",)
    assert found.waiting.redundant.first == ("default/z",)


def test_all_differences_are_counted_and_some_are_named():
    listed = contents([], [pod(f"p{number:03}") for number in range(100)])
    found = compare(listed, Held(contents([], [])))
    assert found.pods.missed.count == 100
    assert len(found.pods.missed.first) == comparing.MOST_NAMED
