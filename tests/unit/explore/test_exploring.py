"""Exploring: what it finds is told with its play, counted, and can be played again; and `make test` plays the
same each time."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings
from hypothesis.internal.conjecture import engine

from tests.explore import finding, telling
from tests.support import plays

HERE = Path(__file__).parent
REPOSITORY = HERE.parents[2]
FAILING = str((HERE / "failing_properties.py").relative_to(REPOSITORY))
LISTS = f"{FAILING}::test_no_list_has_two_large_numbers"
MACHINE = f"{FAILING}::test_counting::runTest"
LIMIT_S = 300
"""Of one program, on a busy machine."""

pytestmark = pytest.mark.timeout(2 * LIMIT_S)


def explore(*options: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """`python -m tests.explore`, which keeps plays in `folder`."""
    return subprocess.run(
        [sys.executable, "-m", "tests.explore", *options],
        cwd=REPOSITORY,
        env={**os.environ, "PODYARD_PLAYS": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=LIMIT_S,
    )


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> tuple[subprocess.CompletedProcess[str], Path]:
    """A round of the failing properties, and where their plays are."""
    folder = tmp_path_factory.mktemp("plays")
    return explore("--minutes", "0", "--workers", "0", FAILING, folder=folder), folder


class TestWhatIsFound:
    def test_is_told_with_its_play(self, found: tuple[subprocess.CompletedProcess[str], Path]) -> None:
        done, folder = found
        assert done.returncode == 1, done.stderr
        assert f"found {LISTS}" in done.stdout
        assert "numbers=[1001, 1001]" in done.stdout
        assert "state.add(by=2)" in done.stdout
        assert done.stdout.splitlines()[-1].endswith("2 found")
        assert sorted(plays.read(file).test for file in folder.iterdir()) == sorted([LISTS, MACHINE])

    def test_plays_are_counted(self, found: tuple[subprocess.CompletedProcess[str], Path]) -> None:
        last = found[0].stdout.splitlines()[-1]
        assert "plays of 3 tests in 1 rounds" in last
        assert int(last.split()[0].replace(",", "")) > 100  # a number is itself: 100 plays; the others fail before

    @pytest.mark.parametrize(
        ("test", "says"),
        [
            pytest.param(LISTS, "numbers=[1001, 1001]", id="a function"),
            pytest.param(MACHINE, "state.add(by=2)", id="a machine"),
        ],
    )
    def test_fails_again_when_it_is_played_again(
        self, found: tuple[subprocess.CompletedProcess[str], Path], test: str, says: str
    ) -> None:
        _, folder = found
        (file,) = (one for one in folder.iterdir() if plays.read(one).test == test)
        again = explore("--again", str(file), folder=folder)
        assert again.returncode == 1
        assert says in again.stdout
        assert "1 failed" in again.stdout

    def test_that_cannot_be_played_is_an_error(self, tmp_path: Path) -> None:
        file = tmp_path / "play.json"
        assert "No such file" in explore("--again", str(file), folder=tmp_path).stderr
        file.write_text("{}")
        done = explore("--again", str(file), folder=tmp_path)
        assert (done.returncode, "not a play" in done.stderr) == (2, True)


def test_tests_that_cannot_be_run_are_an_error(tmp_path: Path) -> None:
    done = explore("--minutes", "0", "tests/unit/there_is_none.py", folder=tmp_path)
    assert (done.returncode, done.stderr) == (2, "there is no file tests/unit/there_is_none.py\n")


def test_a_failure_is_kept_once(tmp_path: Path) -> None:
    failed = telling.Failed("tests/unit/a.py::test_b[c d]", "AXic", "it failed")
    assert finding.keep(failed, tmp_path) == finding.keep(failed, tmp_path)
    (file,) = tmp_path.iterdir()
    assert (plays.read(file).choices, file.name.startswith("a-py-test_b-c-d-")) == ("AXic", True)


def test_all_phases_are_counted() -> None:
    text = """  - during reuse phase (0.08 seconds):
    - 2 passing, 0 failing, and 1 invalid test cases
  - during generate phase (0.08 seconds):
    - 98 passing, 1 failing, and 7 invalid test cases"""
    assert telling.counted(text) == 101


class TestTheProfileOfMakeTest:
    def test_plays_the_same_whatever_is_imported(self, tmp_path: Path) -> None:
        for name, more in (("one", ""), ("two", "yes")):
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(HERE / "drawing.py")],
                cwd=REPOSITORY,
                env={**os.environ, "DRAWN_TO": str(tmp_path / name), "WITH_MORE_MODULES": more},
                capture_output=True,
                text=True,
                check=False,
                timeout=LIMIT_S,
            )
            assert done.returncode == 0, done.stdout
        first, second = (tmp_path / "one").read_text(), (tmp_path / "two").read_text()
        assert first.count("\n") >= 100
        assert first == second

    @pytest.mark.skipif(settings.get_current_profile_name() != plays.TEST, reason="another profile was asked for")
    def test_is_the_default_and_shrinks_for_a_bounded_time(self, request: pytest.FixtureRequest) -> None:
        assert settings().derandomize
        assert settings().database is None
        limit_s = float(request.config.getini("timeout"))
        assert limit_s / 2 >= plays.SHRINKING_S == engine.MAX_SHRINKING_SECONDS
