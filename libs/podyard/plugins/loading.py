"""Plugins of the user: named `package.module:Class` in a profile, imported, checked, and made with their
arguments."""

import importlib
import inspect
import re
import typing
from collections.abc import Callable
from typing import Any, Final

import msgspec

from podyard.framework.interfaces import Plugin
from podyard.plugins import signatures
from podyard.plugins.registry import Entry

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


def load(name: str) -> Entry:
    """The plugin whose class `name` (`package.module:Class`) says.

    :raises PluginLoadError: if there is none, or its class is no plugin
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
    return entry_of(found, name)


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


def entry_of(given: Any, name: str = "") -> Entry:
    """A class, or a plugin that is made already, as an entry of a registry.

    :param name: what configurations call it; empty: its own name
    :raises PluginLoadError: if it is no plugin
    """
    cls: type[Any] = given if isinstance(given, type) else type(given)
    shown = name or str(getattr(cls, "name", cls.__name__))
    if name and not isinstance(given, type):
        raise PluginLoadError(name, f"is no class, but {_article(cls.__name__)}")
    if faults := signatures.faults(cls):
        raise PluginLoadError(shown, *faults)
    points = signatures.points_of(cls)
    if not isinstance(given, type):
        return Entry(name=shown, make=lambda: given, points=points)
    make, args = _maker(shown, cls)
    return Entry(name=shown, make=make, args=args, points=points)


def _article(noun: str) -> str:
    return f"{'an' if noun[:1].lower() in 'aeiou' else 'a'} {noun}"


def _maker(name: str, cls: type[Any]) -> tuple[Callable[..., Plugin], Any]:
    """How to make it, and what its arguments are: a Struct (the class's `Args`, or what its constructor
    says), plain, or none."""
    if cls.__init__ is object.__init__:
        return cls, getattr(cls, "Args", None) and _refuse_args(name)
    parameters = [
        one
        for one in list(inspect.signature(cls.__init__).parameters.values())[1:]
        if one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if not parameters:
        return cls, None
    required = [one.name for one in parameters[1:] if one.default is one.empty]
    if required or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise PluginLoadError(name, "its constructor must be `def __init__(self)` or `def __init__(self, args)`")
    return cls, _args_type(cls, parameters[0].name)


def _refuse_args(name: str) -> None:
    raise PluginLoadError(
        name, "it has Args but no constructor that takes them; write `def __init__(self, args: Args) -> None`"
    )


def _args_type(cls: type[Any], parameter: str) -> Any:
    declared = getattr(cls, "Args", None)
    if declared is None:
        try:
            declared = typing.get_type_hints(cls.__init__).get(parameter)
        except (NameError, TypeError):  # an annotation that only a type checker can resolve
            declared = None
    return declared if isinstance(declared, type) and issubclass(declared, msgspec.Struct) else dict
