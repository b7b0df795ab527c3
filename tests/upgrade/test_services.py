"""An older release is replaced by this one, one service after the other, under load: no pod is lost, bound
twice or kept waiting, and each release reads what the other writes.

The older one is that of the interpreter that `PODYARD_OLDER_PYTHON` names.
"""

import os
from pathlib import Path
from typing import Final

import pytest

from podyard.proto import streams
from tests.faults.process import Process
from tests.faults.rolling import BETWEEN, BOUND_WITHIN_S, LONGEST_WAIT_S, Waiting, coming
from tests.faults.stage import staged

SERVICES: Final = "api=2,queue=2,scheduler=2,binder=2,node_agent=2,workloads=2"


@pytest.fixture
def older() -> str:
    """The interpreter of the environment that has the older release."""
    found = os.environ.get("PODYARD_OLDER_PYTHON", "")
    if not Path(found).is_file():
        pytest.fail(f"PODYARD_OLDER_PYTHON is {found!r}: make test-upgrade OLDER=/path/to/python", pytrace=False)
    return found


async def replaced(process: Process, python: str) -> None:
    """It ends in order, and is started by another interpreter."""
    process.terminate()
    await process.ended()
    process.python = python
    await process.start()
    await process.ready()


@pytest.mark.timeout(600)
async def test_one_service_after_the_other_is_replaced_under_load(tmp_path: Path, older: str) -> None:
    async with staged(tmp_path, SERVICES, lease_ttl_s=streams.LEASE_TTL_S, python=older) as stage:
        newer = Process("api", "newer", tmp_path / "none", {}, stage.tell).python
        async with stage.trial("upgrade") as load:
            waiting = Waiting(stage, load)
            async with coming(waiting):
                await stage.bound(BETWEEN, BOUND_WITHIN_S)
                for process in stage.processes.values():
                    waiting.during = process.instance
                    await replaced(process, newer)
                    await stage.bound(BETWEEN, BOUND_WITHIN_S)
            print(waiting.told)
            assert {process.python for process in stage.processes.values()} == {newer}
            assert waiting.longest_s < LONGEST_WAIT_S
            assert await stage.bus.last_sequence(streams.DEAD.name) == 0, "something was stored that could not be read"
