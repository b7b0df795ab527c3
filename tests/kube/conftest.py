"""kubectl, and a lab that it is let into."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import MappingProxyType

import anyio
import pytest
import pytest_asyncio

from podyard.bench.programs import kubernetes
from podyard.bench.programs.go_programs import NoProgramError
from tests.e2e import played
from tests.kube.reference.control_plane import NODES
from tests.kube.side_by_side import summary
from tests.support.holding import held


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many steps are the same, script by script."""
    reports = [one for outcome in ("passed", "failed") for one in terminalreporter.getreports(outcome)]
    counts = [value for one in reports for name, value in one.user_properties if name == summary.COUNTS]
    if counts:
        terminalreporter.section("side by side")
        for line in summary.table(counts):
            terminalreporter.line(line)


@pytest.fixture(scope="session")
def kubectl() -> Path:
    """Without it the tests fail, with the reason."""
    try:
        return kubernetes.find(kubernetes.KUBECTL)
    except NoProgramError as error:
        pytest.fail(str(error), pytrace=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def lab_kubeconfig(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """Of a lab with as many nodes as the reference had, as `podyard kubeconfig` prints it."""
    async with held(kubeconfig_of_a_lab(tmp_path_factory.mktemp("lab"))) as path:
        yield path


@asynccontextmanager
async def kubeconfig_of_a_lab(folder: Path, settings: Mapping[str, str] = MappingProxyType({})) -> AsyncGenerator[Path]:
    """Of a lab that runs as long as the block.

    :param settings: of its services, by variables of the environment
    """
    async with played.lab(["up", "--nodes", str(NODES)], folder, settings):
        yield await kubeconfig_of(folder)


async def kubeconfig_of(folder: Path) -> Path:
    """That of the lab with this state directory, in a file."""
    known = {**os.environ, "PODYARD_STATE_DIR": str(folder), "NO_COLOR": "1"}
    done = await anyio.run_process([*played.PODYARD, "kubeconfig"], env=known, stderr=None)
    path = folder / "kubeconfig"
    path.write_bytes(done.stdout)
    return path
