import json

import pytest

from podyard.bus import Ack, Delivery, NoResponders, Outgoing, Unclear, _heads
from podyard.bus.bootstrap import config_of, differing
from podyard.bus.outgoing import batch_lines, head_of, read_ack
from podyard.proto import streams


def test_a_bare_message_has_no_headers():
    assert head_of(Outgoing("s", b"")) == b""


def test_all_headers():
    message = Outgoing("s", b"", expect=0, ttl_s=600, trace="00-t", message_id="m", deleted=True, headers={"A": "b"})
    assert _heads.parse(head_of(message, batch_lines("b1", 3, last=True))) == {
        "Nats-Batch-Id": "b1",
        "Nats-Batch-Sequence": "3",
        "Nats-Batch-Commit": "1",
        "A": "b",
        "Nats-Expected-Last-Subject-Sequence": "0",
        "Nats-TTL": "600s",
        "traceparent": "00-t",
        "Nats-Msg-Id": "m",
        "Podyard-Op": "del",
    }


def test_only_the_last_of_a_batch_commits():
    assert "Nats-Batch-Commit" not in _heads.parse(head_of(Outgoing("s", b""), batch_lines("b1", 2, last=False)))


@pytest.mark.parametrize("ttl_s", [0, -1])
def test_a_ttl_below_a_second_is_a_mistake(ttl_s: int):
    with pytest.raises(ValueError, match="at least 1"):
        head_of(Outgoing("s", b"", ttl_s=ttl_s))


@pytest.mark.parametrize("field", ["trace", "message_id", "headers"])
def test_no_value_can_add_a_header(field: str):
    evil = "00-t\r\nNats-Rollup: all"
    message = Outgoing("s", b"").but(**{field: {"A": evil} if field == "headers" else evil})
    lines = _heads.parse(head_of(message))
    assert list(lines.values()) == ["00-t Nats-Rollup: all"]


@pytest.mark.parametrize("name", ["", "A B", "A:", "A\r\nB", "Ä"])
def test_impossible_header_names(name: str):
    with pytest.raises(ValueError, match="cannot be the name of a header"):
        head_of(Outgoing("s", b"", headers={name: "x"}))


def test_a_status_is_read():
    head = b"NATS/1.0 100 Idle Heartbeat\r\nNats-Last-Consumer: 3\r\nNats-Last-Stream:7\r\n\r\n"
    assert (_heads.status(head), _heads.description(head)) == ("100", "Idle Heartbeat")
    assert _heads.parse(head) == {"Nats-Last-Consumer": "3", "Nats-Last-Stream": "7"}
    assert (_heads.status(b""), _heads.status(b"NATS/1.0\r\nA: b\r\n\r\n"), _heads.parse(b"")) == ("", "", {})


def test_an_acknowledgement_is_read():
    assert read_ack(b'{"stream":"C","seq":7,"duplicate":true}', b"", "s") == Ack(7, True)


def test_no_responders_is_read():
    assert isinstance(read_ack(b"", b"NATS/1.0 503\r\n\r\n", "s"), NoResponders)


def test_an_answer_that_is_none_is_unclear():
    assert isinstance(read_ack(b"<html>", b"", "s"), Unclear)


class TestDelivery:
    def test_without_headers(self):
        delivery = Delivery("s", b"", 1)
        assert (delivery.predecessor, delivery.trace, delivery.deleted, dict(delivery.headers)) == (None, "", False, {})

    def test_with_headers(self):
        delivery = Delivery(
            "s",
            b"",
            1,
            headers={"Nats-Expected-Last-Subject-Sequence": "0", "traceparent": "00-t", "Podyard-Op": "del"},
        )
        assert (delivery.predecessor, delivery.trace, delivery.deleted) == (0, "00-t", True)

    def test_with_a_header_block(self):
        head = b"NATS/1.0\r\nNats-Expected-Last-Subject-Sequence: 12\r\nPodyard-Op: del\r\n\r\n"
        delivery = Delivery("s", b"", 1, head=head)
        assert (delivery.predecessor, delivery.trace, delivery.deleted) == (12, "", True)

    def test_a_marker_of_the_server_is_a_deletion(self):
        assert Delivery("s", b"", 1, headers={"Nats-Marker-Reason": "MaxAge"}).deleted

    def test_a_strange_predecessor_is_none(self):
        assert Delivery("s", b"", 1, headers={"Nats-Expected-Last-Subject-Sequence": "many"}).predecessor is None


def test_a_streams_own_configuration_does_not_differ():
    wanted = config_of(streams.CLUSTER)
    as_the_server_says_it = {
        name: value for name, value in json.loads(json.dumps(wanted)).items() if value not in (False, 0)
    }
    assert differing(as_the_server_says_it, wanted) == ()


def test_differences_are_sentences():
    wanted = config_of(streams.CLUSTER)
    found = {**wanted, "discard": "old", "allow_atomic": False}
    assert differing(found, wanted) == ("discard is 'old', wanted 'new'", "allow_atomic is False, wanted True")
