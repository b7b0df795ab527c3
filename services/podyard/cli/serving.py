"""One service in this process. Nothing in here loads the parser of command lines."""

import gc
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Any, Final

from podyard.cli import services
from podyard.cli.errors import CliError, InputError

if TYPE_CHECKING:
    from podyard.runtime.service import ServiceDefinition

FOR_PEOPLE: Final = ("click", "rich")
ALGEBRA_THREADS: Final = "OPENBLAS_NUM_THREADS"
"""Of the library that numpy multiplies matrices with, read when numpy is loaded."""


def run_service(
    name: str, config: str | None = None, flags: dict[str, Any] | None = None, write_to: str | None = None
) -> int:
    """Load one service's settings and run it; what is wrong is told on standard error, exit code 2.

    :param write_to: file for the configuration in force; it is written, and nothing is run
    """
    try:
        definition = load(name)
    except InputError as error:
        return _refused(error)
    from podyard.runtime import process
    from podyard.runtime.settings import SettingsError, load_settings

    try:
        common, own = load_settings(
            definition.settings_type,
            definition.name,
            config_file=config or os.environ.get("PODYARD_CONFIG"),
            environment=os.environ,
            flags=flags,
            named=write_to is None,
        )
        if definition.check is not None:
            definition.check(common, own)
        if write_to is not None:
            from podyard.cli.written_configuration import write as write_configuration

            return write_configuration(definition, common, own, write_to)
    except CliError as error:
        return _refused(error)
    except SettingsError as error:
        sys.stderr.write("".join(f"error: {problem}\n" for problem in error.problems))
        return 2
    if os.environ.get(services.SUPERVISED):
        threading.Thread(target=_end_with_supervisor, name="supervisor watch", daemon=True).start()
    return process.run(definition, common, own)


def load(name: str) -> "ServiceDefinition[Any]":
    """A service's definition, and with it all that the service imports.

    structlog takes rich along for coloured tracebacks, and uvicorn takes click for a command of its own, if
    they find them. Services print plain text, so both libraries are not to be found meanwhile; nor is garbage
    looked for, as hardly anything that is loaded becomes garbage. No service multiplies matrices, so that
    threads for it, one a core and 0.05 s of CPU on two, are started only where the environment asks for them.

    :raises InputError: if there is no such service
    """
    os.environ.setdefault(ALGEBRA_THREADS, "1")
    hidden = [module for module in FOR_PEOPLE if module not in sys.modules]
    collecting = gc.isenabled()
    gc.disable()
    for module in hidden:
        sys.modules[module] = None  # pyright: ignore[reportArgumentType] - how Python spells "not to be found"
    try:
        definition = services.definition(name)
        from podyard.runtime import process as process  # it loads structlog
    finally:
        for module in hidden:
            del sys.modules[module]
        if collecting:
            gc.enable()
    return definition


def _refused(error: CliError) -> int:
    sys.stderr.write(f"error: {error.message}\nhint: {error.advice}\n")
    return error.exit_code


def _end_with_supervisor() -> None:
    while os.read(0, 1024):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
