"""One cycle of the descheduler in the process of a command: the service's own term, without its lease."""

import os
from collections.abc import Mapping
from typing import Any, Final

from podyard.bus.connection import Bus
from podyard.cli import services
from podyard.cli.errors import CliError, InputError, listed
from podyard.descheduler.core.cycle import CycleRecord
from podyard.descheduler.core.effects import CycleFailed
from podyard.descheduler.making import check, one_cycle
from podyard.descheduler.settings import DeschedulerSettings
from podyard.runtime import clock, sessions
from podyard.runtime.health import Health
from podyard.runtime.micro import Endpoints
from podyard.runtime.pages import Pages
from podyard.runtime.service import Service
from podyard.runtime.settings import ServiceSettings, SettingsError, load_settings
from podyard.telemetry.logs import start_logging
from podyard.telemetry.metrics import new_registry
from podyard.telemetry.setup import start_tracing

INSTANCE: Final = "podyard-deschedule"
NAME: Final = "descheduler"
VERSION: Final = "cli"


class Chosen:
    """What one cycle runs by."""

    def __init__(self, common: ServiceSettings, own: DeschedulerSettings) -> None:
        self.common = common
        self.own = own


def chosen(config: str | None, flags: Mapping[str, Any]) -> Chosen:
    """Settings as the service's, the flags of the command last.

    :raises InputError: with all that is wrong with them, or with the policy
    """
    once = {"descheduler.once": True, "descheduler.run_on": "interval", "log.level": "error", "instance": INSTANCE}
    file = config or os.environ.get("PODYARD_CONFIG")
    try:
        common, own = load_settings(
            DeschedulerSettings, NAME, config_file=file, environment=os.environ, flags={**once, **flags}
        )
        if not own.policy:
            raise InputError("by which policy?", "podyard deschedule --policy FILE")
        check(common, own)
    except SettingsError as error:
        raise InputError(listed(error.problems)) from error
    return Chosen(common, own)


async def cycle(bus: Bus, given: Chosen) -> CycleRecord:
    """One cycle; its evictions have been answered when it returns.

    :raises CliError: if there was none, or it broke off
    """
    registry = new_registry(service=NAME, instance=INSTANCE, version=VERSION)
    session, definition = sessions.begin(INSTANCE), services.definition(NAME)
    tracing = start_tracing(os.environ, service=NAME, instance=INSTANCE, version=VERSION, registry=registry)
    service = Service(
        definition,
        process=given.common,
        settings=given.own,
        bus=bus,
        clock=clock.PROCESS,
        health=Health(stall_limit_s=given.common.stall_limit_s, registry=registry),
        pages=Pages(),
        spans=tracing.spans,
        metrics=registry,
        log=start_logging(level=given.common.log.level, form="auto", service=NAME, instance=INSTANCE),
        endpoints=Endpoints(bus, name=INSTANCE, identity=session, version=VERSION, description=definition.description),
        session=session,
    )
    try:
        came = await one_cycle(service)
    finally:
        tracing.shutdown()
    if isinstance(came, CycleFailed):
        raise CliError(f"no cycle: {came.reason}", "what was evicted before stands: podyard explain tells of moves")
    return came.record
