"""What people see: differences of failed cases, cases in full, sums."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

import msgspec
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from tests.conformance import suites
from tests.conformance.differences import ABSENT, Difference, same
from tests.conformance.running import Outcome

FIRST: Final = 12
"""Differences told of one case."""
GROUPS: Final = 30
"""Kinds of differences in the sum."""
PIPE_WIDTH: Final = 160
"""Columns where there is no terminal."""
WIDE: Final = 220
"""Characters of a value in a list of differences."""


def console() -> Console:
    """Where cases are told: as wide as the terminal, or wide enough for two columns of reasons."""
    found = Console(highlight=False)
    return found if found.is_terminal else Console(highlight=False, width=PIPE_WIDTH)


def differences(console: Console, outcome: Outcome, limit: int = FIRST) -> None:
    """A failed case: one line a difference."""
    case = outcome.case
    notes = " ".join(filter(None, (case.category, case.about, *(f"[quirk {quirk}]" for quirk in case.quirks))))
    console.print(f"[bold]{escape(case.id)}[/] {escape(notes)}", soft_wrap=True)
    for one in outcome.differences[:limit]:
        where = " ".join(one.where)
        console.print(
            f"  {escape(where)}: expected [green]{_short(one.expected)}[/] got [red]{_short(one.got)}[/]",
            soft_wrap=True,
            highlight=False,
        )
    if len(outcome.differences) > limit:
        console.print(f"  and {len(outcome.differences) - limit} more")


def case(console: Console, suite: str, outcome: Outcome) -> None:
    """A case in full: what went in, and the expected and got values side by side."""
    console.rule(f"{escape(outcome.case.id)} {'passed' if outcome.passed else 'FAILED'}")
    console.print(escape(f"{outcome.case.category} {outcome.case.about}".strip()))
    for quirk in outcome.case.quirks:
        console.print(f"quirk: {escape(quirk)}")
    for title, value in outcome.case.input.items():
        _input(console, title, value)
    expected, got = outcome.case.expected, outcome.got
    if got is not ABSENT:
        expected, got = suites.suite(suite).excerpt(expected, got)
    console.print(_both(expected, got))
    if not outcome.passed:
        differences(console, outcome, limit=len(outcome.differences))


def groups(console: Console, failed: Iterable[Sequence[Difference]]) -> None:
    """What differs, by kind: in how many cases."""
    counts = Counter(group for found in failed for group in {one.group for one in found})
    if counts:
        console.print("\n[bold]cases  what differs[/]")
    for group, count in counts.most_common(GROUPS):
        console.print(f"{count:5}  {escape(group)}", soft_wrap=True)


def _input(console: Console, title: str, value: Any) -> None:
    """One part of the input: an object a line, texts and small things as they are."""
    if isinstance(value, str):
        console.print(f"[bold]{escape(title)}[/]\n{escape(value)}")
        return
    if not isinstance(value, list) or not value:
        console.print(f"[bold]{escape(title)}[/] {_text(value)}", soft_wrap=True)
        return
    console.print(f"[bold]{escape(title)}[/] ({len(value)})")
    for number, one in enumerate(value):
        numbered = f"{number} " if isinstance(one, Mapping) and "op" in one else ""
        console.print(f"  {numbered}{escape(_summary(one))}", soft_wrap=True)


def _summary(item: Any) -> str:
    """A manifest as its name and all else that it says, an operation with what it is about; other things as
    they are."""
    if isinstance(item, Mapping) and "op" in item:
        return " ".join((item["op"], *(f"{key}={_summary(value)}" for key, value in item.items() if key != "op")))
    if not isinstance(item, Mapping) or "metadata" not in item:
        return _json(item)
    metadata = dict(item["metadata"])
    name = "/".join(filter(None, (item.get("kind"), metadata.pop("namespace", ""), metadata.pop("name", ""))))
    metadata.pop("uid", None)
    rest = {key: value for key, value in item.items() if key not in ("apiVersion", "kind", "metadata")}
    parts = [f"{key}={_json(value)}" for key, value in (*metadata.items(), *rest.items()) if value]
    return " ".join((name, *parts))


def _both(expected: Any, got: Any) -> Table:
    """Every value of both sides, under a line with the path that it shares with its neighbours."""
    table = Table("what", "expected", "got")
    theirs, ours = dict(_leaves(expected)), dict(_leaves(got))
    above: tuple[str, ...] = ()
    for where in dict.fromkeys((*theirs, *ours)):
        if where[:-1] != above:
            above = where[:-1]
            table.add_row(f"[bold]{escape(' '.join(above))}[/]")
        wanted, found = theirs.get(where, ABSENT), ours.get(where, ABSENT)
        style = "" if same(wanted, found) else "red"
        table.add_row(f"  {escape(where[-1])}" if where else "", _text(wanted), _text(found), style=style)
    return table


def _leaves(value: Any, where: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Scalars, lists of scalars, and empty maps, by their paths."""
    if isinstance(value, Mapping) and value:
        for key, inner in value.items():
            yield from _leaves(inner, (*where, str(key)))
    elif isinstance(value, list) and any(isinstance(inner, Mapping) for inner in value):
        for at, inner in enumerate(value):
            yield from _leaves(inner, (*where, str(at)))
    else:
        yield where, value


def _short(value: Any) -> str:
    text = _json(value)
    return escape(text if len(text) <= WIDE else f"{text[:WIDE]}...")


def _text(value: Any) -> str:
    return escape(_json(value))


def _json(value: Any) -> str:
    if value is ABSENT or isinstance(value, str):
        return str(value)
    return msgspec.json.encode(value).decode()
