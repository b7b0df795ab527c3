"""Plugins of the user: named `package.module:Class` in a profile, imported, checked, and made with their
arguments."""

import inspect
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from podyard.framework.interfaces import Plugin
from podyard.plugins import class_paths, signatures
from podyard.plugins.class_paths import PluginLoadError
from podyard.plugins.registry import Entry


def load(name: str) -> Entry:
    """The plugin whose class `name` (`package.module:Class`) says.

    :raises PluginLoadError: if there is none, or its class is no plugin
    """
    return entry_of(class_paths.find(name), name)


def entry_of(given: Any, name: str = "") -> Entry:
    """A class, or a plugin that is made already, as an entry of a registry.

    :param name: what configurations call it; empty: its own name
    :raises PluginLoadError: if it is no plugin
    """
    cls: type[Any] = given if isinstance(given, type) else type(given)
    shown = name or str(getattr(cls, "name", cls.__name__))
    if name and not isinstance(given, type):
        raise PluginLoadError(name, class_paths.no_class(given))
    if faults := signatures.faults(cls):
        raise PluginLoadError(shown, *faults)
    points = signatures.points_of(cls)
    if not isinstance(given, type):
        return Entry(name=shown, make=lambda: given, points=points)
    make, args = _maker(shown, cls)
    return Entry(name=shown, make=make, args=args, points=points)


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
