"""Leaders that are paused or cut off, wake up late and still believe that they lead: they write nothing, and
nothing is lost."""

from pathlib import Path
from typing import Final

import pytest

from podyard.bus import _heads
from podyard.proto import codec, headers, subjects
from podyard.proto.placement import Fence
from podyard.proto.queue_api import QueueListReply, QueueListRequest
from tests.faults.frames import Frame
from tests.faults.message_rules import Note
from tests.faults.proxy import Proxy
from tests.faults.stage import Stage, staged
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(200)
whole = pytest.mark.whole_faults
HELD_WITHIN_S: Final = 20.0


def commits(frame: Frame) -> bool:
    """The fence as the last message of a batch."""
    return headers.BATCH_COMMIT in _heads.parse(frame.head)


class Fences:
    """What a binder sends to the fence, as it goes to the server."""

    def __init__(self, proxy: Proxy) -> None:
        self.sent: list[tuple[int, bool]] = []
        """Epoch, and whether it ends a batch."""
        proxy.sent.append(self._on_sent)

    def _on_sent(self, frame: Frame) -> None:
        if frame.subject == subjects.FENCE:
            self.sent.append((codec.decode(Fence, frame.payload).epoch, commits(frame)))

    def late(self, epoch: int) -> int:
        """Batches that were sent under an epoch below that one."""
        return sum(batch for mine, batch in self.sent if mine < epoch)


@whole
@pytest.mark.parametrize("service", ["binder", "queue"])
async def test_a_leader_paused_for_longer_than_its_lease_steps_down(stage: Stage, service: str):
    async with stage.trial(f"paused-{service}") as load:
        leader = await stage.leading(service)
        async with load.flowing():
            await stage.bound(10)
            stage.process(leader).pause()
            await stage.leading(service, other_than=leader)
            await stage.bound(5)
            stage.process(leader).resume()
        assert await stage.leading(service) != leader
        assert stage.process(leader).alive


async def test_a_commit_that_arrives_after_the_next_binder_took_over_is_refused(stage: Stage):
    """What the deposed binder had sent is held by the network, and comes when another has moved the fence."""
    async with stage.trial("late-commit") as load:
        leader = await stage.leading("binder")
        fences = Fences(stage.proxy(leader))
        async with load.flowing():
            await stage.bound(10)
            epoch = stage.recorder.checker.fence.epoch
            stage.proxy(leader).hold(up=True)
            fences.sent.clear()
            held = stage.proxy(leader).rule(Note(subjects.FENCE, where=commits))
            await held.done(1, HELD_WITHIN_S)
            await stage.leading("binder", other_than=leader)
            await stage.bound(5)
            taken = stage.recorder.checker.fence.epoch
            assert taken > epoch
            assert fences.sent == []
            stage.proxy(leader).heal()
        await stage.verdict()
        assert fences.late(taken) > 0, f"nothing came late: {fences.sent}"


@whole
@pytest.mark.parametrize("way", ["up", "down", "both"])
@pytest.mark.parametrize("service", ["binder", "queue"])
async def test_a_leader_is_cut_off(stage: Stage, service: str, way: str):
    """Asymmetric partitions: it hears and is not heard, it is heard and does not hear, neither."""
    async with stage.trial(f"cut-off-{service}-{way}") as load:
        leader = await stage.leading(service)
        async with load.flowing():
            await stage.bound(10)
            stage.proxy(leader).hold(up=way != "down", down=way != "up")
            successor = await stage.leading(service, other_than=leader, within_s=40)
            await stage.bound(5)
            stage.proxy(leader).heal()
        assert successor != leader


@whole
@pytest.mark.parametrize("way", ["up", "down"])
async def test_a_scheduler_is_cut_off(stage: Stage, way: str):
    """Its session dies if it is not heard; if it does not hear, what it was given goes back."""
    async with stage.trial(f"cut-off-scheduler-{way}") as load:
        async with load.flowing():
            await stage.bound(10)
            before = await sessions(stage)
            stage.proxy("scheduler-1").hold(up=way == "up", down=way == "down")
            await until_sessions_differ(stage, before)
            await stage.bound(5)
            stage.proxy("scheduler-1").heal()
        assert stage.process("scheduler-1").alive


@whole
@pytest.mark.timeout(240)
async def test_pauses_beyond_the_lease_of_earnest(tmp_path: Path):
    """10 s, as services have it unless they are told otherwise; binder and queue at once."""
    async with staged(tmp_path, lease_ttl_s=10) as stage:
        stage.test = "tests/faults/test_service_pauses.py::test_pauses_beyond_the_lease_of_earnest"
        async with stage.trial("earnest") as load:
            leaders = {service: await stage.leading(service) for service in ("binder", "queue")}
            async with load.flowing():
                await stage.bound(10)
                for leader in leaders.values():
                    stage.process(leader).pause()
                for service, leader in leaders.items():
                    await stage.leading(service, other_than=leader)
                await stage.bound(5)
                for leader in leaders.values():
                    stage.process(leader).resume()


async def sessions(stage: Stage) -> set[str]:
    """Sessions of schedulers that the queue's leader knows."""
    asked = codec.encode(QueueListRequest(limit=0))
    reply = await stage.bus.request(subjects.queue_verb("list"), asked)
    return set(codec.decode(QueueListReply, reply.payload).sessions)


async def until_sessions_differ(stage: Stage, before: set[str], within_s: float = 40.0) -> None:
    """Wait until one of them is no more."""

    async def differ() -> bool:
        return not before <= await sessions(stage)

    await eventually("the end of a session", differ, within_s)
