"""From text to checked steps; every fault is found before anything is done, each told with its path."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from podyard.cli.errors import InputError, listed
from podyard.cli.scenario import actions, signals
from podyard.cli.scenario.faults import Faults, items, mapping
from podyard.cli.scenario.model import Action, Publish, Repeat, Scenario, Step
from podyard.objects import yaml_reader
from podyard.objects.yaml_reader import YamlError

TIMING: Final = ("name", "at", "after")
_NUMBER: Final = re.compile(r"\$\{n\}")
_READERS: Final[dict[str, Callable[[Any, str, Faults, Path], Action | None]]] = {
    "apply": actions.apply,
    "delete": actions.delete,
    "patch": actions.patch,
    "publish": actions.publish,
    "signals": signals.signals,
    "wait": actions.wait,
}


def load(source: str, text: str, directory: Path) -> Scenario:
    """Read a scenario.

    :param source: what errors call the file
    :param directory: where the files are that it names
    :raises InputError: with all faults
    """
    faults = Faults()
    try:
        first = next(yaml_reader.read(text), None)
    except YamlError as error:
        raise InputError(f"{source}: {error}") from error
    top = mapping(None if first is None else first.content, "", faults)
    for key in sorted(set(top) - {"scenario", "description", "steps"}):
        faults.add(str(key), "unknown; there are scenario, description, steps")
    if not isinstance(top.get("scenario"), str):
        faults.add("scenario", "must be the scenario's name")
    found = steps(top.get("steps"), "steps", faults, directory)
    if faults.found:
        raise InputError(
            listed([f"{source}: {fault}" for fault in faults.found]), "nothing was done; mend the scenario"
        )
    return Scenario(
        name=top["scenario"],
        description=str(top.get("description", "")).strip(),
        steps=tuple(found),
        directory=str(directory),
    )


def read(path: str) -> Scenario:
    """Read a scenario's file.

    :raises InputError: if it cannot be read or has faults
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: {error}", "is the name right?") from error
    return load(path, text, file.parent)


def bare_event(event: str, file: str = "", old: str = "", *, count: int = 1, rate: float = 0.0) -> Publish:
    """An event as the command line names it: RESOURCE/ACTION, and files with the object after and before it.

    :raises InputError: with all faults
    """
    faults = Faults()
    fields: dict[str, Any] = {"event": event, "count": count, "rate": rate}
    fields |= {key: {"file": name} for key, name in (("object", file), ("old", old)) if name}
    action = actions.publish(fields, "", faults, Path())
    if faults.found:
        raise InputError(listed([fault.lstrip(".").removeprefix("event: ") for fault in faults.found]))
    return action


def steps(value: Any, path: str, faults: Faults, directory: Path) -> list[Step]:
    """A list of steps; what is wrong goes to `faults`."""
    if not isinstance(value, list) or not value:
        faults.add(path, "must be a list of at least one step")
        return []
    given = cast("list[Any]", value)
    found = [_step(item, f"{path}[{index}]", faults, directory) for index, item in enumerate(given)]
    return [step for step in found if step is not None]


def _step(value: Any, path: str, faults: Faults, directory: Path) -> Step | None:
    fields = mapping(value, path, faults)
    named = [key for key in (*_READERS, "repeat") if key in fields]
    if len(named) != 1:
        known = ", ".join((*_READERS, "repeat"))
        faults.add(path, f"must have exactly one of {known}" + (f", has {', '.join(named)}" if named else ""))
        return None
    kind = named[0]
    allowed = {*TIMING, kind, *(("rate", "steps") if kind == "repeat" else ())}
    for key in sorted(set(fields) - allowed):
        faults.add(f"{path}.{key}", f"unknown; a {kind} step may have {', '.join(sorted(allowed))}")
    if "at" in fields and "after" in fields:
        faults.add(path, "has both `at` and `after`; use one")
    action = (
        _repeat(fields, path, faults, directory)
        if kind == "repeat"
        else _READERS[kind](fields[kind], f"{path}.{kind}", faults, directory)
    )
    at = actions.duration(fields["at"], f"{path}.at", faults) if "at" in fields else None
    after = actions.duration(fields.get("after", 0), f"{path}.after", faults)
    if action is None:
        return None
    return Step(title=str(fields.get("name", "")) or kind, action=action, at_s=at, after_s=after)


def _repeat(fields: dict[str, Any], path: str, faults: Faults, directory: Path) -> Repeat:
    times = actions.whole(fields["repeat"], f"{path}.repeat", faults, least=1)
    rate = actions.number(fields.get("rate", 0), f"{path}.rate", faults)
    body = fields.get("steps")
    steps(numbered(body, 1), f"{path}.steps", faults, directory)
    return Repeat(times=times, rate=rate, body=items(body))


def numbered(value: Any, n: int) -> Any:
    """`value` with `${n}` replaced in every text and key."""
    if isinstance(value, str):
        return _NUMBER.sub(str(n), value)
    if isinstance(value, list):
        return [numbered(item, n) for item in cast("list[Any]", value)]
    if isinstance(value, dict):
        return {numbered(key, n): numbered(item, n) for key, item in cast("dict[Any, Any]", value).items()}
    return value


def body(repeat: Repeat, n: int, directory: Path) -> list[Step]:
    """The steps of the `n`-th repetition; checked as those of the first were when the file was read.

    :raises InputError: if a number makes them wrong, e.g. a name too long
    """
    faults = Faults()
    found = steps(numbered(repeat.body, n), "steps", faults, directory)
    if faults.found:
        raise InputError(listed([f"repetition {n}: {fault}" for fault in faults.found]))
    return found
