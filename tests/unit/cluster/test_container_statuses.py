"""What an agent says of containers is in the joined pod, as people and programs read it."""

from podyard.cluster.pods import PodView
from podyard.proto.facts import ContainerEnd, ContainerFact, PodStatusFact
from podyard.telling.pod_cells import pod_ready, pod_restarts, pod_status
from tests.support.objects import pod, typed_pod, view

END = ContainerEnd(exit_code=3, reason="Error", started_at="2026-01-01T00:00:00Z", finished_at="2026-01-01T00:00:10Z")
NOW = 1_767_225_670.0
"""A minute after that."""


def told(*containers: ContainerFact, init: tuple[ContainerFact, ...] = (), phase="Running") -> PodView:
    fact = PodStatusFact(
        namespace="default", name="a", uid="uid-a", node="n1", phase=phase, containers=containers, init_containers=init
    )
    return view(pod("a", initContainers=[{"name": "first", "image": "setup"}]), status=fact)


def test_each_container_has_its_state():
    runs = ContainerFact(name="main", started_at="2026-01-01T00:00:00Z", ready=True, restarts=2, last=END)
    done = ContainerFact(name="first", end=END)
    status = told(runs, init=(done,)).pod.status
    (main,), (first,) = status.container_statuses, status.init_container_statuses
    assert (main.name, main.image, main.ready, main.started, main.restart_count) == ("main", "test", True, True, 2)
    assert main.state.running is not None
    assert main.state.running.started_at == "2026-01-01T00:00:00Z"
    assert main.last_state.terminated is not None
    assert (main.last_state.terminated.exit_code, main.last_state.terminated.reason) == (3, "Error")
    assert (first.image, first.started) == ("setup", False)
    assert first.state.terminated is not None
    assert first.state.terminated.finished_at == "2026-01-01T00:00:10Z"


def test_the_table_shows_a_crash_loop():
    loops = ContainerFact(name="main", reason="CrashLoopBackOff", message="back-off", restarts=2, last=END)
    found = told(loops).pod
    assert (pod_status(found), pod_ready(found), pod_restarts(found, NOW)) == ("CrashLoopBackOff", "0/1", "2 (60s ago)")


def test_the_table_shows_how_far_init_containers_are():
    waits = ContainerFact(name="main", reason="PodInitializing")
    first = ContainerFact(name="first", started_at="2026-01-01T00:00:00Z")
    assert pod_status(told(waits, init=(first,), phase="Pending").pod) == "Init:0/1"


def test_a_pod_of_which_no_container_is_told_keeps_what_is_stored():
    stored = typed_pod("a", status={"containerStatuses": [{"name": "main", "ready": True}]})
    fact = PodStatusFact(namespace="default", name="a", uid="uid-a", node="n1", phase="Running")
    found = PodView(stored, stored.key, "uid-a", 1, status=fact)
    assert found.pod.status.container_statuses == stored.status.container_statuses
