"""One service as one process, top to bottom: instruments, HTTP, bus, streams, the service's `main`, and the
way back.

The end runs in reverse: `main` is cancelled (it finishes what it holds), the bus drains, the last spans go
out, HTTP closes. All of it has `shutdown_timeout_s`; then the process ends whatever hangs.
"""

import gc
import importlib.metadata
import os
import random
from typing import Any, Final, TypeVar, cast

import anyio
import anyio.lowlevel
import msgspec
import prometheus_client
import structlog
import uvloop

from podyard.bus.bootstrap import ensure_streams
from podyard.bus.connection import Bus, BusState, connect
from podyard.bus.errors import BusError, TemporaryError
from podyard.bus.settings import BusSettings, without_secrets
from podyard.runtime import clock, core_dumps, sessions
from podyard.runtime.dumps import Dumps
from podyard.runtime.health import Health
from podyard.runtime.hiding import hidden
from podyard.runtime.http import CannotListenError, HttpEndpoint
from podyard.runtime.micro import Endpoints
from podyard.runtime.pages import Pages
from podyard.runtime.service import Effective, Service, ServiceDefinition
from podyard.runtime.settings import ServiceSettings, SettingsError
from podyard.runtime.shutdown import Deadline, cancel_on_signal
from podyard.telemetry.logs import start_logging
from podyard.telemetry.metrics import new_registry
from podyard.telemetry.setup import Tracing, TracingError, start_tracing
from podyard.telemetry.tracing import Spans

S = TypeVar("S", bound=msgspec.Struct)

BOOTSTRAP_JITTER_S: Final = 0.2
"""Streams are made through NATS' meta leader: services that start together do not ask it together."""

BOOTSTRAP_RETRY_S: Final = 5.0
"""After an answer that a person has to settle, e.g. a stream with other settings."""
NATS_CHECK: Final = "nats"
RUNNING_CHECK: Final = "running"
"""Not before the service has begun its work and said what it is not ready for."""
STREAMS_CHECK: Final = "streams"


class _Process:
    """What lives from the first line to the last: not the bus, which comes and goes inside."""

    def __init__(self, definition: ServiceDefinition[Any], settings: ServiceSettings) -> None:
        self.definition = definition
        self.settings = settings
        self.session = sessions.begin(settings.instance)
        self.version = importlib.metadata.version("podyard")
        self.log: structlog.stdlib.BoundLogger = start_logging(
            level=settings.log.level,
            form=settings.log.format,
            service=definition.name,
            instance=settings.instance,
        )
        self.registry = new_registry(service=definition.name, instance=settings.instance, version=self.version)
        _show_clock(self.registry)
        self.health = Health(stall_limit_s=settings.stall_limit_s, registry=self.registry)
        self.health.set_ready(RUNNING_CHECK, False, "starting")
        self.health.set_ready(
            NATS_CHECK, False, f"waiting for NATS at {without_secrets(', '.join(settings.nats.servers))}"
        )
        self.pages = Pages()
        self.dumps = Dumps()
        self.tracing = self._start_tracing()
        self.deadline = Deadline(settings.shutdown_timeout_s, self._overdue)

    def _start_tracing(self) -> Tracing:
        try:
            return start_tracing(
                os.environ,
                service=self.definition.name,
                instance=self.settings.instance,
                version=self.version,
                registry=self.registry,
            )
        except TracingError as error:
            self.log.error("no traces are sent", reason=str(error))
            return Tracing(Spans(), None)

    def _overdue(self) -> None:
        self.log.error("the end took too long: exiting at once", limit_s=self.settings.shutdown_timeout_s)

    def stopping(self, reason: str) -> None:
        """The end begins."""
        self.log.info("stopping", reason=reason)
        self.health.set_ready(RUNNING_CHECK, False, f"stopping: {reason}")
        self.deadline.start()


def _show_clock(registry: prometheus_client.CollectorRegistry) -> None:
    prometheus_client.Gauge(
        "podyard_clock_behind_seconds",
        "How far the wall clock is ahead of the process' steady clock, which all times and deadlines go by; below 0: behind it",
        registry=registry,
    ).set_function(clock.PROCESS.behind_s)


def run(definition: ServiceDefinition[S], settings: ServiceSettings, own: S) -> int:
    """Run one service in this process.

    :return: exit code: 0 after an ordered end, 1 if it could not start or `main` raised, 2 if that was a
        `SettingsError`
    """
    not_forbidden = "" if settings.core_dumps else core_dumps.forbid()
    process = _Process(definition, settings)
    if not_forbidden:
        process.log.warning("the memory is not fully closed to others", reason=not_forbidden)
    try:
        shown = configuration_in_force(definition, settings, own)
        process.pages.add("/configz", lambda: shown)
        with HttpEndpoint(settings, process.health, process.registry, process.pages, process.log) as http:
            process.log.info(
                "starting",
                http=http.address or "off",
                https=http.secure_address or "off",
                version=process.version,
                pid=os.getpid(),
            )
            uvloop.run(_run(process, own))
    except CannotListenError as error:
        process.log.error("cannot listen", host=error.host, port=error.port, reason=str(error))
        return 1
    except KeyboardInterrupt:
        return 1
    except Exception as error:  # the boundary of the process: whatever ends a service is told and becomes its exit code
        if isinstance(wrong := _innermost(error), SettingsError):
            for problem in wrong.problems:
                process.log.error("a setting is wrong", reason=problem)
            return 2
        process.log.error("the service failed", reason=_root(error), exc_info=error)
        return 1
    finally:
        process.tracing.shutdown()
        process.deadline.cancel()
    process.log.info("stopped")
    return 0


def configuration_in_force(definition: ServiceDefinition[S], settings: ServiceSettings, own: S) -> dict[str, Any]:
    """What a service runs by, as /configz shows it: with all defaults, without secrets.

    :raises SettingsError: if a file that it names cannot be used
    """
    found = Effective(own) if definition.in_force is None else definition.in_force(settings, own)
    return hidden({**found.documents, "process": _without_secrets(settings), definition.name: found.settings})


def _without_secrets(settings: ServiceSettings) -> ServiceSettings:
    """Addresses of servers may hold a password, also without a scheme."""
    servers = tuple(without_secrets(server) for server in settings.nats.servers)
    return msgspec.structs.replace(settings, nats=msgspec.structs.replace(settings.nats, servers=servers))


def _innermost(error: BaseException) -> BaseException:
    """What nested exception groups hold first: task groups wrap what their tasks raise."""
    if isinstance(error, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", error)
        return _innermost(group.exceptions[0])
    return error


def _root(error: BaseException) -> str:
    innermost = _innermost(error)
    return f"{type(innermost).__name__}: {innermost}"


async def _run(process: _Process, own: Any) -> None:
    # what was imported so far lives to the end: the collector need not look at it again
    gc.collect()
    gc.freeze()
    process.pages.made_here()
    work = anyio.CancelScope()
    async with anyio.create_task_group() as tasks:
        process.health.tick()
        tasks.start_soon(process.health.keep_ticking)
        await tasks.start(cancel_on_signal, work, process.stopping)
        await tasks.start(process.dumps.listen, process.log)
        await _serve(process, own, work)
        tasks.cancel_scope.cancel()


async def _serve(process: _Process, own: Any, work: anyio.CancelScope) -> None:
    """The bus around the work: a signal cancels the work only, so that what it does last still has a bus."""
    nats = process.settings.nats
    check = _NatsCheck(process.health, process.log, nats.servers)
    async with connect(_bus_settings(process), now=clock.now, on_state=check.changed, wait=False) as bus:
        try:
            with work:
                await bus.connected()
                await _run_main(process, own, bus)
        finally:
            check.closing = True


async def _run_main(process: _Process, own: Any, bus: Bus) -> None:
    if process.settings.nats.ensure_streams:
        await _ensure_streams(process, bus)
    service = _service(process, own, bus)
    await service.endpoints.describe()
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(_work, process.definition, service)
        await anyio.lowlevel.checkpoint()  # until main waits: what it is not ready for is said by then
        process.health.set_ready(RUNNING_CHECK, True)
        process.log.info("running")


async def _work(definition: ServiceDefinition[Any], service: Service[Any]) -> None:
    await definition.main(service)


def _service(process: _Process, own: Any, bus: Bus) -> Service[Any]:
    return Service(
        process.definition,
        process=process.settings,
        settings=own,
        bus=bus,
        clock=clock.PROCESS,
        health=process.health,
        pages=process.pages,
        dumps=process.dumps,
        spans=process.tracing.spans,
        metrics=process.registry,
        log=process.log,
        endpoints=Endpoints(
            bus,
            name=f"podyard-{process.definition.name}",
            identity=process.session,
            version=process.version,
            description=process.definition.description,
        ),
        session=process.session,
    )


def _bus_settings(process: _Process) -> BusSettings:
    nats = process.settings.nats
    return BusSettings(
        servers=nats.servers,
        name=process.settings.instance,
        service=process.definition.name,
        inbox_prefix=nats.inbox_prefix,
        jetstream_prefix=nats.jetstream_prefix,
        user_credentials=nats.credentials_file,
        nkey_seed_file=nats.nkey_seed_file,
        tls_ca_file=nats.tls_ca_file,
        tls_cert_file=nats.tls_cert_file,
        tls_key_file=nats.tls_key_file,
        request_timeout_s=nats.request_timeout_s,
        marker_ttl_s=process.settings.retention.markers_s,
    )


class _NatsCheck:
    """Turns the connection's state into readiness and one log line a change."""

    def __init__(self, health: Health, log: structlog.stdlib.BoundLogger, servers: tuple[str, ...]) -> None:
        self._health = health
        self._log = log
        self._servers = without_secrets(", ".join(servers))
        self._connected: bool | None = None
        self.closing = False
        """The connection is being closed by us: no news."""

    def changed(self, state: BusState) -> None:
        """The connection came or went."""
        if self.closing:
            return
        reason = "" if state.connected else f"waiting for NATS at {self._servers}: {state.last_error or 'no contact'}"
        self._health.set_ready(NATS_CHECK, state.connected, reason)
        if state.connected != self._connected:
            self._connected = state.connected
            if state.connected:
                self._log.info("connected to NATS", servers=self._servers)
            else:
                self._log.warning("no NATS", servers=self._servers, reason=state.last_error)


async def _ensure_streams(process: _Process, bus: Bus) -> None:
    """Make the streams, again and again while NATS is missing or full."""
    process.health.set_ready(STREAMS_CHECK, False, "making sure that the streams are there")
    await anyio.sleep(random.uniform(0, BOOTSTRAP_JITTER_S))
    told = ""
    while True:
        try:
            settings = process.settings
            await ensure_streams(bus, replicas=settings.nats.stream_replicas, specs=settings.retention.specs)
        except BusError as error:
            process.health.set_ready(STREAMS_CHECK, False, str(error))
            if str(error) != told:
                told = str(error)
                process.log.warning("streams are not ready", reason=told)
            await anyio.sleep(error.delay_s if isinstance(error, TemporaryError) else BOOTSTRAP_RETRY_S)
        else:
            process.health.set_ready(STREAMS_CHECK, True)
            return
