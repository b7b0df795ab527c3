"""The lives of pods on virtual nodes."""

import pytest

from podyard.cluster.changes import Change, Origin
from podyard.node_agent.core import effects
from podyard.node_agent.core.messages import Changed
from podyard.objects.pod import Pod
from podyard.proto import subjects
from podyard.proto.facts import NodeStatusFact, PodStatusFact
from tests.unit.node_agent.make import PLAYER, Playing, agent, deleted, node, pod, view

JOB = [{"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "j", "controller": True}]


def facts(found: list[effects.Effect]) -> list[tuple[str, str, bool]]:
    """(pod, phase, ended) of the facts among effects."""
    put = [one.fact for one in found if isinstance(one, effects.PutPodStatus)]
    return [(one.name, one.phase, one.ended) for one in put]


@pytest.fixture
def playing() -> Playing:
    found = agent()
    found.node_seen(node(), (), 0.0)
    return found


def started(playing: Playing, *pods, at: float = 100.0) -> None:
    for one in pods:
        playing.pod_seen(view(one), at, at)
    playing.tick(at + 1.0)


def test_a_bound_pod_runs_after_its_start_delay(playing: Playing):
    assert playing.pod_seen(view(pod()), 100.0, 100.4) == [], "no fact before something has happened"
    assert facts(playing.tick(100.9)) == []
    found = playing.tick(101.0)
    assert facts(found) == [("web", "Running", False)]
    (fact,) = [one.fact for one in found if isinstance(one, effects.PutPodStatus)]
    assert fact.start_time == "1970-01-01T00:01:40Z", "since it was bound, not since it was seen"
    assert {one.type for one in fact.conditions if one.status == "True"} >= {"Ready", "Initialized"}


def test_a_pod_that_runs_tells_which_binding_led_to_it(playing: Playing):
    playing.pod_seen(view(pod(), trace="bind-trace"), 100.0, 100.0)
    (told,) = [one for one in playing.tick(101.0) if isinstance(one, effects.PodStarted)]
    assert (told.bound_trace, told.accepted_at, told.running_at) == ("bind-trace", 100.0, 101.0)


def test_seen_twice_is_started_once(playing: Playing):
    started(playing, pod())
    assert playing.pod_seen(view(pod()), 100.0, 200.0) == []
    assert facts(playing.tick(300.0)) == []


def test_annotations_set_the_pace(playing: Playing):
    slow = pod("slow", annotations={"podyard.io/start-delay": "1m", "podyard.io/run-duration": "90s"})
    playing.pod_seen(view(slow), 0.0, 0.0)
    assert facts(playing.tick(59.9)) == []
    assert facts(playing.tick(60.0)) == [("slow", "Running", False)]
    assert facts(playing.tick(149.9)) == []
    assert facts(playing.tick(150.0)) == [("slow", "Succeeded", True)]


def test_a_wrong_annotation_is_told_and_ignored(playing: Playing):
    wrong = pod(annotations={"podyard.io/start-delay": "soon", "podyard.io/stop-delay": "-1s"})
    told = [one for one in playing.pod_seen(view(wrong), 0.0, 0.0) if isinstance(one, effects.Announce)]
    assert [one.reason for one in told] == ["InvalidAnnotation", "InvalidAnnotation"]
    assert 'time: invalid duration "soon"' in told[0].message
    assert "below 0" in told[1].message
    assert facts(playing.tick(1.0)) == [("web", "Running", False)]


def test_pods_of_a_job_end_by_themselves_and_others_do_not(playing: Playing):
    started(playing, pod("job", ownerReferences=JOB), pod("service"))
    assert facts(playing.tick(106.0)) == [("job", "Succeeded", True)]
    assert facts(playing.tick(10_000.0)) == []


def test_a_deleted_pod_ends_when_its_containers_do(playing: Playing):
    started(playing, pod())
    playing.pod_seen(view(deleted(pod(), "1970-01-01T00:02:30Z", 30)), 120.0, 120.0)
    assert facts(playing.tick(121.9)) == []
    assert facts(playing.tick(122.0)) == [("web", "Failed", True)], "an interrupted pod has not succeeded"


def test_a_deleted_pod_ends_with_its_grace_period_at_the_latest(playing: Playing):
    stubborn = pod(annotations={"podyard.io/stop-delay": "10m"})
    started(playing, stubborn)
    playing.pod_seen(view(deleted(stubborn, "1970-01-01T00:02:30Z", 30)), 120.0, 120.0)
    assert facts(playing.tick(149.9)) == []
    assert facts(playing.tick(150.0)) == [("web", "Failed", True)]


def test_a_second_deletion_can_only_shorten_the_end(playing: Playing):
    stubborn = pod(annotations={"podyard.io/stop-delay": "10m"})
    started(playing, stubborn)
    playing.pod_seen(view(deleted(stubborn, "1970-01-01T00:02:30Z", 30)), 120.0, 120.0)
    playing.pod_seen(view(deleted(stubborn, "1970-01-01T00:02:05Z", 5)), 120.0, 121.0)
    assert facts(playing.tick(125.9)) == []
    assert facts(playing.tick(126.0)) == [("web", "Failed", True)]


@pytest.mark.parametrize("ends", ["1970-01-01T00:00:00Z", "1970-01-01T01:02:30Z"], ids=["behind", "ahead"])
def test_a_grace_period_counts_from_its_receipt_whatever_the_clock_of_who_deleted_it(playing: Playing, ends: str):
    stubborn = pod(annotations={"podyard.io/stop-delay": "10m"})
    started(playing, stubborn)
    playing.pod_seen(view(deleted(stubborn, ends, 30)), 120.0, 120.0)
    assert facts(playing.tick(149.9)) == []
    assert facts(playing.tick(150.0)) == [("web", "Failed", True)]


def test_a_pod_that_is_bound_by_a_clock_that_is_ahead_starts_in_time(playing: Playing):
    assert facts(playing.pod_seen(view(pod()), 3700.0, 100.0)) == []
    assert facts(playing.tick(101.0)) == [("web", "Running", False)]


def test_seeing_a_deletion_again_does_not_postpone_the_end(playing: Playing):
    started(playing, pod())
    for now in (120.0, 121.0, 121.9):
        playing.pod_seen(view(deleted(pod(), "1970-01-01T00:02:30Z", 30)), 120.0, now)
    assert facts(playing.tick(122.0)) == [("web", "Failed", True)]


def test_a_pod_that_is_deleted_before_it_ran_never_runs(playing: Playing):
    playing.pod_seen(view(pod()), 100.0, 100.0)
    playing.pod_seen(view(deleted(pod(), "1970-01-01T00:02:10Z", 30)), 100.5, 100.5)
    assert facts(playing.tick(200.0)) == [("web", "Failed", True)]


def test_the_fact_goes_with_the_object(playing: Playing):
    started(playing, pod())
    assert playing.pod_gone("uid-web") == [effects.RemovePodStatus("n1", "default", "web", "uid-web")]
    assert playing.pod_gone("uid-web") == []
    assert facts(playing.tick(10_000.0)) == []


def test_a_pod_of_which_nothing_was_said_needs_no_marker(playing: Playing):
    playing.pod_seen(view(pod()), 100.0, 100.0)
    assert playing.pod_gone("uid-web") == []
    assert facts(playing.tick(10_000.0)) == []


def test_a_pod_whose_room_was_given_away_runs_no_more_and_says_nothing(playing: Playing):
    started(playing, pod("web", annotations={"podyard.io/run-duration": "5s"}))
    playing.pod_seen(view(pod(), released=True), 102.0, 102.0)
    assert facts(playing.tick(10_000.0)) == []
    assert playing.pods.active_on("n1") == []


GONE = "1970-01-01T00:01:40Z"


def removals(found: list[effects.Effect]) -> list[str]:
    return [one.about.uid for one in found if isinstance(one, effects.RemovePod)]


def test_the_object_of_a_deleted_pod_that_has_ended_is_asked_to_be_removed_until_it_is(playing: Playing):
    started(playing, pod())
    playing.pod_seen(view(deleted(pod(), GONE, 0)), 102.0, 102.0)
    assert removals(playing.tick(110.0)) == [], "its room is not given back yet"
    playing.pod_seen(view(deleted(pod(), GONE, 0), released=True), 110.0, 110.0)
    assert removals(playing.tick(111.9)) == [], "others do it at once, if they are there"
    assert removals(playing.tick(112.0)) == ["uid-web"]
    assert removals(playing.tick(121.9)) == []
    assert removals(playing.tick(122.0)) == ["uid-web"]
    playing.pod_gone("uid-web")
    assert removals(playing.tick(1_000.0)) == []


@pytest.mark.parametrize(
    ("stored", "expected"),
    [
        pytest.param(pod(), [], id="not deleted"),
        pytest.param(deleted(pod(finalizers=["a/b"]), GONE, 30), ["uid-web"], id="its time is not over"),
        pytest.param(deleted(pod(finalizers=["a/b"]), GONE, 0), [], id="finalizers alone keep it"),
    ],
)
def test_an_object_stays_that_is_not_deleted_or_waits_for_others(playing: Playing, stored: Pod, expected: list[str]):
    started(playing, pod())
    playing.pod_seen(view(stored, released=True), 102.0, 102.0)
    assert removals(playing.tick(200.0)) == expected


def test_pods_of_unknown_nodes_are_left_alone(playing: Playing):
    playing.pod_seen(view(pod(), node="elsewhere"), 100.0, 100.0)
    assert facts(playing.tick(200.0)) == []


def test_a_node_that_comes_later_takes_over_its_pods(playing: Playing):
    found = playing.node_seen(node("n2"), [view(pod(), node="n2")], 100.0)
    assert not [one for one in found if isinstance(one, effects.PutPodStatus)]
    assert facts(playing.tick(101.0)) == [("web", "Running", False)]


def test_a_pod_that_comes_with_its_node_is_taken_whichever_is_named_first():
    playing = agent()
    ours = NodeStatusFact(node="n1", node_uid="uid-n1", session=PLAYER.session, lease=PLAYER.lease)
    playing.known.nodes["n1"] = node(status=ours)
    come = [
        Change(subjects.PODS, "uid-web", None, view(pod()), Origin(at=100.0)),
        Change(subjects.NODES, "uid-n1", None, node(status=ours), Origin()),
    ]
    playing.step(Changed(come), 100.0)
    assert facts(playing.tick(101.0)) == [("web", "Running", False)]


def test_a_node_that_goes_takes_its_pods_with_it(playing: Playing):
    started(playing, pod("web", annotations={"podyard.io/run-duration": "5s"}))
    assert effects.RemoveNodeStatus("n1") in playing.node_gone("n1", 103.0)
    assert facts(playing.tick(200.0)) == []
    assert playing.pod_gone("uid-web") == [effects.RemovePodStatus("n1", "default", "web", "uid-web")]


def test_a_pod_that_is_still_bound_when_its_node_comes_back_is_taken_over_and_ends(playing: Playing):
    """The binder that would have given its room away died meanwhile: to the next one the node never went."""
    started(playing, pod())
    playing.node_gone("n1", 103.0)
    leaving = deleted(pod(), "1970-01-01T00:01:45Z", 1)
    playing.node_seen(node(uid="uid-again"), [view(leaving, status=stored("Running"))], 104.0)
    assert [(name, ended) for name, _, ended in facts(playing.tick(200.0))] == [("web", True)]


@pytest.mark.parametrize("gone_first", [True, False])
def test_what_was_said_of_a_pod_goes_with_its_object_although_its_node_went_and_came(
    playing: Playing, gone_first: bool
):
    """Also if the fact has not come back to the agent: its view knows of none."""
    started(playing, pod())
    playing.node_gone("n1", 103.0)
    found = playing.node_seen(node(uid="uid-again"), [view(pod(), gone=gone_first)], 104.0)
    found += playing.pod_gone("uid-web")
    assert effects.RemovePodStatus("n1", "default", "web", "uid-web") in found


def test_a_namesake_is_another_pod(playing: Playing):
    started(playing, pod())
    playing.pod_gone("uid-web")
    playing.pod_seen(view(pod(uid="uid-second")), 200.0, 200.0)
    (put,) = [one for one in playing.tick(201.0) if isinstance(one, effects.PutPodStatus)]
    assert put.fact.uid == "uid-second"


def stored(phase: str, *, ended: bool = False, at: str = "1970-01-01T00:01:40.500000Z") -> PodStatusFact:
    return PodStatusFact(
        namespace="default", name="web", uid="uid-web", node="n1", phase=phase, ended=ended,
        start_time="1970-01-01T00:01:39Z", at=at,
    )  # fmt: skip


def test_after_a_restart_a_running_pod_runs_on_since_the_same_moment(playing: Playing):
    finite = pod(annotations={"podyard.io/run-duration": "10s"})
    assert playing.pod_seen(view(finite, status=stored("Running")), 99.0, 105.0) == []
    assert facts(playing.tick(110.4)) == []
    assert facts(playing.tick(110.5)) == [("web", "Succeeded", True)]


def test_after_a_restart_an_ended_pod_is_not_ended_again(playing: Playing):
    playing.pod_seen(view(pod(), status=stored("Failed", ended=True)), 99.0, 105.0)
    playing.pod_seen(view(deleted(pod(), "1970-01-01T00:02:10Z", 30), status=stored("Failed", ended=True)), 99.0, 106.0)
    assert facts(playing.tick(10_000.0)) == []
    assert playing.pod_gone("uid-web"), "but its fact still goes with its object"


def test_after_a_restart_a_pod_that_had_not_started_starts_when_it_would_have(playing: Playing):
    playing.pod_seen(view(pod()), 99.0, 200.0)
    assert facts(playing.tick(200.0)) == [("web", "Running", False)]


def test_after_a_restart_the_fact_of_a_pod_that_went_meanwhile_goes_too(playing: Playing):
    gone = view(pod(), status=stored("Running"), gone=True)
    assert playing.pod_seen(gone, 99.0, 200.0) == [effects.RemovePodStatus("n1", "default", "web", "uid-web")]
