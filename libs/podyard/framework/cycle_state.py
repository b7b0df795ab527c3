"""What plugins remember between extension points of one cycle.

The framework shares the state of PreFilter and PreScore between pods of equal signature; what Reserve and
Permit write belongs to one pod (they get a clone).

Source: kube-scheduler v1.36.2, pkg/scheduler/framework/cycle_state.go.
"""

from collections.abc import Callable
from typing import Any, Generic, ParamSpec, TypeVar

from podyard.framework.status import PluginFault

P = ParamSpec("P")
T = TypeVar("T")


class StateKey(Generic[T]):
    """A typed key of the state. Make one a plugin and datum, as a module constant; keys are equal only to
    themselves.

    :param name: as the reference calls it, used in errors, e.g. `PreFilterNodeResourcesFit`
    """

    __slots__ = ("name",)

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"StateKey({self.name!r})"


class StateMissingError(PluginFault):
    """A plugin reads what it never wrote, e.g. because its PreFilter is disabled and its Filter is not.

    :param lead: what some plugins of the reference put before the sentence
    """

    def __init__(self, name: str, lead: str = "") -> None:
        self.name = name
        super().__init__(f'{lead}reading "{name}" from cycleState: not found')


class ScoreStateMissingError(PluginFault):
    """The same of a Score whose PreScore is disabled, as plugins of the reference word it."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f'failed to read "{name}" from cycleState: not found')


class CycleState:
    """Typed storage of one cycle, and which plugins sit the cycle out."""

    __slots__ = ("_values", "skip_filter", "skip_score")

    def __init__(self) -> None:
        self._values: dict[StateKey[Any], Any] = {}
        self.skip_filter: set[str] = set()
        """Names of plugins whose PreFilter answered SKIP: their Filter is not asked."""
        self.skip_score: set[str] = set()
        """Names of plugins whose PreScore answered SKIP: their Score is not asked."""

    def write(self, key: StateKey[T], value: T) -> None:
        """Remember `value`, instead of what was there."""
        self._values[key] = value

    def read(self, key: StateKey[T], lead: str = "") -> T:
        """What was written.

        :param lead: what some plugins of the reference put before the sentence
        :raises StateMissingError: if nothing was
        """
        try:
            return self._values[key]
        except KeyError:
            raise StateMissingError(key.name, lead) from None

    def read_for_score(self, key: StateKey[T]) -> T:
        """What PreScore wrote.

        :raises ScoreStateMissingError: if nothing was
        """
        try:
            return self._values[key]
        except KeyError:
            raise ScoreStateMissingError(key.name) from None

    def find(self, key: StateKey[T]) -> T | None:
        """What was written, or `None`."""
        return self._values.get(key)

    def find_or_make(self, key: StateKey[T], make: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What was written; else what `make` makes of its arguments, which is then written."""
        found = self._values.get(key)
        if found is None:
            found = self._values[key] = make(*args, **kwargs)
        return found

    def clone(self) -> "CycleState":
        """A copy that can be written without touching this one; the values themselves are shared and must not
        be changed."""
        copy = CycleState()
        copy._values = dict(self._values)
        copy.skip_filter = set(self.skip_filter)
        copy.skip_score = set(self.skip_score)
        return copy
