"""What is set aside, for how long, and when a process that goes on trying is not ready."""

import pytest

from podyard.bus import Delivery, Request
from podyard.cluster.changes import Change, Origin
from podyard.proto import headers
from podyard.shell import boundary as boundary_module
from podyard.shell import causes, set_aside
from podyard.shell.boundary import CHECK, MANY, REFUSED_S, Boundary
from podyard.shell.causes import Cause, Told
from podyard.workloads.core.receipts import Receipts
from podyard.workloads.service import SERVICE
from tests.support.services import make_service
from tests.unit.framework.builders import make_pod


class Letters:
    """A bus that keeps dead letters."""

    def __init__(self) -> None:
        self.kept: list[tuple[str, str, str]] = []

    def dead_letter_soon(self, service: str, message: Delivery | Request, reason: str) -> None:
        self.kept.append((service, message.subject, reason))


@pytest.fixture
def letters() -> Letters:
    return Letters()


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The monotonic clock: one number, which tests set."""
    now = [1000.0]
    monkeypatch.setattr(boundary_module.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def boundary(letters: Letters) -> Boundary:
    return Boundary(make_service(SERVICE, letters))


def raised() -> Exception:
    try:
        raise KeyError("nobody")
    except KeyError as error:
        return error


def delivery(sequence: int, *, deleted: bool = False) -> Delivery:
    lines = {headers.OPERATION: headers.DELETED} if deleted else {}
    return Delivery("cluster.pods.default.a", b"{}", sequence, 5.0, lines)


async def test_a_stored_message_is_seen_without_its_payload_until_it_is_written_anew(
    boundary: Boundary, letters: Letters
) -> None:
    boundary.raised(Cause(delivery(7)), raised())
    assert [(service, subject) for service, subject, _ in letters.kept] == [("workloads", "cluster.pods.default.a")]
    assert "KeyError: 'nobody'" in letters.kept[0][2]
    assert "test_boundary.py" in letters.kept[0][2]
    seen = boundary.aside.admit(delivery(7))
    assert (seen.subject, seen.payload, seen.sequence, seen.stored_at) == ("cluster.pods.default.a", b"", 7, 5.0)
    assert boundary.aside.admit(delivery(7, deleted=True)).deleted
    assert boundary.aside.admit(delivery(6)).payload == b"{}", "another version"
    assert boundary.aside.admit(delivery(9)).payload == b"{}"
    assert boundary.aside.admit(delivery(7)).payload == b"{}", "it is not looked for any more"


async def test_what_was_asked_for_is_refused_for_a_while(boundary: Boundary, seconds: list[float]) -> None:
    boundary.raised(Cause(Request("svc.binder.bind", b"x"), ("uid-a", "uid-b")), raised())
    assert "KeyError: 'nobody'" in boundary.refusal(["uid-b"])
    assert boundary.refusal(["uid-c"]) == ""
    seconds[0] += REFUSED_S
    assert boundary.refusal(["uid-a"]) == boundary.refusal(["uid-b"]) == ""


async def test_many_ends_within_a_minute_make_it_not_ready_and_name_the_last_cause(
    boundary: Boundary, seconds: list[float]
) -> None:
    health = boundary._service.health  # pyright: ignore[reportPrivateUsage]
    for number in range(MANY - 1):
        boundary.raised(Cause(delivery(number + 1)), raised())
    assert CHECK not in health.checks
    seconds[0] += 59.0
    boundary.raised(Cause(delivery(MANY)), raised())
    assert not health.checks[CHECK].ok
    assert f"cluster.pods.default.a@{MANY}: " in health.checks[CHECK].reason
    seconds[0] += 1.5
    boundary._look_again()  # pyright: ignore[reportPrivateUsage]
    assert CHECK not in health.checks, "one end within the last minute"


async def test_ends_that_are_far_apart_leave_it_ready(boundary: Boundary, seconds: list[float]) -> None:
    for number in range(3 * MANY):
        boundary.raised(Cause(delivery(number + 1)), raised())
        seconds[0] += 31.0
    assert CHECK not in boundary._service.health.checks  # pyright: ignore[reportPrivateUsage]


async def test_pauses_grow_with_the_ends_and_no_pause_is_made_without(
    boundary: Boundary, seconds: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept = list[float]()

    async def sleep(delay_s: float) -> None:
        slept.append(delay_s)

    monkeypatch.setattr(boundary_module.anyio, "sleep", sleep)
    await boundary.pause()
    for number in range(8):
        boundary.raised(Cause(delivery(number + 1)), raised())
        await boundary.pause()
    assert slept == [0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 10.0, 10.0]
    assert 60.0 / slept[-1] > MANY, "who is not ready stays so while it goes on"


async def test_what_is_set_aside_at_once_is_bounded(boundary: Boundary) -> None:
    for number in range(2 * set_aside.MOST):
        boundary.aside.put(Delivery(f"cluster.pods.default.p{number}", b"{}", number + 1))
    assert len(boundary.aside) == set_aside.MOST
    boundary.raised(Cause(Request("svc.x", b""), tuple(f"id-{n}" for n in range(2 * boundary_module.MOST))), raised())
    assert boundary.refusal(["id-0"]) == ""
    assert boundary.refusal([f"id-{2 * boundary_module.MOST - 1}"])


def test_a_pod_that_is_gone_leaves_no_receipt() -> None:
    receipts = Receipts()
    assert receipts.since("uid", 3600.0, 10.0) == receipts.since("uid", 3600.0, 20.0) == 10.0
    receipts.forget("uid")
    assert receipts.since("uid", 3600.0, 30.0) == 30.0


def change(name: str) -> Change:
    return Change("namespaces", f"uid-{name}", None, make_pod(name), Origin())


def test_the_change_of_a_listing_that_a_core_has_in_hand_is_the_cause() -> None:
    listed = Told([change("a"), change("b"), change("c")])
    assert causes.of(listed, lambda _: 0) is None
    for one in listed:
        if one.uid == "uid-b":
            break
    found = causes.of(listed, {"cluster.namespaces.default.b": 17}.__getitem__)
    assert found is not None
    assert found.name == "cluster.namespaces.default.b@17"
    assert [one.uid for one in listed] == ["uid-a", "uid-b", "uid-c"]
    assert causes.of(listed, lambda _: 0) is None, "it went through all of them"


def test_the_delivery_is_the_cause_of_what_it_changed() -> None:
    one = delivery(3)
    found = causes.of(Told([change("a"), change("b")], [one, one]), lambda _: 0)
    assert found is not None
    assert found.name == "cluster.pods.default.a@3"


def test_of_several_deliveries_it_is_the_one_of_the_change_in_hand() -> None:
    several = Told([change("a"), change("b"), change("c")], [delivery(3), delivery(4), delivery(5)])
    assert causes.of(several, lambda _: 0) is None, "nobody can say"
    for one in several:
        if one.uid == "uid-b":
            break
    found = causes.of(several, lambda _: 0)
    assert found is not None
    assert isinstance(found.message, Delivery)
    assert found.message.sequence == 4


def test_a_cause_has_a_name() -> None:
    assert Cause(Request("svc.x", b""), ("1-1", "1-2", "1-3")).name == "svc.x 1-1 and 2 more"
    assert causes.unknown("Tick").name == "(Tick)"
