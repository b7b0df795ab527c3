"""Each answer of the server, in the core's words: only an acknowledgement is applied, only a number a
conflict, all else is unclear."""

from collections.abc import Sequence

import pytest

from podyard.binder.core.effects import Applied, Conflicted, Send, Unclear, Write
from podyard.binder.writer import Writer
from podyard.bus import Ack, Outgoing
from podyard.bus.errors import (
    ApiError,
    BusError,
    Busy,
    Conflict,
    NoResponders,
    NotFound,
    RequestTimeout,
    StreamFull,
    TooLarge,
    Unavailable,
    from_api,
)
from podyard.bus.errors import Unclear as BusUnclear

ONE = Send("s.1", [Write("placement.fence", b"{}", 7)])
BATCH = Send("s.2", [Write("placement.bindings.d.p.u", b"{}", 0), Write("placement.fence", b"{}", 7)])


class Server:
    """A bus that answers every publish with one thing."""

    def __init__(self, answer: Ack | BusError) -> None:
        self.answer = answer
        self.sent: list[Outgoing] = []
        self.batch_ids: list[str | None] = []

    async def publish(self, message: Outgoing, *, timeout_s: float | None = None) -> Ack:
        self.sent.append(message)
        return self._answered()

    async def publish_batch(
        self, messages: Sequence[Outgoing], *, batch_id: str | None = None, timeout_s: float | None = None
    ) -> Ack:
        self.sent += messages
        self.batch_ids.append(batch_id)
        return self._answered()

    def _answered(self) -> Ack:
        if isinstance(self.answer, BusError):
            raise self.answer
        return self.answer


def api(code: int, description: str = "what it says", *, status: int = 400, batch: bool = True) -> BusError:
    """An error as the server words it, read by the bus."""
    error = ApiError(code=status, err_code=code, description=description)
    return from_api(error, "placement.fence", batch_id="s.2" if batch else "")


UNCLEAR = [
    pytest.param(RequestTimeout("placement.fence", 5.0), id="time-out"),
    pytest.param(BusUnclear("placement.fence", "the connection was lost"), id="connection lost"),
    pytest.param(Unavailable("no connection"), id="no connection"),
    pytest.param(NoResponders("placement.fence"), id="no responders"),
    pytest.param(api(10164, "last sequence mismatch"), id="10164 of a batch"),
    pytest.param(api(10176, "batch publish is incomplete"), id="10176"),
    pytest.param(api(10210, "too many atomic publishes"), id="50 open batches"),
    pytest.param(api(10199, "batch is too large"), id="10199"),
    pytest.param(api(10047, "insufficient storage"), id="no storage"),
    pytest.param(api(10077, "maximum bytes exceeded"), id="stream full"),
    pytest.param(api(10008, "JetStream system temporarily unavailable", status=503), id="10008"),
    pytest.param(api(10060, "expected stream does not match"), id="10060"),
    pytest.param(api(10059, "stream not found", status=404), id="no stream"),
    pytest.param(api(19999, "something new"), id="unknown"),
    pytest.param(TooLarge("placement.fence", 5_000_000, 4_000_000), id="too large"),
    pytest.param(StreamFull("placement.fence", "x"), id="full"),
    pytest.param(Busy("placement.fence", "x"), id="busy"),
    pytest.param(NotFound("placement.fence", "x"), id="not found"),
]


@pytest.mark.parametrize("error", UNCLEAR)
@pytest.mark.parametrize("send", [ONE, BATCH], ids=["move", "batch"])
async def test_whatever_is_neither_an_acknowledgement_nor_a_number_is_unclear(send: Send, error: BusError) -> None:
    trouble: list[str] = []
    found = await Writer(Server(error), 1.0, trouble.append).send(send)  # type: ignore[arg-type] - the two methods that it uses
    assert found == Unclear(send.batch_id, str(error))
    assert trouble == [str(error)], "and /readyz says so until an answer is clear"


@pytest.mark.parametrize("send", [ONE, BATCH], ids=["move", "batch"])
@pytest.mark.parametrize(
    ("error", "number"),
    [
        pytest.param(api(10071, "wrong last sequence: 12"), 12, id="10071"),
        pytest.param(api(10164, "wrong last sequence", batch=False), None, id="10164 of one message"),
        pytest.param(Conflict("", 12), 12, id="conflict"),
    ],
)
async def test_a_lost_compare_and_set_is_a_conflict_with_its_number(
    send: Send, error: BusError, number: int | None
) -> None:
    trouble: list[str] = []
    found = await Writer(Server(error), 1.0, trouble.append).send(send)  # type: ignore[arg-type]
    assert found == Conflicted(send.batch_id, number)
    assert trouble == [""]


@pytest.mark.parametrize("send", [ONE, BATCH], ids=["move", "batch"])
async def test_an_acknowledgement_is_applied_at_the_fences_sequence(send: Send) -> None:
    server = Server(Ack(sequence=9, duplicate=False))
    assert await Writer(server, 1.0, lambda text: None).send(send) == Applied(send.batch_id, 9)  # type: ignore[arg-type]
    assert [message.expect for message in server.sent] == [write.expect for write in send.writes]
    assert server.batch_ids == ([send.batch_id] if len(send.writes) > 1 else [])
