"""By what the stream of decisions knows that it has a record already."""

import msgspec
import pytest

from podyard.proto.decisions import AttemptRecord, message_id

RECORD = AttemptRecord(namespace="default", name="a", uid="uid-a", attempt="7-1", outcome="error", at=10.0)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"at": 11.0, "message": "scheduler session s died"}, id="whoever tells of it, and when"),
        pytest.param({"name": "b"}, id="the uid tells whose it is"),
    ],
)
def test_one_outcome_of_one_attempt_is_one_record(other: dict[str, object]) -> None:
    assert message_id(msgspec.structs.replace(RECORD, **other)) == message_id(RECORD)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param({"uid": "uid-b"}, id="another pod's of the same attempt id: two leaders had one epoch"),
        pytest.param({"attempt": "7-2"}, id="another attempt"),
        pytest.param({"outcome": "unschedulable"}, id="another outcome"),
    ],
)
def test_nothing_else_is_taken_for_it(other: dict[str, object]) -> None:
    assert message_id(msgspec.structs.replace(RECORD, **other)) != message_id(RECORD)


def test_a_pod_that_is_gated_again_between_two_attempts_has_another_record() -> None:
    gated = msgspec.structs.replace(RECORD, outcome="gated", attempt="7-gated-1-SchedulingGates")
    assert message_id(gated) == message_id(msgspec.structs.replace(gated, message="the same, sent again"))
    assert message_id(gated) != message_id(msgspec.structs.replace(gated, at=11.0))
