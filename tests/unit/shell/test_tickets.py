"""Requests in hand: answered at once, later, or by the end of the term."""

import anyio
import pytest

from podyard.bus import Request
from podyard.shell.causes import Cause
from podyard.shell.tickets import Tickets, Waits

ASKED = Cause(Request("svc.test", b"?"), ("one",))


async def test_a_reply_that_comes_while_the_core_is_told_is_had_at_once() -> None:
    tickets = Tickets[str]()
    assert await tickets.ask(ASKED, lambda ticket: tickets.reply(ticket, f"number {ticket}")) == "number 1"
    assert await tickets.ask(ASKED, lambda ticket: tickets.reply(ticket, f"number {ticket}")) == "number 2"


async def test_a_reply_that_comes_before_anybody_waits_for_it_is_kept() -> None:
    tickets = Tickets[str]()
    waits = tickets.begin(ASKED, lambda ticket: None)
    assert isinstance(waits, Waits)
    assert tickets.cause(waits.ticket) == ASKED
    tickets.reply(waits.ticket, "so")
    assert await tickets.wait(waits) == "so"
    assert tickets.cause(waits.ticket) is None


async def test_a_request_on_which_the_core_raised_is_forgotten() -> None:
    tickets = Tickets[str]()

    def tell(ticket: int) -> None:
        raise KeyError(ticket)

    with pytest.raises(KeyError):
        tickets.begin(ASKED, tell)
    assert tickets.cause(1) is None


async def test_each_gets_its_own_reply_when_it_comes() -> None:
    tickets, told, got = Tickets[str](), list[int](), dict[str, str | None]()

    async def ask(name: str) -> None:
        got[name] = await tickets.ask(ASKED, told.append)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask, "first")
        await anyio.wait_all_tasks_blocked()
        tasks.start_soon(ask, "second")
        await anyio.wait_all_tasks_blocked()
        assert not got
        tickets.reply(told[1], "to the second")
        await anyio.wait_all_tasks_blocked()
        assert got == {"second": "to the second"}
        tickets.reply(told[0], "to the first")
    assert got == {"second": "to the second", "first": "to the first"}


async def test_the_end_of_the_term_leaves_nobody_waiting() -> None:
    tickets, got = Tickets[str](), list[str | None]()

    async def ask() -> None:
        got.append(await tickets.ask(ASKED, lambda ticket: None))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(ask)
        await anyio.wait_all_tasks_blocked()
        tickets.end()
    await ask()
    assert got == [None, None], "who waited, and who came later"


async def test_a_request_is_known_by_its_ticket_while_it_is_in_hand() -> None:
    tickets, found = Tickets[str](), list[Cause | None]()

    def tell(ticket: int) -> None:
        found.append(tickets.cause(ticket))
        tickets.reply(ticket, "so")

    await tickets.ask(ASKED, tell)
    assert found == [ASKED]
    assert tickets.cause(1) is None
    tickets.reply(1, "too late")
