"""Whether a class is a plugin: its name, the methods of its extension points and their parameters, before
anything is asked of it.

Every fault says what to write instead. What is checked is what Python cannot: a method with one letter wrong
is simply never called.
"""

import difflib
import inspect
from collections.abc import Iterable, Iterator, Mapping
from types import FunctionType, ModuleType
from typing import Any, Final, NamedTuple, get_args

from podyard.framework import event_registry, hint_sharing, interfaces, one_at_a_time
from podyard.framework.profile import FIELDS, PROTOCOLS


def _protocols(module: ModuleType) -> Iterator[type[Any]]:
    for found in vars(module).values():
        if (
            isinstance(found, type)
            and getattr(found, "_is_runtime_protocol", False)
            and found.__module__ == module.__name__
        ):
            yield found


INTERFACES: Final = tuple(
    protocol for module in (interfaces, event_registry, hint_sharing) for protocol in _protocols(module)
)
"""All that a plugin may have: the extension points, and what goes with them."""

ONE_OF: Final[Mapping[str, tuple[str, ...]]] = {
    "filter_token": ("pre_filter", "filter"),
    "detail": ("pre_filter", "filter"),
    "score_token": ("pre_score", "score"),
}
"""Methods that go with one of several others."""

_ALIKE: Final = 0.85
"""From which likeness on (0 to 1, difflib) a name counts as a misspelt one; `pre_filtr` and `pre_filter` have
0.95."""


class Hook(NamedTuple):
    """A method that the framework calls. `all_of`: the methods of which a class must have all if it has
    one."""

    protocol: type[Any]
    method: FunctionType
    all_of: tuple[str, ...]

    @property
    def parameters(self) -> tuple[str, ...]:
        """Their names, without `self`."""
        return tuple(inspect.signature(self.method).parameters)[1:]

    @property
    def steps(self) -> bool:
        """Whether it is a generator."""
        return str(inspect.signature(self.method).return_annotation).startswith("Generator[")

    def __str__(self) -> str:
        return f"def {self.method.__name__}{inspect.signature(self.method)}".replace("'", "")


def _methods(protocol: type[Any]) -> dict[str, FunctionType]:
    return {name: found for name, found in vars(protocol).items() if _is_public_function(name, found)}


def _all_methods(protocol: type[Any]) -> tuple[str, ...]:
    """With those of the protocols that it is made of: `filter_touched` is of no use without
    `filter_token`."""
    made_of = [part for part in protocol.__mro__ if part in INTERFACES]
    return tuple(name for part in made_of for name in _methods(part))


def _is_public_function(name: str, found: object) -> bool:
    return isinstance(found, FunctionType) and not name.startswith("_")


def hooks_of(protocols: Iterable[type[Any]]) -> dict[str, Hook]:
    """The methods of protocols, by name."""
    found: dict[str, Hook] = {}
    for protocol in protocols:
        methods = _methods(protocol)
        found.update((name, Hook(protocol, method, _all_methods(protocol))) for name, method in methods.items())
    return found


HOOKS: Final[Mapping[str, Hook]] = hooks_of(INTERFACES)
"""All methods that the framework calls, by name."""


def _marks() -> dict[str, tuple[str, ...]]:
    return {
        name: _all_methods(protocol)
        for protocol in INTERFACES
        for name, annotation in inspect.get_annotations(protocol).items()
        if annotation == "ClassVar[bool]"
    }


MARKS: Final[Mapping[str, tuple[str, ...]]] = _marks()
"""What a class may be marked with, True or False, and the methods that it tells of."""

_PLAIN_MARKS: Final = {mark.replace("_", ""): mark for mark in MARKS}


def points_of(plugin: type[Any]) -> frozenset[str]:
    """The extension points that a class has all methods of, as configuration files call them."""
    return frozenset(
        point for point, field in FIELDS.items() if all(hasattr(plugin, name) for name in _methods(PROTOCOLS[field]))
    )


def faults(plugin: type[Any]) -> list[str]:
    """All that keeps a class from being a plugin, in words; empty if nothing does."""
    own = public_methods(plugin)
    return [
        *_name_faults(plugin),
        *method_faults(own, HOOKS),
        *_incomplete(own),
        *_without_any(own),
        *_mark_faults(plugin, own),
        *_scope_faults(plugin, own),
        *_adapter_faults(plugin),
        *_point_faults(plugin),
    ]


def public_methods(plugin: type[Any]) -> dict[str, Any]:
    """What a class has and inherits of methods that others may call, by name."""
    return {name: found for name in dir(plugin) if _is_public_function(name, found := getattr(plugin, name, None))}


def method_faults(own: Mapping[str, Any], hooks: Mapping[str, Hook]) -> Iterator[str]:
    """Methods that are spelled almost like one that is called, then those that cannot be called as they
    are."""
    for name, method in own.items():
        yield from _misspelt(name, method, hooks)
    for name, method in own.items():
        if name in hooks:
            yield from _parameter_faults(hooks[name], method)


def _name_faults(plugin: type[Any]) -> Iterator[str]:
    name = getattr(plugin, "name", None)
    if not isinstance(name, str) or not name:
        yield f'it has no name; write `name = "{plugin.__name__}"` in the class'


def _misspelt(name: str, method: Any, hooks: Mapping[str, Hook]) -> Iterator[str]:
    """A method that is none of ours, but is called nearly like one, or as Go calls it, and takes some of its
    parameters."""
    if name in hooks:
        return
    letters = {hook.replace("_", ""): hook for hook in hooks}
    plain = name.replace("_", "").lower()
    close = difflib.get_close_matches(plain, letters, n=1, cutoff=_ALIKE)
    if not close:
        return
    hook = letters[close[0]]
    shared = set(inspect.signature(method).parameters) & {*hooks[hook].parameters}
    if plain == close[0] or shared:
        yield (
            f"its method `{name}` is never called; if `{hook}` is meant, write `{hooks[hook]}`, "
            f"if it is a part of its own, call it `_{name}`"
        )


def _parameter_faults(hook: Hook, method: Any) -> Iterator[str]:
    name = hook.method.__name__
    if inspect.iscoroutinefunction(method) or (inspect.isgeneratorfunction(method) and not hook.steps):
        yield f"`{name}` must be an ordinary function, without async and yield; write `{hook}`"
        return
    given = list(inspect.signature(method).parameters.values())[1:]
    positional = [one for one in given if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    if any(one.kind is one.VAR_POSITIONAL for one in given):
        return
    names = [one.name.lstrip("_") for one in positional]
    expected = list(hook.parameters)
    missing = [one for one in expected if one not in names]
    extra = [one.name for one in given if one.name.lstrip("_") not in expected and one.default is one.empty]
    extra = [one for one in extra if not any(one == other.name and other.kind is other.VAR_KEYWORD for other in given)]
    if missing or extra:
        lacks = f"lacks {', '.join(missing)}" if missing else ""
        adds = f"has {', '.join(extra)}, which nobody passes" if extra else ""
        yield f"`{name}` {' and '.join(filter(None, (lacks, adds)))}; write `{hook}`"
    elif names[: len(expected)] != expected:
        yield f"`{name}` has its parameters in another order; write `{hook}`"


def _incomplete(own: Mapping[str, Any]) -> Iterator[str]:
    told: set[str] = set()
    for name in own:
        hook = HOOKS.get(name)
        for missing in () if hook is None else hook.all_of:
            if missing not in own and missing not in told:
                told.add(missing)
                yield f"it has `{name}` but not `{missing}`; write `{HOOKS[missing]}`{_adapter(missing)}"


def _without_any(own: Mapping[str, Any]) -> Iterator[str]:
    for name, others in ONE_OF.items():
        if name in own and not any(other in own for other in others):
            yield f"it has `{name}` but neither {' nor '.join(f'`{other}`' for other in others)}"


def _mark_faults(plugin: type[Any], own: Mapping[str, Any]) -> Iterator[str]:
    values = {name: value for part in reversed(plugin.__mro__) for name, value in vars(part).items()}
    for name, value in values.items():
        if name not in MARKS:
            yield from _misspelt_mark(name) if isinstance(value, bool) and not name.startswith("_") else ()
        elif not isinstance(value, bool):
            yield f"its `{name}` is {value!r}; write `{name} = True` in the class, or leave it out"
        else:
            missing = [method for method in MARKS[name] if method not in own] if value else []
            yield from (f"it has `{name}` but not `{method}`; write `{HOOKS[method]}`" for method in missing)


def _misspelt_mark(name: str) -> Iterator[str]:
    plain = name.replace("_", "").lower()
    for close in difflib.get_close_matches(plain, _PLAIN_MARKS, n=1, cutoff=_ALIKE):
        mark = _PLAIN_MARKS[close]
        yield (
            f"its attribute `{name}` is never read; if `{mark}` is meant, write `{mark} = True`, "
            f"if it is a part of its own, call it `_{name}`"
        )


def _adapter(missing: str) -> str:
    adapters = {
        "filter": one_at_a_time.FilterOneNode,
        "filter_one": one_at_a_time.FilterAllNodes,
        "score": one_at_a_time.ScoreOneNode,
        "score_one": one_at_a_time.ScoreAllNodes,
    }
    if missing not in adapters:
        return ""
    return f", or derive the class from podyard.framework.one_at_a_time.{adapters[missing].__name__}"


def _scope_faults(plugin: type[Any], own: Mapping[str, Any]) -> Iterator[str]:
    if ("filter" in own or "score" in own) and getattr(plugin, "scope", None) not in get_args(interfaces.Scope):
        yield (
            'it has no scope; write `scope = "row"` in the class if its answer for a node depends on the pod, that node and what is '
            'placed there, `scope = "node"` if on the pod and the node only, `scope = "cluster"` if on other nodes too'
        )


def _adapter_faults(plugin: type[Any]) -> Iterator[str]:
    """An adapter's own method does nothing: it is what the class has to bring."""
    for adapter, name in (
        (one_at_a_time.FilterOneNode, "filter_one"),
        (one_at_a_time.FilterAllNodes, "filter"),
        (one_at_a_time.ScoreOneNode, "score_one"),
        (one_at_a_time.ScoreAllNodes, "score"),
    ):
        if issubclass(plugin, adapter) and getattr(plugin, name) is getattr(adapter, name):
            yield f"it derives from {adapter.__name__} but has no `{name}`; write `{HOOKS[name]}`"


def _point_faults(plugin: type[Any]) -> Iterator[str]:
    if not points_of(plugin):
        points = ", ".join(name for field in FIELDS.values() for name in list(_methods(PROTOCOLS[field]))[:1])
        yield f"it has the methods of no extension point; there are {points} (podyard.framework.interfaces says when each runs)"
