"""A NATS server in memory, as much of it as Podyard uses, and the connection to it: for simulations and for
tests without a process.

Duty: the same bus. Everything above the connection (`Bus`, publishing, watches, services, leases, dead
letters) is the code that runs on the real server; only the server and the way to it are modelled
(docs/rules.md, memory-server-answers-like-nats). Time comes from outside, and every message between client
and server passes a `Wire`, where a simulator may delay, lose or repeat it.
Never in here: sockets, threads, chance.

Not modelled: accounts and permissions, flow control, `max_bytes` and `max_age`, replicas (a read may be made
stale on purpose).

    server = MemoryServer(LoopTimers(clock.now))
    async with connect(server, BusSettings(name="demo")) as bus:
        await ensure_streams(bus)

- `stream`    messages of one stream: sequences, compare-and-set, atomic batches, time to live, deduplication
- `consumer`  a push consumer: in order, with its own sequence and idle heartbeats
- `routing`   who listens on which subject
- `server`    subjects, streams, and the JetStream API
- `link`      a client's connection
"""

from tests.memory_nats.link import MemoryBus, connect
from tests.memory_nats.server import LoopTimers, LoopWire, MemoryServer, Timers, Wire

__all__ = ["LoopTimers", "LoopWire", "MemoryBus", "MemoryServer", "Timers", "Wire", "connect"]
