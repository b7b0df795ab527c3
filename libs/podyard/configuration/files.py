"""The configuration that a service runs by: the file that its settings name, or the default."""

from pathlib import Path
from typing import TypeVar

from podyard.configuration.errors import ConfigurationError, DecodeError, Fault
from podyard.configuration.model import Configuration, default, load
from podyard.framework.profile import Profile
from podyard.runtime import leases
from podyard.runtime.leases import LeaseSettings
from podyard.runtime.settings import ServiceSettings, SettingsError

L = TypeVar("L", bound=LeaseSettings)


def read(path: str) -> Configuration:
    """The configuration in a file.

    :raises ConfigurationError: if the file cannot be read, or what is in it cannot be used
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except OSError as error:
        raise DecodeError(Fault("", f"cannot be read: {error.strerror or error}")) from error
    except UnicodeDecodeError as error:
        raise DecodeError(Fault("", "is not UTF-8 text")) from error
    return load(text)


def of(settings: ServiceSettings) -> Configuration:
    """The configuration that `settings` name; the default one if they name none.

    :raises SettingsError: with everything that is wrong with the file
    """
    path = settings.scheduler_config
    if not path:
        return default()
    try:
        return read(path)
    except ConfigurationError as error:
        raise SettingsError(tuple(_problem(path, fault) for fault in error.faults)) from error


def profiles(found: Configuration, settings: ServiceSettings) -> dict[str, Profile]:
    """Scheduler name -> profile, plugins made.

    :raises SettingsError: if a plugin refuses its arguments
    """
    try:
        return found.profiles()
    except ConfigurationError as error:
        raise SettingsError(tuple(_problem(settings.scheduler_config, fault) for fault in error.faults)) from error


def check(settings: ServiceSettings, own: object) -> None:
    """Before a service is started: whether it can run by its configuration.

    :param own: the service's settings; they name no file of this kind
    :raises SettingsError: with everything that is wrong with the file
    """
    del own
    profiles(of(settings), settings)


def check_leader(settings: ServiceSettings, own: LeaseSettings) -> None:
    """The same of a service that leads by it, and whether its lease can be had.

    :raises SettingsError: with everything that is wrong with the file, or with the lease
    """
    found = of(settings)
    profiles(found, settings)
    leading(own, found, settings)


def leading(own: L, found: Configuration, settings: ServiceSettings) -> L:
    """A service's settings with all that is said of its lease, by them, by the file, or by default.

    :raises SettingsError: with everything that is wrong with it
    """
    if own.lease_ttl_s is None and found.lease.fault:
        raise SettingsError((_problem(settings.scheduler_config, found.lease.fault),))
    completed = found.lease.completing(own)
    leases.check(completed.lease_times())
    return leases.filled_in(completed)


def _problem(path: str, fault: Fault | str) -> str:
    return f"scheduler configuration {path}: {fault}" if path else str(fault)
