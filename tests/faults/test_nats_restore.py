"""A backup of one server, restored on three with three copies of each stream."""

from contextlib import suppress
from pathlib import Path

from podyard.bus import Bus, BusError, Outgoing, backup, connect, embedded_server, ensure_streams, restore
from podyard.bus.settings import BusSettings
from podyard.proto import streams
from tests.faults import servers
from tests.support.waiting import eventually

CLUSTER = streams.CLUSTER
OBJECTS = 200


async def test_three_servers_hold_what_was_restored_and_one_may_go(tmp_path: Path) -> None:
    async with (
        embedded_server(tmp_path / "one") as server,
        connect(BusSettings(servers=(server.url,), name="test")) as bus,
    ):
        await ensure_streams(bus)
        for version in range(3):
            await bus.publish_many(
                [Outgoing(f"cluster.pods.default.p{number}", str(version).encode()) for number in range(OBJECTS)]
            )
        kept = await backup.back_up(bus, CLUSTER, tmp_path, silent)
    async with servers.three_servers(tmp_path / "three") as three, connect(three.settings("test")) as bus:
        await eventually("a leader of the servers", lambda: led(bus), servers.ELECTED_WITHIN_S)
        info = await restore.restore(bus, CLUSTER, kept, tmp_path / kept.file, 3, silent)
        assert (info.state.messages, info.state.last_seq) == (OBJECTS, 3 * OBJECTS + restore.SKIPPED)
        for name in servers.NAMES:
            await three.caught_up(name, CLUSTER.name)
            held = await three.holds(name, CLUSTER.name)
            assert held is not None
            assert (held.messages, held.last_sequence) == (OBJECTS, 3 * OBJECTS + restore.SKIPPED)
        leader = await three.leader(bus, CLUSTER.name)
        await three[leader].kill()
        await three.leader(bus, CLUSTER.name, but=leader)
        ack = await bus.publish(Outgoing("cluster.pods.default.p7", b"3", expect=2 * OBJECTS + 8), timeout_s=20)
        assert ack.sequence == 3 * OBJECTS + restore.SKIPPED + 1


async def led(bus: Bus) -> bool:
    """Whether the servers have chosen who answers for streams; before that nobody does."""
    with suppress(BusError):
        return await restore.held(bus) == {}
    return False


def silent(done: int, total: int) -> None:
    del done, total
