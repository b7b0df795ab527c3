"""The configuration that a service runs by: the file that its settings name, or the default."""

from pathlib import Path

from podyard.configuration.errors import ConfigurationError, DecodeError, Fault
from podyard.configuration.model import Configuration, default, load
from podyard.framework.profile import Profile
from podyard.runtime.settings import ServiceSettings, SettingsError


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


def _problem(path: str, fault: Fault) -> str:
    return f"scheduler configuration {path}: {fault}" if path else str(fault)
