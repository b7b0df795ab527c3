"""One build for all tests, and one bare environment for the wheel and one for the sdist."""

from pathlib import Path

import pytest

from tests.release import archives
from tests.release.archives import REPOSITORY, Release
from tests.release.bare import Bare


@pytest.fixture(scope="session")
def release(tmp_path_factory: pytest.TempPathFactory) -> Release:
    """Built as `make release` does, outside the checkout."""
    return archives.build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="session", params=Release._fields)
def bare(request: pytest.FixtureRequest, release: Release, tmp_path_factory: pytest.TempPathFactory) -> Bare:
    """Where that archive, and nothing else of ours, is installed."""
    directory: Path = tmp_path_factory.mktemp(request.param)
    assert REPOSITORY not in directory.parents, f"{directory} is in the checkout: say --basetemp"
    made = Bare(directory)
    made.install(getattr(release, request.param))
    return made
