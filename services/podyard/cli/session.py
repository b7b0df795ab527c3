"""A connection for one command: to the server that was named, or to the lab that runs."""

import logging
import os
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final, cast

import anyio

from podyard.bus import BusState
from podyard.bus.connection import Bus, connect
from podyard.bus.errors import BusError, NotFound, TemporaryError, Unclear
from podyard.bus.settings import BusSettings, without_secrets
from podyard.cli.errors import CliError
from podyard.cli.lab import state

CONNECT_S: Final = 3.0
"""Seconds that a person waits for a server before being told that there is none."""

DEFAULT_SERVER: Final = "nats://127.0.0.1:4222"
NO_SERVER_ADVICE: Final = "start a lab with `podyard up`, or name a server with --nats or PODYARD_NATS_SERVERS"
NO_KEY_ADVICE: Final = 'say who you are: eval "$(podyard security env DIRECTORY person)" (docs/trust.md)'
NOT_LET_IN: Final = ("certificate", "tls", "authorization", "authentication")
"""Words of a server, or of TLS, about somebody whom it does not know."""


def servers(named: str | None, environment: Mapping[str, str]) -> tuple[str, ...]:
    """Which servers to use: the named ones, the environment's, the running lab's, the usual one.

    :raises InputError: as of `state.meant`
    """
    found = lab(named, environment)
    if found is not None:
        return (found.url,)
    text = _named(named, environment)
    return tuple(part.strip() for part in text.split(",") if part.strip()) if text else (DEFAULT_SERVER,)


def lab(named: str | None, environment: Mapping[str, str]) -> state.LabState | None:
    """The running lab that is meant.

    :raises InputError: as of `state.meant`
    """
    return state.meant(_named(named, environment), environment)


def _named(named: str | None, environment: Mapping[str, str]) -> str:
    return (named or environment.get(state.VARIABLE, "")).strip()


def settings(named: str | None, environment: Mapping[str, str], service: str = "") -> BusSettings:
    """How the command line connects; credentials come from the same variables as a service's, or are a
    person's in the running lab.

    :param service: whose work the command does, and as whom it comes in the running lab; empty: a person's
    """
    found = _secured_lab(named, environment)
    if found is not None:
        return _in_lab(found, service)
    return BusSettings(
        servers=servers(named, environment),
        name="podyard-cli",
        service=service or "cli",
        inbox_prefix=environment.get("PODYARD_NATS_INBOX_PREFIX", ""),
        jetstream_prefix=environment.get("PODYARD_NATS_JETSTREAM_PREFIX", "$JS.API"),
        user_credentials=environment.get("PODYARD_NATS_CREDENTIALS_FILE", ""),
        nkey_seed_file=environment.get("PODYARD_NATS_NKEY_SEED_FILE", ""),
        tls_ca_file=environment.get("PODYARD_NATS_TLS_CA_FILE", ""),
        tls_cert_file=environment.get("PODYARD_NATS_TLS_CERT_FILE", ""),
        tls_key_file=environment.get("PODYARD_NATS_TLS_KEY_FILE", ""),
    )


def _secured_lab(named: str | None, environment: Mapping[str, str]) -> state.LabState | None:
    """The lab meant, if it asks who comes; None if the environment says who comes."""
    if environment.get("PODYARD_NATS_NKEY_SEED_FILE") or environment.get("PODYARD_NATS_CREDENTIALS_FILE"):
        return None
    found = lab(named, environment)
    return found if found is not None and found.security else None


def _in_lab(found: state.LabState, service: str) -> BusSettings:
    from podyard.cli.security import directory, identities

    return directory.bus_settings(Path(found.security), directory.named(service or identities.PERSON), (found.url,))


@asynccontextmanager
async def session(nats: str | None, service: str = "") -> AsyncGenerator[Bus]:
    """A connection for as long as the block runs.

    :param service: as of `settings`

    :raises CliError: if nobody listens where a server should be, or none answers within 3 s, or the bus fails
        in the block
    """
    wanted = settings(nats, os.environ, service)
    try:
        async with connect(wanted, wait=False) as bus:
            with _unlogged():
                await _connected(bus)
            yield bus
    except BusError as error:
        raise CliError(str(error), _advice(error)) from error


async def _connected(bus: Bus) -> None:
    """Wait for the connection as long as somebody may answer.

    :raises CliError: if nobody does
    """
    decided, refused = anyio.Event(), ""
    servers = bus.settings.servers

    def changed(state: BusState) -> None:
        # remembered: the end of the connection, which follows, is told as an error of its own
        nonlocal refused
        refused = state.last_error if _is_refusal(state.last_error) else refused
        if state.connected or state.unreachable >= len(servers):
            decided.set()

    forget = bus.on_state(changed)
    with anyio.move_on_after(CONNECT_S):
        await decided.wait()
    forget()
    if not bus.state.connected:
        raise _no_session(servers, refused)


@contextmanager
def _unlogged() -> Generator[None]:
    """What goes wrong while a connection is made is told by the error, and not logged besides."""
    log = logging.getLogger("podyard.bus")
    log.disabled = True
    try:
        yield
    finally:
        log.disabled = False


def _is_refusal(reason: str) -> bool:
    return any(word in reason.lower() for word in NOT_LET_IN)


def _no_session(tried: Sequence[str], refused: str) -> CliError:
    """:param refused: what a server, or TLS, said about us; empty: nobody said anything"""
    places = without_secrets(", ".join(tried))
    if refused:
        return CliError(f"the NATS server at {places} does not let us in: {refused}", NO_KEY_ADVICE)
    return CliError(f"no NATS server answers at {places}", NO_SERVER_ADVICE)


def _advice(error: BusError) -> str:
    if isinstance(error, NotFound):
        return "the services make the streams when they start: is one running? (`podyard up`, or `podyard run NAME`)"
    if isinstance(error, TemporaryError):
        return "is the service that answers running? (`podyard up` starts them all)"
    if isinstance(error, Unclear):
        return "it may have been done or not: look with `podyard get`, then try again"
    return ""


def run(nats: str | None, work: Callable[[Bus], Awaitable[int]], service: str = "") -> int:
    """Connect, do `work`, return its exit code.

    :param service: as of `settings`
    :raises CliError: see `session`
    """

    async def main() -> int:
        async with session(nats, service) as bus:
            return await work(bus)

    try:
        return anyio.run(main, backend_options={"use_uvloop": False})
    except BaseExceptionGroup as group:
        raise _told(first(group)) from group
    except ValueError as error:
        raise _told(error) from error


def _told(error: BaseException) -> BaseException:
    """What a person is told of an error: of bytes that cannot be read that they cannot, of any other the
    error itself."""
    from podyard.objects.errors import ObjectError
    from podyard.proto.codec import MessageError

    if isinstance(error, MessageError | ObjectError):
        return CliError(
            f"what is stored, or was answered, cannot be read: {error}", "`podyard get` shows which objects cannot"
        )
    return error


def first(group: BaseException) -> BaseException:
    """What a task group was ended by: the first CliError in it, else its first exception."""
    if not isinstance(group, BaseExceptionGroup):
        return group
    exceptions = cast("BaseExceptionGroup[BaseException]", group).exceptions
    leaves = [first(found) for found in exceptions]
    told = [leaf for leaf in leaves if isinstance(leaf, CliError)]
    return (told or leaves)[0]
