"""One of three servers after the other comes back with less than it had."""

import shutil
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final

from podyard.bus import EmbeddedServer, connect
from podyard.proto import streams
from tests.faults import disks, servers
from tests.faults.acknowledged import Load
from tests.faults.servers import Servers

STREAM: Final = streams.CLUSTER.name
ENOUGH: Final = 50

Harm = Callable[[EmbeddedServer], None]
"""What becomes of the store of a server that is down."""


def cut(share: float) -> Harm:
    """The newest block loses its end, as on a disk that had not written it, and the server is prepared for
    that as operators are told to."""
    return partial(_cut, share)


def _cut(share: float, server: EmbeddedServer) -> None:
    assert disks.cut_newest_block(server, STREAM, share=share) > 0
    disks.forget_index(server, STREAM)


def emptied(server: EmbeddedServer) -> None:
    """Somebody removes all that there is, streams and what the servers agreed on."""
    store = server.store_dir / "jetstream"
    assert any(store.iterdir())
    shutil.rmtree(store)


async def stores_harmed(nats: Servers, harms: Sequence[Harm]) -> None:
    """Under load one server after the other is killed, and its store harmed. Once it has caught up it leads,
    and says what there is.
    """
    async with connect(nats.settings("watcher")) as bus:
        loads: list[Load] = []
        for number, harm in enumerate(harms):
            name = servers.NAMES[number % len(servers.NAMES)]
            async with connect(nats.settings("load")) as writing:
                loads.append(Load([writing], name=f"round-{number}"))
                async with loads[-1].running() as load:
                    await load.more(4 * ENOUGH)
                    await nats[name].kill()
                    harm(nats[name])
                    await load.more(ENOUGH)
                    await nats[name].start()
                    await nats.healthy(name)
                    await load.more(ENOUGH)
                await nats.caught_up(name, STREAM)
                await nats.let_lead(bus, STREAM, name)
                await load.check(bus)
        for name in nats.by_name:
            await nats.let_lead(bus, STREAM, name)
            for load in loads:
                await load.check(bus)
