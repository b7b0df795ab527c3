"""Plays of a core, recorded: what its view was shown, what it was told, and what it wanted done.

tape = record(case)
core, view = case.begin()
for one in tape: play(one, core, view)
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeAlias
from unittest import mock

import msgspec

FED_BY: tuple[str, ...] = ("begin_listing", "end_listing", "apply", "advance")
"""What an informer calls of a view."""


class Told(NamedTuple):
    """A message, and what the core wanted done then."""

    message: Any
    now: float
    wanted: Any
    """As of `plain`."""


class Shown(NamedTuple):
    """A call of the view."""

    method: str
    arguments: tuple[Any, ...]
    named: dict[str, Any]


Tape: TypeAlias = list[Told | Shown]


class Case(NamedTuple):
    """A core and a play of it. A new core joins the suite by a case of its own."""

    name: str
    core: type[Any]
    view: type[Any]
    """What the informer feeds."""
    play: Callable[[], None]
    """Plays on a stage of unit tests; the first core that it makes, and its view, are recorded."""
    begin: Callable[[], tuple[Any, Any]]
    """Core and view, as the play begins with them."""
    tick: Any
    """The message that time has passed."""
    answers: tuple[type[Any], ...]
    """Messages that settle what the core asked, and name it."""
    deposed: Callable[[], None] | None = None
    """A play that ends with the core stepping down; None: only its driver ends it."""
    fed_by: tuple[str, ...] = FED_BY
    """What is called of the view."""

    def __repr__(self) -> str:
        return self.name


def record(case: Case, story: Callable[[], None] | None = None) -> Tape:
    """The tape of the play, or of another story."""
    tape: Tape = []
    with _recorded(case, tape):
        (story or case.play)()
    assert tape
    return tape


@contextmanager
def _recorded(case: Case, tape: Tape) -> Iterator[None]:
    cores: list[Any] = []
    views: list[Any] = []
    step = case.core.step

    def recorded_step(core: Any, message: Any, now: float) -> Any:
        if not cores:
            cores.append(core)
        wanted = step(core, message, now)
        if core is cores[0]:
            tape.append(Told(message, now, plain(wanted)))
        return wanted

    with mock.patch.object(case.core, "step", recorded_step), _shown(case, views, tape):
        yield


@contextmanager
def _shown(case: Case, views: list[Any], tape: Tape) -> Iterator[None]:
    def recorded(name: str) -> Callable[..., Any]:
        method = getattr(case.view, name)

        def call(view: Any, *arguments: Any, **more: Any) -> Any:
            if not views:
                views.append(view)
            if view is views[0]:
                tape.append(Shown(name, arguments, more))
            return method(view, *arguments, **more)

        return call

    with mock.patch.multiple(case.view, **{name: recorded(name) for name in case.fed_by}):
        yield


def play(one: Told | Shown, core: Any, view: Any) -> Any:
    """Do it again; returns what the core wants, None of what the view was shown."""
    if isinstance(one, Shown):
        getattr(view, one.method)(*one.arguments, **one.named)
        return None
    return plain(core.step(one.message, one.now))


def plain(value: Any) -> Any:
    """What an effect is made of, to be compared: a function by its name and what it closes over."""
    if isinstance(value, msgspec.Struct):
        return (type(value).__name__, plain(msgspec.structs.asdict(value)))
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return (type(value).__name__, *map(plain, value))
    if isinstance(value, str | bytes | int | float | None):
        return value
    if isinstance(value, Sequence | set | frozenset):
        return [plain(one) for one in value]
    if callable(value):
        cells = getattr(value, "__closure__", None) or ()
        return (value.__qualname__, *(plain(cell.cell_contents) for cell in cells))
    return type(value).__name__
