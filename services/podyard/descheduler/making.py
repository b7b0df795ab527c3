"""What makes a term of the descheduler: the policy, the plugins, the scheduling profiles; and one term on
demand."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple

import anyio
import anyio.to_thread

from podyard.configuration import files
from podyard.configuration import in_force as configured
from podyard.descheduler import spans_and_events
from podyard.descheduler.core import building, doubtful, loading, queries, registry, triggers, writing
from podyard.descheduler.core.advice import Profiles
from podyard.descheduler.core.effects import CycleEnded, CycleFailed
from podyard.descheduler.core.errors import PolicyError
from podyard.descheduler.core.framework import Plugin
from podyard.descheduler.core.loading import Loaded
from podyard.descheduler.core.policy import Policy
from podyard.descheduler.instruments import Instruments
from podyard.descheduler.settings import DeschedulerSettings
from podyard.descheduler.term import Term
from podyard.runtime import leases
from podyard.runtime.service import Effective, Service
from podyard.runtime.settings import ServiceSettings, SettingsError
from podyard.shell.boundary import Boundary
from podyard.shell.event_recorder import Recorder

PLUGINS: Final = registry.by_name()
SECTION: Final = "deschedulerpolicy"
"""What /configz calls the policy."""
NOT_ASKED: Final = "the plan does not ask HTTP extenders: where they decide pods may go elsewhere than planned"
"""In the log, with who they are."""


async def one_cycle(service: Service[DeschedulerSettings]) -> CycleEnded | CycleFailed:
    """A cycle on demand, whoever leads: the same term, its own limits. A listing that fails is not tried
    again."""
    found: list[CycleEnded | CycleFailed] = []
    made = await parts(service)
    with anyio.CancelScope() as work:

        def told(came: CycleEnded | CycleFailed) -> None:
            found.append(came)
            work.cancel()

        await Term(*made, work.cancel, told).run()
    return found[0] if found else CycleFailed("it broke off, see the log")


class Parts(NamedTuple):
    """What each term is made of, in its order."""

    service: Service[DeschedulerSettings]
    policy: Policy
    plugins: Mapping[str, type[Plugin]]
    profiles: Profiles
    instruments: Instruments
    boundary: Boundary
    events: Recorder


async def parts(service: Service[DeschedulerSettings]) -> Parts:
    """As the settings say.

    :raises SettingsError: if the policy or the scheduling configuration cannot be used
    """
    loaded = await anyio.to_thread.run_sync(read_policy, service.settings)
    for one in doubtful.found(loaded.document, loaded.policy):
        service.log.warning(spans_and_events.DOUBTFUL, **one._asdict())
    configuration = files.of(service.process)
    if configuration.extenders:
        service.log.warning(NOT_ASKED, extenders=[one.url_prefix for one in configuration.extenders])
    profiles = partial(files.profiles, configuration, service.process)
    instruments, boundary = Instruments(service.metrics), Boundary(service)
    return Parts(service, loaded.policy, loaded.plugins, profiles, instruments, boundary, Recorder(service))


def read_policy(settings: DeschedulerSettings) -> Loaded:
    """The policy file, decoded and checked, its plugins made once to see that they can be; what needs the
    cluster (priority classes) is looked up in each cycle.

    :raises SettingsError: if it cannot be read, with all its faults
    """
    if not settings.policy:
        return Loaded(Policy(), PLUGINS)
    try:
        text = Path(settings.policy).read_text(encoding="utf-8")
        found = building.usable(text, PLUGINS)
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError((f"descheduler.policy: {settings.policy} cannot be read: {error}",)) from error
    except PolicyError as error:
        raise SettingsError(tuple(f"descheduler.policy: {settings.policy}: {one}" for one in error.errors)) from error
    provider = queries.provider(found.policy)
    if provider is not None and provider.auth_token is not None and not settings.secrets_dir:
        told = "the policy refers to the secret of Prometheus' token: give the folder that has it, see --help"
        raise SettingsError((f"descheduler.secrets_dir: {told}",))
    return found


def check(process: ServiceSettings, settings: DeschedulerSettings) -> None:
    """Before the service is started: whether it can run by its policy.

    :raises SettingsError: with everything that is wrong with the file
    """
    files.check(process, settings)
    leases.check(settings.lease_times())
    found = read_policy(settings)
    if settings.run_on == "interval":
        return
    if settings.only_one:
        told = f"descheduler.run_on: {settings.run_on}: with once, or an interval of 0, there is one cycle, and nothing else starts any"
        raise SettingsError((told,))
    if not triggers.listens(found.policy, found.plugins):
        told = f"descheduler.run_on: {settings.run_on}: no plugin that the policy enables has registered any event"
        raise SettingsError((told,))


def in_force(process: ServiceSettings, settings: DeschedulerSettings) -> Effective:
    """What the descheduler runs by: its policy, and the scheduling configuration of its plan.

    :raises SettingsError: if one of them cannot be used
    """
    policy = writing.written(loading.with_defaults(read_policy(settings).policy, None))
    return Effective(leases.filled_in(settings), {SECTION: policy, configured.SECTION: files.of(process).written()})
