"""Requests that nobody answers: repeated where that is safe, within what a person waits."""

from typing import Any

import pytest

from podyard.bus import Busy, NoResponders, RemoteError, Reply, RequestTimeout, Unclear
from podyard.cli import objects_client
from podyard.cli.errors import CliError
from podyard.proto import codec
from podyard.proto.message import ObjectRef
from podyard.proto.objects_api import ObjectOutcome, ObjectResult, ObjectsReply
from podyard.shell import door_requests

NAMED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}}
GENERATED = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "job-"}}
REF = ObjectRef(resource="pods", namespace="default", name="a")


class FakeBus:
    """Fails as told, then answers."""

    def __init__(self, *failures: Exception, outcome: ObjectOutcome = "created") -> None:
        self.failures = list(failures)
        self.outcome: ObjectOutcome = outcome
        self.limits: list[float] = []

    async def request(self, subject: str, payload: bytes, *, timeout_s: float) -> Reply:
        self.limits.append(timeout_s)
        if self.failures:
            raise self.failures.pop(0)
        return Reply(codec.encode(ObjectsReply(results=(ObjectResult(outcome=self.outcome),))), {})


def silence() -> RequestTimeout:
    return RequestTimeout("svc.objects.apply", 5.0)


@pytest.fixture(autouse=True)
def no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door_requests, "PAUSE_S", 0.001)


async def apply(bus: FakeBus, *documents: dict[str, Any], **more: Any) -> list[str]:
    found = await objects_client.apply(bus, documents, **more)  # pyright: ignore[reportArgumentType] - a fake
    return [result.outcome for result in found]


async def test_what_nobody_answered_is_asked_again_well_before_the_person_gives_up() -> None:
    bus = FakeBus(silence(), silence(), outcome="unchanged")
    assert await apply(bus, NAMED) == ["unchanged"]
    assert bus.limits == pytest.approx([5.0, 10.0, 15.0], abs=0.5)
    assert sum(bus.limits) <= objects_client.REQUEST_S + 1


async def test_the_successor_may_take_a_moment_to_come() -> None:
    away = NoResponders("svc.objects.apply")
    away.delay_s = 0.001
    assert await apply(FakeBus(silence(), away), NAMED) == ["created"]


async def test_without_any_api_a_person_is_told_at_once() -> None:
    bus = FakeBus(NoResponders("svc.objects.apply"))
    with pytest.raises(NoResponders):
        await apply(bus, NAMED)
    assert len(bus.limits) == 1


async def test_an_api_with_too_much_to_do_is_asked_again_whatever_the_request() -> None:
    busy = Busy("svc.objects.apply", "too many requests", delay_s=0.001)
    assert await apply(FakeBus(busy), GENERATED) == ["created"]


@pytest.mark.parametrize(
    ("documents", "more", "why"),
    [((NAMED, GENERATED), {}, 'could create "job-..." twice'), ((NAMED,), {"create_only": True}, "those of others")],
)
async def test_what_could_be_done_twice_is_asked_once_and_the_error_says_so(documents, more, why) -> None:
    bus = FakeBus(silence())
    with pytest.raises(CliError, match="it was not asked again") as raised:
        await apply(bus, *documents, **more)
    assert why in raised.value.message
    assert bus.limits == pytest.approx([objects_client.REQUEST_S], abs=0.5), "it has all the time there is"


async def test_a_dry_run_is_always_asked_again() -> None:
    assert await apply(FakeBus(silence()), GENERATED, dry_run=True) == ["created"]


async def test_a_person_is_told_in_the_end() -> None:
    with pytest.raises(Unclear):
        await apply(FakeBus(*[silence() for _ in range(1000)]), NAMED, timeout_s=0.05)


@pytest.mark.parametrize(("failures", "outcome"), [((), "notFound"), ((silence(),), "deleted")])
async def test_an_object_that_went_by_an_unanswered_deletion_was_deleted(failures, outcome) -> None:
    bus: Any = FakeBus(*failures, outcome="notFound")
    assert [result.outcome for result in await objects_client.delete(bus, [REF])] == [outcome]


@pytest.mark.parametrize(("failures", "expected"), [((), "notFound"), ((silence(),), "evicted")])
async def test_a_pod_that_is_gone_when_asked_again_was_evicted(failures: tuple[Exception, ...], expected: str) -> None:
    bus = FakeBus(*failures, outcome="notFound")
    found = await objects_client.evict(bus, [REF])  # pyright: ignore[reportArgumentType] - a fake
    assert [one.outcome for one in found] == [expected]


async def test_what_is_in_the_way_of_one_eviction_does_not_lose_what_is_known_of_the_others() -> None:
    bus = FakeBus(outcome="evicted")
    request = bus.request
    problems = iter([None, RemoteError("a bug"), RequestTimeout("svc.objects.evict", 0.0), None])

    async def failing(subject: str, payload: bytes, *, timeout_s: float) -> Reply:
        problem = next(problems, None)
        if problem is not None:
            raise problem
        return await request(subject, payload, timeout_s=timeout_s)

    bus.request = failing  # type: ignore[method-assign]
    names = ["a", "b", "c", "d"]
    pods = [ObjectRef(resource="pods", namespace="default", name=name) for name in names]
    found = await objects_client.evict(bus, pods, timeout_s=0.0)  # pyright: ignore[reportArgumentType] - a fake
    assert [(one.outcome, one.unclear) for one in found] == [
        ("evicted", False), ("refused", False), ("refused", True), ("evicted", False)
    ]  # fmt: skip
    assert (found[1].name, found[1].message) == ("b", "a bug")
