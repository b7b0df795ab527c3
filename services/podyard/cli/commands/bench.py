"""`podyard bench`: the benchmarks, which a checkout has and the wheel has not."""

import importlib
from typing import Annotated, Final

from cyclopts import App, Parameter

from podyard.cli.errors import InputError

PLACE: Final = "podyard.bench"
COMMANDS: Final = f"{PLACE}.commands.app"


def found() -> App:
    """The commands, or one command that says where to get them."""
    try:
        module = importlib.import_module(COMMANDS)
    except ModuleNotFoundError as error:
        if error.name != PLACE:
            raise
        return absent()
    commands: App = module.bench
    return commands


def absent() -> App:
    """What stands in their place where they are not installed: it takes whatever they would."""
    place = App(name="bench", help="Benchmarks. They are not in the wheel: a checkout has them.")
    place.default(refuse)
    return place


def refuse(*words: Annotated[str, Parameter(allow_leading_hyphen=True)]) -> int:
    """They are in a checkout of Podyard: clone its repository, run `make setup` there, then
    `.venv/bin/podyard bench`.

    :param words: What a checkout takes: a benchmark's name and its options.
    """
    said = " ".join(("podyard bench", *words))
    raise InputError(
        f"{said}: the benchmarks are not in the wheel",
        "a checkout has them: git clone Podyard's repository, run make setup in it, then .venv/bin/podyard bench",
    )


bench = found()
