"""A running lab: the embedded server and the supervised services, for `up`, the demo and the bench."""

import logging
import os
import shutil
import tempfile
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import anyio
import msgspec

from podyard.bus import key_files
from podyard.bus.embedded import EmbeddedServer, embedded_server
from podyard.bus.errors import EmbeddedServerError
from podyard.bus.settings import BusSettings
from podyard.cli.errors import CliError, InputError
from podyard.cli.lab import kube_access, state
from podyard.cli.lab.child import Child
from podyard.cli.lab.plan import Planned
from podyard.cli.security import completing, directory, identities, rotation
from podyard.cli.security.authority import Authority
from podyard.cli.security.mirrors import bootstrap
from podyard.runtime import clock

_WELL: Final = ("ready", "done")
log: Final = logging.getLogger("podyard.lab")
KEYS_EVERY_S: Final = 0.5
"""How often to look whether keys were replaced."""

STOP_S: Final = 12.0
"""Seconds the services get to end in order: a little more than their own limit of 10."""


class LabOptions(msgspec.Struct, frozen=True, kw_only=True):
    """What to run and where."""

    services: tuple[Planned, ...]
    name: str = ""
    """By which other commands find it."""
    data_dir: str = ""
    """Empty: a temporary directory, removed at the end."""
    port: int = -1
    """Of NATS; -1 is any free one."""
    config: str = ""
    """Options file of the services."""
    scheduler_config: str = ""
    """KubeSchedulerConfiguration of queue, scheduler, binder and descheduler."""
    log_level: str = "info"
    environment: dict[str, str] = {}
    """Further variables of the services."""
    secure_ports: dict[str, int] = {}
    """Ports of HTTPS by instance, which no two can share; others serve none."""
    announce: bool = False
    """Whether other commands find it without flags. Only what a person started to work with should be found:
    a `podyard apply` must not land in a benchmark that happens to run."""
    server_settings: dict[str, Any] = {}
    """Further settings of the NATS server's configuration file."""
    security: str = ""
    """Directory of `podyard security init`: every process connects as its own identity. Empty: nobody has to
    log in."""
    secure: bool = False
    """The same with the directory `security` in `data_dir`, made if it is not there."""


def _nothing() -> None: ...


class Lab:
    """The parts of a running lab."""

    def __init__(self, options: LabOptions, directory: Path, server: EmbeddedServer) -> None:
        self.options = options
        self.directory = directory
        self.server = server
        self.started_at = clock.now()
        self.changed: Callable[[], None] = _nothing
        """Called when a service's state has changed."""
        self._event = anyio.Event()
        (directory / "logs").mkdir(parents=True, exist_ok=True)
        self.kube = kube_access.prepare(directory, options.services, options.name, self.started_at)
        self.children = [
            Child(
                planned,
                directory / "logs" / f"{planned.instance}.log",
                self._environment(planned),
                self._note,
                options.secure_ports.get(planned.instance, 0),
            )
            for planned in options.services
        ]

    @property
    def url(self) -> str:
        """Of the NATS server."""
        return self.server.url

    def child(self, instance: str) -> Child:
        """A service by instance name, or the first of a service.

        :raises KeyError: if there is none
        """
        for child in self.children:
            if instance in (child.instance, child.service):
                return child
        raise KeyError(instance)

    @property
    def ready(self) -> bool:
        """Whether all services are, but those that are done."""
        return all(child.state in _WELL for child in self.children)

    async def until_ready(self, timeout_s: float | None = None) -> None:
        """Wait until all services are ready.

        :raises CliError: they are not within `timeout_s` seconds, with their reasons
        """
        with anyio.move_on_after(timeout_s) as limit:
            while not self.ready:
                await self._event.wait()
        if limit.cancelled_caught:
            waiting = "; ".join(
                f"{child.instance} {child.state}{': ' + child.reason if child.reason else ''}"
                for child in self.children
                if child.state not in _WELL
            )
            raise CliError(
                f"not all services are ready after {timeout_s:g} s: {waiting}", f"logs: {self.directory}/logs"
            )

    def _note(self) -> None:
        self._event.set()
        self._event = anyio.Event()
        self.write_state()
        self.changed()

    def _environment(self, planned: Planned) -> Mapping[str, str]:
        given = {
            **self._secrets_key(planned.service),
            **self._identity(planned.service),
            **self.kube.environment(planned.instance),
            "PODYARD_NATS_SERVERS": self.server.url,
            "PODYARD_LOG_FORMAT": "json",
            "PODYARD_LOG_LEVEL": self.options.log_level,
            **({"PODYARD_CONFIG": str(Path(self.options.config).absolute())} if self.options.config else {}),
            **self._scheduler_config(),
            **self.options.environment,
        }
        return {**os.environ, **given}

    def _secrets_key(self, service: str) -> dict[str, str]:
        """Beside the data, since what is stored is read by it; the api makes it. A directory of `podyard
        security init` has one of its own."""
        return (
            {"PODYARD_API_SECRETS_KEY_FILE": str(self.directory / directory.SECRETS_KEY)}
            if service == directory.API
            else {}
        )

    def _identity(self, service: str) -> dict[str, str]:
        if not self.options.security:
            return {}
        return directory.environment(Path(self.options.security), directory.named(service))

    def person(self) -> BusSettings:
        """How a person connects to this lab."""
        if not self.options.security:
            return BusSettings(servers=(self.url,), name="podyard-cli", service="cli")
        known = directory.named(identities.PERSON)
        return directory.bus_settings(Path(self.options.security), known, (self.url,))

    def _scheduler_config(self) -> dict[str, str]:
        path = self.options.scheduler_config
        return {"PODYARD_SCHEDULER_CONFIG": str(Path(path).absolute())} if path else {}

    def write_state(self) -> None:
        """Let other commands find this lab, if it is to be found."""
        if not self.options.announce:
            return
        services = {
            child.instance: state.LabService(name=child.service, pid=child.pid, http=child.http, log=str(child.log))
            for child in self.children
        }
        state.write(
            state.LabState(
                pid=os.getpid(),
                url=self.url,
                name=self.options.name,
                data_dir=str(self.directory),
                security=str(Path(self.options.security).absolute()) if self.options.security else "",
                started_at=self.started_at,
                kubeconfig=self.kube.kubeconfig,
                services=services,
            ),
            os.environ,
        )

    async def run(self) -> None:
        """Supervise all services until cancelled."""
        self.write_state()
        async with anyio.create_task_group() as tasks:
            for child in self.children:
                tasks.start_soon(child.supervise)
            if self.options.security:
                tasks.start_soon(self._follow_keys, Path(self.options.security))

    async def _follow_keys(self, security: Path) -> None:
        """Have the server go by the directory when its keys are rotated."""
        files = directory.server_files(security)
        known = key_files.seen(files)
        while True:
            await anyio.sleep(KEYS_EVERY_S)
            if (now := key_files.seen(files)) == known:
                continue
            try:
                self.server.reload(_server_settings(self.options))
            except (OSError, ValueError, CliError) as error:
                log.warning("the server goes on with the keys that it has: %s", error)
            known = now

    async def stop(self) -> None:
        """End all services in order; those that take too long are killed."""
        for child in self.children:
            child.terminate()
        with anyio.move_on_after(STOP_S):
            while any(child.state not in ("stopped", "done") for child in self.children):
                await self._event.wait()


def _secured(options: LabOptions, folder: Path) -> LabOptions:
    """`options` with the directory of keys that `secure` asks for; with keys for every service that runs.

    :raises InputError: one has none, and the authority's key is not there
    """
    if options.secure:
        made = folder / "security"
        if not directory.is_made(made):
            directory.create(made, identities.all_identities())
        options = msgspec.structs.replace(options, security=str(made))
    if options.security:
        place = directory.checked(Path(options.security))
        without = {identity.name for identity in completing.missing(place)}
        if any(planned.service in without for planned in options.services):
            completing.complete(place, lambda: _authority(place))
    return options


def _authority(place: Path) -> Authority:
    try:
        return rotation.authority(place)
    except InputError as error:
        names = ", ".join(identity.name for identity in completing.missing(place))
        raise InputError(
            f"{place} has no keys for {names}, and not the authority's key to make them",
            f"podyard security complete {place} --ca-key FILE",
        ) from error


def _server_settings(options: LabOptions) -> dict[str, Any]:
    secured = directory.server_settings(Path(options.security)) if options.security else {}
    return {**secured, **options.server_settings}


def _directory(named: str) -> Path:
    return Path(named).absolute() if named else Path(tempfile.mkdtemp(prefix="podyard-"))


@asynccontextmanager
async def running_lab(options: LabOptions) -> AsyncGenerator[Lab]:
    """A lab for as long as the block runs; services may not be ready yet at its beginning (`until_ready`).

    :raises CliError: if NATS does not start
    """
    temporary = not options.data_dir
    folder = _directory(options.data_dir)
    try:
        options = _secured(options, folder)
        async with embedded_server(folder / "nats", port=options.port, settings=_server_settings(options)) as server:
            if options.security:
                await bootstrap(Path(options.security), (server.url,))
            lab = Lab(options, folder, server)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lab.run)
                try:
                    yield lab
                finally:
                    with anyio.CancelScope(shield=True):
                        await lab.stop()
                    tasks.cancel_scope.cancel()
    except EmbeddedServerError as error:
        raise CliError(str(error), "is another `podyard up` using the same --data or --port?") from error
    finally:
        state.remove(os.getpid(), os.environ)
        if temporary:
            shutil.rmtree(folder, ignore_errors=True)
