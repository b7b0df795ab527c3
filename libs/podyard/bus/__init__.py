"""The bus: everything that Podyard asks of NATS, and the only importer of nats.

Duty: connect and stay connected; store messages (one, many, an atomic batch) with compare-and-set; requests
and services; read a stream for ever without missing anything unnoticed; leases; dead letters; an embedded
server; the streams as `proto.streams` says.
Never in here: what the messages mean (objects, bindings, pods), telemetry, a decision. A callback of nats-py
never raises; a time-out is never taken for a refusal: it is `Unclear` and settled by whoever sent.

    from podyard import bus

    async with bus.embedded_server() as server:
        async with bus.connect(bus.BusSettings(servers=(server.url,), name="demo")) as b:
            await bus.ensure_streams(b)
            ack = await b.publish(bus.Outgoing("cluster.pods.default.web", b"{}", expect=0))

Modules, by topic:

- `connection`   `connect` and `Bus`: the door
- `settings`, `key_files`   how to connect; whether the files of keys were replaced
- `errors`       what can go wrong, by what to do about it
- `outgoing`, `delivery`, `requests`   messages on their way out, as read, and as asked
- `publisher`    single, pipelined and batched publishing
- `services`     the server's side of requests and plain subjects
- `watch`, `watch_state`, `feed`   reading a stream: list, follow, notice gaps
- `census`       what lived in the stream: told from what a killed server brings back
- `lease`        who leads a service
- `dead_letters` messages that could not be used
- `bootstrap`    making the streams
- `backup`, `restore`, `archive`   streams as files: taken beside writers, given to another server, its format
- `embedded`     the real nats-server as a child process; `_launcher` ends it with its parent
- `_client`, `_link`, `_inbox`, `_api`, `_heads`   nats-py, connection, answers, JetStream requests, headers
"""

from podyard.bus._link import BusState
from podyard.bus.bootstrap import ensure_streams
from podyard.bus.connection import Bus, connect
from podyard.bus.delivery import Delivery
from podyard.bus.embedded import EmbeddedServer, embedded_server
from podyard.bus.errors import (
    BatchUnclear,
    BusError,
    Busy,
    Conflict,
    EmbeddedServerError,
    NoResponders,
    NotFound,
    PermanentError,
    Refused,
    RemoteError,
    RequestTimeout,
    SettingsError,
    StreamFull,
    StreamSettingsConflict,
    SubjectTooLong,
    TemporaryError,
    TooLarge,
    Unavailable,
    Unclear,
)
from podyard.bus.lease import Lease
from podyard.bus.outgoing import Ack, Outgoing
from podyard.bus.requests import Reply, Request
from podyard.bus.services import Later, Prompt, Subscription, finish_all
from podyard.bus.settings import BusSettings, without_secrets
from podyard.bus.watch import Watch, WatchSink, WatchSpec

__all__ = [
    "Ack",
    "BatchUnclear",
    "Bus",
    "BusError",
    "BusSettings",
    "BusState",
    "Busy",
    "Conflict",
    "Delivery",
    "EmbeddedServer",
    "EmbeddedServerError",
    "Later",
    "Lease",
    "NoResponders",
    "NotFound",
    "Outgoing",
    "PermanentError",
    "Prompt",
    "Refused",
    "RemoteError",
    "Reply",
    "Request",
    "RequestTimeout",
    "SettingsError",
    "StreamFull",
    "StreamSettingsConflict",
    "SubjectTooLong",
    "Subscription",
    "TemporaryError",
    "TooLarge",
    "Unavailable",
    "Unclear",
    "Watch",
    "WatchSink",
    "WatchSpec",
    "connect",
    "embedded_server",
    "ensure_streams",
    "finish_all",
    "without_secrets",
]
