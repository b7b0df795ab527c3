"""The core that says which nodes are lost: nodes fall silent in several zones, come back, go; pods end by
taints; facts and deletions fail."""

from podyard.cluster.view import ClusterView
from podyard.workloads.core import node_life
from podyard.workloads.core.actions import Done
from podyard.workloads.core.node_life import Hearing, NodeLife, Periods, Said
from podyard.workloads.core.zones import Rates
from tests.contract.cores.recording import Case
from tests.unit.workloads.node_stage import Stage, tolerating

ZONE = "topology.kubernetes.io/zone"


def begin() -> tuple[NodeLife, ClusterView]:
    view = ClusterView()
    return NodeLife(view, Periods(), Rates()), view


def play() -> None:
    stage = Stage()
    for number in range(6):
        stage.node(f"n{number}", labels={ZONE: "ab"[number % 2]})
    stage.node("new", beats=False, agent=False)
    for number in range(4):
        stage.pod(f"p{number}", f"n{number}", tolerating(20 * number))
    stage.pass_time(25.0)
    stage.alive.difference_update(("n0", "n2", "n4"))
    stage.pass_time(80.0)
    stage.report("n1", Ready="False")
    stage.taint("n3", {"key": "mine", "effect": "NoExecute"})
    stage.hold = True
    stage.pass_time(5.0)
    stage.fail()
    stage.hold = False
    stage.pass_time(20.0)
    stage.step(Hearing(False))
    stage.pass_time(10.0)
    stage.step(Hearing(True))
    stage.alive.clear()
    stage.pass_time(80.0)
    stage.alive.update(("n0", "n1", "n2", "n3"))
    stage.report("n1")
    stage.remove_node("n4")
    stage.pass_time(30.0)
    stage.relist()
    stage.pass_time(30.0)


CASE = Case("node life", NodeLife, ClusterView, play, begin, node_life.Tick(), (Said, Done))
