"""Names of the form `package.module:Class`, by which a file names a plugin of the user: what stands there is
imported."""

import importlib
import inspect
import re
from typing import Any, Final

NAME: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*")


class PluginLoadError(ValueError):
    """A plugin that cannot be used. `faults`: all that is wrong, and what to write instead."""

    def __init__(self, name: str, *faults: str) -> None:
        self.name = name
        self.faults = tuple(f"plugin {name}: {fault}" for fault in faults)
        super().__init__("; ".join(self.faults))


def is_path(name: str) -> bool:
    """Whether a plugin's name in a profile says where its class is."""
    return ":" in name


def find(name: str) -> Any:
    """What stands at the place that `name` (`package.module:Class`) says.

    :raises PluginLoadError: if there is nothing, or its module cannot be imported
    """
    if NAME.fullmatch(name) is None:
        raise PluginLoadError(name, "is no path of a class; write `package.module:Class`")
    module_name, _, path = name.partition(":")
    found: Any = _imported(name, module_name)
    for part in path.split("."):
        if not hasattr(found, part):
            listed = ", ".join(_classes(module_name)) or "none"
            raise PluginLoadError(name, f"module {module_name} has no {path}; classes in it: {listed}")
        found = getattr(found, part)
    return found


def no_class(given: object) -> str:
    """The fault of a place where something else than a class stands."""
    noun = type(given).__name__
    return f"is no class, but {'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _classes(module: str) -> list[str]:
    members = inspect.getmembers(importlib.import_module(module), inspect.isclass)
    return [name for name, found in members if found.__module__ == module]


def _imported(name: str, module: str) -> Any:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name is not None and module.startswith(error.name):
            hint = "install it, or put its directory on PYTHONPATH"
            raise PluginLoadError(name, f"there is no module {error.name}; {hint}") from error
        raise PluginLoadError(name, f"its module needs another one that is not there: {error.name}") from error
    except Exception as error:  # the boundary to foreign code: whatever it raises is told, not passed on
        raise PluginLoadError(name, f"its module cannot be imported: {type(error).__name__}: {error}") from error
