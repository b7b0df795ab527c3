"""Pages: made on the service's loop, asked for from another thread."""

import asyncio
import json
import threading

import pytest

from podyard.runtime import pages as pages_module
from podyard.runtime.pages import JSON, TEXT, Answer, Pages


def ask(pages: Pages, path: str, *, secure: bool = True) -> Answer | None:
    """As the thread that serves does."""
    return asyncio.run(pages.answer(path, secure=secure))


@pytest.fixture
def pages() -> Pages:
    return Pages()


async def test_a_page_is_made_on_the_loop_that_owns_what_it_shows(pages: Pages) -> None:
    threads: list[int] = []

    def make() -> object:
        threads.append(threading.get_ident())
        return {"queue": {"workers": 4}}

    pages.add("/configz", make)
    pages.made_here()
    answer = await asyncio.to_thread(ask, pages, "/configz")
    assert answer is not None
    assert (answer.status, answer.kind, json.loads(answer.body)) == (200, JSON, {"queue": {"workers": 4}})
    assert answer.body.startswith(b'{\n  "queue"'), "indented, for people"
    assert threads == [threading.get_ident()]


async def test_a_text_is_sent_as_it_is_and_a_coroutine_is_awaited(pages: Pages) -> None:
    async def make() -> str:
        await asyncio.sleep(0)
        return "nothing waits\n"

    pages.add("/debug/queue", make)
    pages.made_here()
    assert await asyncio.to_thread(ask, pages, "/debug/queue") == Answer(200, TEXT, b"nothing waits\n")


async def test_what_is_removed_or_only_for_the_secure_port_is_not_there(pages: Pages) -> None:
    pages.add("/configz", dict)
    pages.add("/debug/queue", dict)
    pages.add("/flagz", dict, secure_only=True)
    pages.made_here()
    assert pages.paths(secure=False) == ["/configz"]
    assert pages.paths(secure=True) == ["/configz", "/debug/queue", "/flagz"]
    for path in ("/debug/queue", "/flagz", "/other"):
        assert await asyncio.to_thread(ask, pages, path, secure=False) is None
    pages.remove("/flagz")
    assert await asyncio.to_thread(ask, pages, "/flagz") is None


async def test_a_page_that_raises_says_so_without_its_details(pages: Pages) -> None:
    def make() -> object:
        raise ValueError("a secret")

    pages.add("/configz", make)
    pages.made_here()
    answer = await asyncio.to_thread(ask, pages, "/configz")
    assert answer is not None
    assert answer.status == 500
    assert b"ValueError" in answer.body
    assert b"secret" not in answer.body


def test_nothing_is_made_before_the_loop_runs_nor_after_it_has_ended(pages: Pages) -> None:
    async def begin() -> None:
        pages.made_here()

    pages.add("/configz", dict)
    before = ask(pages, "/configz")
    asyncio.run(begin())
    after = ask(pages, "/configz")
    assert before == after
    assert before is not None
    assert (before.status, before.body) == (503, b"the service is starting or ending; ask again\n")


async def test_a_stalled_loop_is_told_and_makes_nothing_later(pages: Pages, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pages_module, "LIMIT_S", 0.05)
    made: list[str] = []
    answers: list[Answer | None] = []
    pages.add("/configz", lambda: made.append("too late"))
    pages.made_here()
    asking = threading.Thread(target=lambda: answers.append(ask(pages, "/configz")))
    asking.start()
    asking.join()  # the loop is stalled until the answer is there
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    [answer] = answers
    assert answer is not None
    assert answer.status == 503
    assert b"stalled or busy" in answer.body
    assert made == []


async def test_the_end_of_the_service_ends_what_is_being_made(pages: Pages) -> None:
    begun = threading.Event()

    async def wait() -> None:
        begun.set()
        await asyncio.Event().wait()

    async def serve() -> None:
        pages.made_here()
        await asyncio.to_thread(begun.wait)

    pages.add("/configz", wait)
    service = threading.Thread(target=asyncio.run, args=(serve(),))
    service.start()
    answer = None
    while not begun.is_set():
        answer = await pages.answer("/configz", secure=True)
    service.join()
    assert answer is not None
    assert (answer.status, answer.body) == (503, b"the service is starting or ending; ask again\n")
