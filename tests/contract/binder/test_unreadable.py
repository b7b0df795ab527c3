"""A binder that cannot read a placement says so on /readyz and does not lead; `podyard mend` says what it
was, and it leads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import pytest_asyncio

from podyard.binder.service import SERVICE
from podyard.bus import Bus, Outgoing
from podyard.cli import mending
from podyard.cli.errors import CliError, InputError
from podyard.proto import subjects
from podyard.proto.facts import PodStatusFact
from podyard.proto.placement import Binding, Tombstone
from podyard.runtime.service import Service
from podyard.shell import leading
from tests.contract.binder.stage import Cluster
from tests.support.buses import ConnectBus
from tests.support.holding import Hold
from tests.support.services import make_service, running
from tests.support.waiting import eventually

SUBJECT = subjects.binding("default", "a", "uid-a")
JUNK = b"\xff"


@pytest_asyncio.fixture
async def cluster(bus: Bus) -> Cluster:
    """One node of four CPUs, and pods of one."""
    found = Cluster(bus)
    await found.node()
    await found.pods("a", "b", "c", "d", "e")
    return found


@asynccontextmanager
async def blocked(bus: Bus) -> AsyncIterator[Service]:
    service = make_service(SERVICE, bus)
    async with running(service):
        await eventually("it says what is in the way", lambda: "cannot be read" in why_not_ready(service))
        yield service


@pytest_asyncio.fixture
async def binder(cluster: Cluster, connect_bus: ConnectBus, hold: Hold[Service]) -> Service:
    """One that has met a binding that cannot be read."""
    await cluster.write(Outgoing(SUBJECT, JUNK))
    return await hold(blocked(await connect_bus("binder")))


def why_not_ready(service: Service) -> str:
    return "; ".join(check.reason for check in service.health.checks.values() if not check.ok)


async def leads(service: Service) -> None:
    await eventually(
        "the binder leads",
        lambda: service.health.ready and service.health.checks[leading.CHECK].reason != leading.STANDS_BY,
    )


async def test_its_readiness_names_subject_sequence_and_the_command(cluster: Cluster, binder: Service) -> None:
    found = await cluster.last(SUBJECT)
    assert found is not None
    assert why_not_ready(binder) == (
        f"does not lead: {SUBJECT} (sequence {found.sequence}) cannot be read: not a Binding or Tombstone: "
        "'utf-8' codec can't decode byte 0xff in position 0: invalid start byte; "
        f"`podyard mend {SUBJECT}` says what can be done"
    )


async def test_whoever_knows_the_node_says_so_and_the_room_is_taken(
    cluster: Cluster, binder: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    assert await mending.mend(cluster.bus, SUBJECT, node="n1", gone=False, agreed=True) == 0
    said = capsys.readouterr().out
    assert (
        "Pod default/a (uid uid-a) will be bound to node n1, without judgement, and take what its object requests now: cpu 1000"
        in said
    )
    await leads(binder)
    placement = await cluster.placement("a")
    assert isinstance(placement, Binding)
    assert (placement.node, placement.forced, placement.usage.requests) == ("n1", True, {"cpu": 1000})
    answers = await cluster.bind(*(cluster.decide(name) for name in "bcde"))
    assert answers == ["bound", "bound", "bound", "conflict"]


async def test_whoever_knows_that_it_has_ended_says_so_and_the_room_is_free(
    cluster: Cluster, binder: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    await mending.mend(cluster.bus, SUBJECT, node="", gone=True, agreed=True)
    assert "will count as ended" in capsys.readouterr().out
    await leads(binder)
    placement = await cluster.placement("a")
    assert isinstance(placement, Tombstone)
    assert await cluster.bind(*(cluster.decide(name) for name in "bcdea")) == ["bound"] * 4 + ["alreadyBound"]


async def test_all_that_is_known_is_shown_before_anything_is_written(
    cluster: Cluster, binder: Service, capsys: pytest.CaptureFixture[str]
) -> None:
    await cluster.status(PodStatusFact(namespace="default", name="a", uid="uid-a", node="n1", phase="Running"))
    assert await mending.show(cluster.bus) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[1:] == [
        "  pod default/a, uid uid-a: its object is there",
        "  the agent of node n1 says: Running",
        f"  mend it: podyard mend {SUBJECT} --node NODE, or --gone",
    ]
    before = await cluster.bus.last_sequence("CLUSTER")
    for choice, says in (
        ({"node": "", "gone": False}, "say what it was"),
        ({"node": "n7", "gone": False}, "there is no node n7"),
        ({"node": "n1", "gone": False}, "nothing was written"),
    ):
        with pytest.raises(CliError, match=says):
            await mending.mend(cluster.bus, SUBJECT, agreed=False, **choice)
    with pytest.raises(InputError, match="nothing is stored there that cannot be read"):
        await mending.mend(cluster.bus, subjects.FENCE, node="", gone=False, agreed=True)
    assert await cluster.bus.last_sequence("CLUSTER") == before
    assert not binder.health.ready


async def test_a_fence_that_cannot_be_read_is_written_anew_above_all_before(
    cluster: Cluster, connect_bus: ConnectBus
) -> None:
    service = make_service(SERVICE, await connect_bus("binder"))
    async with running(service):
        await leads(service)
        assert await cluster.bind(cluster.decide("a")) == ["bound"]
        before = await cluster.fence()
        bad = await cluster.write(Outgoing(subjects.FENCE, JUNK))
        await eventually("it says what is in the way", lambda: subjects.FENCE in why_not_ready(service))
        await mending.mend(cluster.bus, subjects.FENCE, node="", gone=False, agreed=True)
        await leads(service)
        assert await cluster.bind(cluster.decide("b")) == ["bound"]
    after = await cluster.fence()
    assert (after.n, after.epoch > before.epoch) == (bad + 1, True)
