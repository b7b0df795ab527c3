"""A lab for other people's programs, and Python with client libraries."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from tests.kube.clients import libraries
from tests.kube.conftest import kubeconfig_of_a_lab
from tests.support.holding import held

REMEMBERED_BYTES = 1_048_576
"""So few that a test can have a version forgotten."""


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def clients_lab(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Path]:
    """The kubeconfig of a lab that remembers little."""
    folder = tmp_path_factory.mktemp("clients")
    settings = {"PODYARD_KUBE_API_HISTORY_BYTES": str(REMEMBERED_BYTES)}
    async with held(kubeconfig_of_a_lab(folder, settings)) as path:
        yield path


@pytest.fixture(scope="session")
def client_python() -> Path:
    return libraries.python()
