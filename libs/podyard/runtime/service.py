"""A service's definition, and what it is given when it runs."""

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import msgspec
import prometheus_client
import structlog

from podyard.proto.streams import LEASE_TIMES, LeaseTimes
from podyard.runtime.clock import Clock
from podyard.runtime.dumps import Dumps
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.pages import Pages
from podyard.runtime.settings import ServiceSettings
from podyard.telemetry.tracing import Spans

if TYPE_CHECKING:
    from podyard.bus.connection import Bus
    from podyard.bus.lease import Lease

S = TypeVar("S", bound=msgspec.Struct)


class Effective(NamedTuple):
    """What a service runs by, with everything that was left to defaults."""

    settings: Any
    """Its own."""
    documents: Mapping[str, Any] = {}
    """What else it was given, complete, by what `/configz` calls it. The first is what `--write-config-to`
    writes; without any it writes the settings."""
    unwritten: tuple[str, ...] = ()
    """What that document cannot say, so that it is not written."""
    remarks: tuple[str, ...] = ()
    """What who writes it should know."""


class ServiceDefinition(msgspec.Struct, Generic[S], frozen=True, kw_only=True):
    """What a service package exposes as `SERVICE` in its `service.py`.

    `main` runs until it is cancelled: SIGTERM cancels it, so it ends its work in `finally` or `async with`
    exits, shielded and bounded (`anyio.move_on_after(s, shield=True)`); all of it has
    `ServiceSettings.shutdown_timeout_s`. If it returns, the process ends with exit code 0; if it raises, with
    1.
    """

    name: str
    """As in `podyard run NAME`, e.g. `node_agent`."""
    settings_type: type[S]
    """A frozen Struct; the service's section of the options file, and `PODYARD_<NAME>_<FIELD>`."""
    main: Callable[["Service[S]"], Awaitable[None]]
    description: str
    """One sentence, shown by `podyard run --help` and by `nats micro info`."""
    check: Callable[[ServiceSettings, S], None] | None = None
    """Asked before anything is started, for what settings name (a file), with those of every service and its
    own: raises `SettingsError` if it cannot be used.
    """
    in_force: Callable[[ServiceSettings, S], Effective] | None = None
    """What it runs by, asked after `check`; None: its settings are all."""


class Service(Generic[S]):
    """What a running service is given: connections, settings and instruments. One a process."""

    def __init__(
        self,
        definition: ServiceDefinition[S],
        *,
        process: ServiceSettings,
        settings: S,
        bus: "Bus",
        clock: Clock,
        health: Health,
        pages: Pages,
        spans: Spans,
        metrics: prometheus_client.CollectorRegistry,
        log: structlog.stdlib.BoundLogger,
        endpoints: Endpoints,
        session: str,
        dumps: Dumps | None = None,
    ) -> None:
        self.definition = definition
        self.name = definition.name
        self.process = process
        """Settings that every service has."""
        self.settings = settings
        """The service's own settings."""
        self.instance = process.instance
        """Stable name of this instance: started again with the same name, it may take its own lease over."""
        self.session = session
        """Unique to this start of the process."""
        self.bus = bus
        self.clock = clock
        """`clock.now()`: the only time there is."""
        self.health = health
        """`health.set_ready(check, ok, reason)`; all checks must be ready for `/readyz`."""
        self.pages = pages
        """`pages.add(path, make)`: what the service shows of itself over HTTP."""
        self.dumps = dumps or Dumps()
        """`dumps.add(name, write)`: what the service writes to its log on SIGUSR2."""
        self.spans = spans
        self.metrics = metrics
        """Register counters and histograms here: `prometheus_client.Counter(..., registry=service.metrics)`.
        """
        self.log = log
        self.endpoints = endpoints
        """`await endpoints.serve(name, subject, handler, queue_group=...)`: `bus.serve`, counted and
        described.
        """

    def lease(self, name: str = "", times: LeaseTimes = LEASE_TIMES, *, take_over: bool = False) -> "Lease":
        """This instance's candidature; the check `lease` says while none can be got, whoever leads.

        :param name: of the lease, the service's own by default
        :param take_over: as of `Lease`
        """
        from podyard.bus.lease import Lease

        trouble = self.health.trouble("lease")
        return Lease(
            self.bus, name or self.name, self.instance, self.session, times, on_trouble=trouble, take_over=take_over
        )
