"""How property tests play, by profile, and how one play is played again.

- `test`, the default: the same plays each time on each machine. Hypothesis draws from the source of the test
  alone, keeps no database, and shrinks for 30 s at most, well within pytest's limit of time for a test.
- `explore`: other plays each time; shrinking as long as Hypothesis likes. `python -m tests.explore` uses it.

A failure prints its play, as text and as what `reproduce_failure` takes. A seed would not bring it back: in
`explore` Hypothesis draws constants from the modules that happen to be imported, too. `--play FILE` plays
again what `tests.explore` has found.
"""

from pathlib import Path
from typing import Any, Final

import hypothesis
import msgspec
import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import engine, providers

TEST: Final = "test"
EXPLORE: Final = "explore"
SHRINKING_S: Final = 30
"""In `test`: a find, shrinking and the report fit into pytest's limit of 120 s. In `explore` it is
Hypothesis' own 300 s."""


class Play(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A failing play, as it is kept in a file."""

    test: str
    """The test's node id."""
    hypothesis: str
    """The version that made it; another may not read it."""
    choices: str
    """All that was drawn, as `reproduce_failure` takes it."""
    found: str
    """When, UTC, and at which commit."""
    says: str
    """The failure's report, the play in words in it."""


class PlayError(pytest.UsageError):
    """A file that holds no play, or one that cannot be played."""


def read(file: Path) -> Play:
    """
    :raises PlayError: if the file is missing or holds something else
    """
    try:
        return msgspec.json.decode(file.read_bytes(), type=Play)
    except OSError as error:
        raise PlayError(f"--play {file}: {error.strerror}") from error
    except msgspec.MsgspecError as error:
        raise PlayError(f"--play {file}: not a play that `python -m tests.explore` wrote: {error}") from error


def register() -> None:
    """Make the profiles known, and play as `test` until pytest's `--hypothesis-profile` says otherwise."""
    always = {"print_blob": True, "deadline": None}  # a deadline would judge the machine's load
    settings.register_profile(TEST, settings(**always, derandomize=True, database=None))
    settings.register_profile(EXPLORE, settings(**always, derandomize=False, database=None))
    settings.load_profile(TEST)


def configure(profile: str | None) -> None:
    """What Hypothesis has no setting for. Both are its internals, so `tests/unit/explore` holds that they
    still act."""
    if profile in (None, TEST):
        engine.MAX_SHRINKING_SECONDS = SHRINKING_S
        providers._get_local_constants = providers.Constants  # none: which modules are imported differs by worker


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--play FILE`."""
    parser.addoption("--play", type=Path, metavar="FILE", help="play this again, which `python -m tests.explore` found")


def pytest_configure(config: pytest.Config) -> None:
    """After Hypothesis has read its own options."""
    configure(config.getoption("--hypothesis-profile"))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """With `--play`: its test alone, which plays this play alone.

    :raises PlayError: if the test is not among those collected
    """
    file = config.getoption("--play")
    if file is None:
        return
    play = read(file)
    chosen = [item for item in items if item.nodeid == play.test]
    if not chosen:
        raise PlayError(f"--play {file}: its test {play.test} is not among those collected; name its file, or none")
    config.hook.pytest_deselected(items=[item for item in items if item.nodeid != play.test])
    items[:] = chosen
    for item in chosen:
        hypothesis.reproduce_failure(play.hypothesis, play.choices.encode())(_played(item))


def _played(item: Any) -> Any:
    """What Hypothesis looks at for a play: the function of a test, or the machine behind one."""
    function = getattr(item.obj, "__func__", item.obj)
    return getattr(function, "_hypothesis_state_machine_class", function)


register()
