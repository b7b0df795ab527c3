"""What a sabotage aims at: it must be there, and be called, or nothing is switched off and nobody notices."""

import functools
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final, NamedTuple

from tests.simulation.simulation import Simulation

OURS: Final = ("podyard.", "tests.simulation.")


class Aim(NamedTuple):
    """An attribute of a module or a class that a sabotage has set."""

    owner: Any
    name: str
    before: Any

    def __str__(self) -> str:
        module = "" if isinstance(self.owner, ModuleType) else f"{self.owner.__module__}."
        return f"{module}{self.owner.__qualname__ if module else self.owner.__name__}.{self.name}"


class Aimed:
    """A sabotage that is watched: whatever it replaces is counted when it is called."""

    def __init__(self, patch: Callable[[Simulation], None]) -> None:
        self._patch = patch
        self._missing: list[str] = []
        self._calls = Counter[str]()

    def __call__(self, simulation: Simulation) -> None:
        before = {id(owner): (owner, dict(vars(owner))) for owner in _owners()}
        self._patch(simulation)
        for owner, known in before.values():
            for name, value in list(vars(owner).items()):
                if value is not known.get(name):
                    self._watch(Aim(owner, name, known.get(name)), value)

    def blind(self, *, cut_short: bool) -> tuple[str, ...]:
        """What is not there, and what was never called.

        :param cut_short: the run ended at its first violation, and may have called it later
        """
        if cut_short:
            return tuple(self._missing)
        uncalled = [f"{aim} is called by nobody" for aim, count in self._calls.items() if not count]
        return (*self._missing, *uncalled)

    def _watch(self, aim: Aim, value: Any) -> None:
        if aim.before is None and not _inherited(aim):
            self._missing.append(f"{aim} is not there")
        elif isinstance(value, property):
            setattr(aim.owner, aim.name, property(self._counting(str(aim), value.fget)))
        elif callable(value):
            setattr(aim.owner, aim.name, self._counting(str(aim), value))

    def _counting(self, aim: str, called: Any) -> Callable[..., Any]:
        self._calls[aim] = 0

        @functools.wraps(called)
        def counted(*arguments: Any, **options: Any) -> Any:
            self._calls[aim] += 1
            return called(*arguments, **options)

        return counted


def _owners() -> Iterator[Any]:
    """Our modules and their classes, each once or more."""
    for name, module in list(sys.modules.items()):
        if name.startswith(OURS):
            yield module
            yield from (
                one for one in vars(module).values() if isinstance(one, type) and one.__module__.startswith(OURS)
            )


def _inherited(aim: Aim) -> bool:
    """Whether a class had it from another one."""
    return isinstance(aim.owner, type) and any(aim.name in vars(one) for one in aim.owner.__mro__[1:])
