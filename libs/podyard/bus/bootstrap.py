"""Making the streams what `proto.streams` says they are. Needs an identity that may create streams:
the bootstrap administrator of docs/trust.md."""

import logging
from collections.abc import Sequence
from typing import Any, Final

import anyio

from podyard.bus._api import SECOND_NS, StreamInfo
from podyard.bus.connection import Bus
from podyard.bus.errors import (
    STREAM_NAME_IN_USE,
    SUBJECTS_OVERLAP,
    NotFound,
    Refused,
    StreamSettingsConflict,
    TemporaryError,
    Unclear,
)
from podyard.proto import streams

log: Final = logging.getLogger("podyard.bus")

RETRY_S: Final = 0.2
LOG_EVERY: Final = 25
"""Attempts (5 s) between two words about a JetStream that is not ready."""


async def ensure_streams(
    bus: Bus, *, replicas: int = 1, specs: Sequence[streams.StreamSpec] = streams.ALL_STREAMS
) -> None:
    """Create the streams that are missing, update those that differ. Waits for ever for a JetStream that is
    not ready.

    Several processes may do so at once. `replicas` is for new streams: an existing one keeps its number,
    which is the operator's.

    :raises StreamSettingsConflict: a stream exists with settings that cannot be changed into the wanted ones
    :raises Refused: the server does not take the settings, or this identity may not make streams
    """
    for spec in specs:
        attempt = 0
        while not await _ensured(bus, spec, replicas, attempt):
            attempt += 1
            await anyio.sleep(RETRY_S)


async def _ensured(bus: Bus, spec: streams.StreamSpec, replicas: int, attempt: int) -> bool:
    """One attempt; False if it should be repeated."""
    try:
        await _ensure(bus, spec, replicas)
    except (TemporaryError, Unclear) as error:
        level = logging.WARNING if attempt % LOG_EVERY == LOG_EVERY - 1 else logging.DEBUG
        log.log(level, "stream %s: %s; trying again", spec.name, error)
        return False
    return True


async def _ensure(bus: Bus, spec: streams.StreamSpec, replicas: int) -> None:
    wanted = config_of(spec)
    try:
        info = await bus.api.stream_info(spec.name)
    except NotFound:
        try:
            await bus.api.call(f"STREAM.CREATE.{spec.name}", {**wanted, "num_replicas": replicas}, StreamInfo)
        except Refused as error:
            if error.code == SUBJECTS_OVERLAP:
                taken = (f"another stream has some of the subjects {', '.join(spec.subjects)}",)
                raise StreamSettingsConflict(spec.name, taken, str(error)) from error
            if error.code != STREAM_NAME_IN_USE:
                raise
            info = await bus.api.stream_info(spec.name)  # somebody was quicker, with other settings
        else:
            log.info("stream %s was made", spec.name)
            return
    differences = differing(info.config, wanted)
    if not differences:
        return
    try:
        await bus.api.call(f"STREAM.UPDATE.{spec.name}", {**info.config, **wanted}, StreamInfo)
    except Refused as error:
        raise StreamSettingsConflict(spec.name, differences, str(error)) from error
    log.info("stream %s was changed: %s", spec.name, "; ".join(differences))


def config_of(spec: streams.StreamSpec) -> dict[str, Any]:
    """The server's stream configuration for `spec`, without the number of replicas."""
    return {
        "name": spec.name,
        "description": spec.purpose,
        "subjects": list(spec.subjects),
        "retention": "limits",
        "storage": "file",
        "discard": spec.discard,
        "max_msgs_per_subject": spec.max_msgs_per_subject,
        "max_age": spec.max_age_s * SECOND_NS,
        "max_bytes": spec.max_bytes or -1,
        "duplicate_window": min(spec.duplicates_s, spec.max_age_s or spec.duplicates_s) * SECOND_NS,
        "allow_atomic": spec.allow_atomic,
        "allow_msg_ttl": spec.allow_msg_ttl,
        "allow_direct": spec.allow_direct,
        "deny_delete": spec.deny_delete,
        "deny_purge": spec.deny_purge,
    }


def differing(config: dict[str, Any], wanted: dict[str, Any]) -> tuple[str, ...]:
    """In which settings `config` is not as `wanted`, each as a sentence, in the order of `wanted`."""
    return tuple(
        f"{name} is {config.get(name)!r}, wanted {value!r}"
        for name, value in wanted.items()
        if config.get(name, _default(value)) != value
    )


def _default(value: Any) -> Any:
    """What the server means when it leaves a setting out."""
    return False if isinstance(value, bool) else 0 if isinstance(value, int) else value[:0]
