import json

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from podyard.bus import Ack, Delivery, NoResponders, Outgoing, Unclear
from podyard.bus.bootstrap import config_of, differing
from podyard.bus.outgoing import header_dict, read_ack
from podyard.proto import streams


def answer(data: bytes, headers: dict[str, str] | None = None) -> Msg:
    return Msg(Client(), "inbox", "", data, headers)


def test_a_bare_message_has_no_headers():
    assert header_dict(Outgoing("s", b"")) is None


def test_all_headers():
    message = Outgoing("s", b"", expect=0, ttl_s=600, trace="00-t", message_id="m", deleted=True, headers={"A": "b"})
    assert header_dict(message) == {
        "A": "b",
        "Nats-Expected-Last-Subject-Sequence": "0",
        "Nats-TTL": "600s",
        "traceparent": "00-t",
        "Nats-Msg-Id": "m",
        "Podyard-Op": "del",
    }


@pytest.mark.parametrize("ttl_s", [0, -1])
def test_a_ttl_below_a_second_is_a_mistake(ttl_s: int):
    with pytest.raises(ValueError, match="at least 1"):
        header_dict(Outgoing("s", b"", ttl_s=ttl_s))


def test_an_acknowledgement_is_read():
    assert read_ack(answer(b'{"stream":"C","seq":7,"duplicate":true}'), "s") == Ack(7, True)


def test_no_responders_is_read():
    assert isinstance(read_ack(answer(b"", {"Status": "503"}), "s"), NoResponders)


def test_an_answer_that_is_none_is_unclear():
    assert isinstance(read_ack(answer(b"<html>"), "s"), Unclear)


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
