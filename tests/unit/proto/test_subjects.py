"""Subjects: a name can never change a subject's meaning."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from podyard.proto import actions, streams, subjects
from podyard.proto.actions import ActionType

NAMES = st.text(max_size=20)


@given(NAMES)
def test_a_token_decodes_to_what_was_encoded(text: str):
    assert subjects.decode(subjects.encode(text)) == text


@given(NAMES)
def test_a_token_holds_nothing_that_nats_gives_a_meaning(text: str):
    token = subjects.encode(text)
    assert token
    assert not set(token) & set(". *>\t\r\n")
    assert token.isascii()


@given(NAMES, NAMES)
def test_different_names_never_share_a_token(one: str, other: str):
    assert (subjects.encode(one) == subjects.encode(other)) == (one == other)


@given(st.text(min_size=1, max_size=9).filter(lambda r: r not in subjects.RESERVED_RESOURCES), NAMES, NAMES)
def test_an_object_subject_is_taken_apart_as_it_was_made(resource: str, namespace: str, name: str):
    assert subjects.parse_object(subjects.object_(resource, namespace, name)) == (resource, namespace, name)


@pytest.mark.parametrize(
    "subject", ["cluster.pods.a", "placement.fence", "cluster.podstatus.n.a", "x.pods.a.b", "cluster.nodestatus.a.b"]
)
def test_what_is_no_object_is_refused(subject: str):
    with pytest.raises(ValueError, match="not the subject of an object"):
        subjects.parse_object(subject)


def test_the_pod_of_a_fact_is_its_last_three_tokens():
    for subject in (
        subjects.binding("ns", "web.1", "u"),
        subjects.pod_status("n1.example", "ns", "web.1", "u"),
        subjects.nomination("ns", "web.1", "u"),
        subjects.decisions("ns", "web.1", "u"),
    ):
        assert subjects.parse_pod(subject) == ("ns", "web.1", "u")


def test_every_stream_has_subjects_of_its_own():
    firsts = [subject.split(".")[0] for stream in streams.ALL_STREAMS for subject in stream.subjects]
    assert len(firsts) == len(set(firsts))


def test_action_bits_and_labels_are_the_references():
    assert [bit.value for bit in actions.NAMES.values()] == [2**n for n in range(13)]
    assert actions.label("Node", ActionType.UPDATE_NODE_TAINT) == "NodeUpdateNodeTaint"
    assert actions.label("AssignedPod", ActionType.UPDATE) == "AssignedPodUpdate"
    assert actions.label("Pod", ActionType.ADD | ActionType.DELETE) == "Pod"
    assert actions.names(ActionType.ALL) == tuple(actions.NAMES)


def test_an_unknown_action_is_refused_with_the_names_that_exist():
    with pytest.raises(ValueError, match=r"no action is called 'UpdateNode'.*UpdateNodeTaint"):
        actions.parse("UpdateNode")


@given(NAMES, NAMES)
def test_whatever_the_uid_is_leaves_all_else_as_it_is(namespace: str, pod: str):
    for of in (subjects.binding, subjects.decisions, subjects.pod_status_anywhere):
        wildcard, one = subjects.any_uid(of, namespace, pod), of(namespace, pod, "uid-1")
        assert wildcard.endswith(".*")
        assert wildcard.removesuffix("*") == one.removesuffix(subjects.encode("uid-1"))
