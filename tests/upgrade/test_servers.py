"""NATS servers of an older release are replaced by those of this one, one after the other, under load: no pod
is lost, bound twice, or kept waiting.

The older one is the program that `PODYARD_OLDER_NATS` names.
"""

import os
import subprocess
from pathlib import Path

import pytest

from podyard.bus import embedded
from podyard.proto import streams
from tests.faults import servers
from tests.faults.rolling import replaced_one_by_one
from tests.faults.stage import EVERYTHING, staged


@pytest.fixture
def older() -> Path:
    """The older nats-server."""
    named = os.environ.get("PODYARD_OLDER_NATS", "")
    if not os.access(named, os.X_OK):
        pytest.fail(
            f"PODYARD_OLDER_NATS is {named!r}: make test-upgrade OLDER_NATS=/path/to/nats-server", pytrace=False
        )
    return Path(named)


def release(program: Path) -> str:
    told = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    return told.split()[-1].removeprefix("v")


@pytest.mark.timeout(600)
async def test_one_server_after_the_other_is_replaced_under_load(
    tmp_path: Path, older: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    newer = embedded.server_binary()
    assert release(older) != release(newer)
    monkeypatch.setattr(embedded, "server_binary", lambda: older)
    async with servers.three_servers(tmp_path / "nats") as nats:
        assert {await nats.variable(name, "version") for name in nats.by_name} == {release(older)}
        ports = [server.port for server in nats.by_name.values()]
        async with staged(
            tmp_path, EVERYTHING, servers=ports, replicas=len(ports), lease_ttl_s=streams.LEASE_TTL_S
        ) as stage:
            monkeypatch.setattr(embedded, "server_binary", lambda: newer)
            await replaced_one_by_one(nats, stage, {})
            assert {await nats.variable(name, "version") for name in nats.by_name} == {release(newer)}
