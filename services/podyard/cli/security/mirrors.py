"""Streams, consumers and mirrors, made by the administrators of CORE and READ before anybody works."""

from pathlib import Path
from typing import Any, Final

import anyio

from podyard.bus.bootstrap import config_of, ensure_streams
from podyard.bus.connection import Bus, connect
from podyard.bus.errors import NotFound, TemporaryError, Unclear
from podyard.cli.security import directory, identities
from podyard.cli.security.accounts import MIRROR_API, mirror_subject
from podyard.cli.security.identities import MIRROR_CONSUMER, READABLE
from podyard.proto import streams

RETRY_S: Final = 0.2
HEARTBEAT_NS: Final = 1_000_000_000
IN_FLIGHT: Final = 4096
"""Messages that a mirror may have before it acknowledges: some MiB."""

_KEPT_AS_IS: Final = (
    "name", "description", "retention", "storage", "max_msgs_per_subject", "max_age", "max_bytes", "allow_msg_ttl", "allow_direct",
    "deny_delete", "deny_purge",
)  # fmt: skip


async def bootstrap(security: Path, servers: tuple[str, ...], *, replicas: int = 1) -> None:
    """Make what is missing: CORE's streams, the consumers for the mirrors, the mirrors, the agents' leases.
    Waits for the servers.

    :raises BusError: for what an operator has to settle, such as a stream with other settings
    """
    admin = directory.bus_settings(security, directory.named(identities.ADMIN), servers)
    mirrors = directory.bus_settings(security, directory.named(identities.MIRRORS), servers)
    async with connect(admin) as core, connect(mirrors) as read:
        await ensure_streams(core, replicas=replicas)
        await ensure_streams(read, replicas=replicas, specs=(streams.LEASES,))
        for name in READABLE:
            await _until_done(core, read, name, replicas)


async def _until_done(core: Bus, read: Bus, name: str, replicas: int) -> None:
    while True:
        try:
            await _ensure(core, read, name, replicas)
        except (TemporaryError, Unclear):
            await anyio.sleep(RETRY_S)
        else:
            return


async def _ensure(core: Bus, read: Bus, name: str, replicas: int) -> None:
    body = {"stream_name": name, "config": _consumer(name), "action": ""}
    await core.api.call(f"CONSUMER.CREATE.{name}.{MIRROR_CONSUMER}", body, dict[str, Any])
    try:
        await read.api.stream_info(name)
    except NotFound:
        await read.api.call(f"STREAM.CREATE.{name}", _mirror(name, replicas), dict[str, Any])


def _consumer(stream: str) -> dict[str, Any]:
    return {
        "name": MIRROR_CONSUMER,
        "durable_name": MIRROR_CONSUMER,
        "deliver_subject": mirror_subject(stream),
        "ack_policy": "flow_control",
        "deliver_policy": "all",
        "replay_policy": "instant",
        "flow_control": True,
        "idle_heartbeat": HEARTBEAT_NS,
        "max_ack_pending": IN_FLIGHT,
    }


def _mirror(stream: str, replicas: int) -> dict[str, Any]:
    (spec,) = (spec for spec in streams.ALL_STREAMS if spec.name == stream)
    config = config_of(spec)
    return {
        **{setting: config[setting] for setting in _KEPT_AS_IS},
        "num_replicas": replicas,
        "mirror": {
            "name": stream,
            "external": {"api": MIRROR_API, "deliver": ""},
            "consumer": {"name": MIRROR_CONSUMER, "deliver_subject": mirror_subject(stream)},
        },
    }
