"""docker-compose.secure.yml against the table of identities and the directory that `security init` writes."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from podyard.bus import connect, embedded_server
from podyard.cli.security import directory, identities, mirrors
from podyard.cli.security.identities import READ_API

BASE: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())
SECURED: dict[str, Any] = yaml.safe_load(Path("docker-compose.secure.yml").read_text())
PEOPLE = ("lab-nodes", "demo", "cli")
ROOT = "${PODYARD_SECURITY_DIR}/"


def test_every_container_that_uses_nats_is_secured():
    ours = {
        name for name, service in BASE["services"].items() if "PODYARD_NATS_SERVERS" in service.get("environment", {})
    }
    assert ours
    assert ours | {"nats", "nats-streams"} == set(SECURED["services"])


@pytest.mark.parametrize("name", sorted(set(SECURED["services"]) - {"nats", "nats-streams"}))
def test_a_container_has_its_own_key_and_no_other(name: str):
    service = SECURED["services"][name]
    expected = directory.named("person" if name in PEOPLE else name.replace("-", "_"))
    assert service["volumes"] == [f"{ROOT}identities/{expected.name}:/etc/podyard-identity:ro"]
    environment = service["environment"]
    assert environment.get("PODYARD_NATS_JETSTREAM_PREFIX", "$JS.API") == expected.jetstream
    assert expected.jetstream in (READ_API, "$JS.API")
    # the inbox that a process has by default, from its service's name
    assert expected.inbox == f"_INBOX.{'cli' if name in PEOPLE else expected.name}"


async def test_mounted_files_exist_and_the_server_runs_with_them(tmp_path: Path):
    made = tmp_path / "security"
    directory.create(made, identities.all_identities())
    mounts = [mount for service in SECURED["services"].values() for mount in service["volumes"]]
    for source, _, _ in (mount.rsplit(":", 2) for mount in mounts):
        assert (made / source.removeprefix(ROOT)).exists(), source
    written = json.loads((made / "server" / "nats.conf").read_text().replace("/etc/nats", str(made / "server")))
    assert (written.pop("port"), written.pop("http"), written["jetstream"].pop("store_dir")) == (
        4222,
        "127.0.0.1:8222",
        "/data",
    )
    async with embedded_server(tmp_path / "nats", settings=written) as server:
        await mirrors.bootstrap(made, (server.url,))
        await mirrors.bootstrap(made, (server.url,))  # again changes nothing
        person = directory.bus_settings(made, directory.named("person"), (server.url,))
        async with connect(person) as bus:
            assert await bus.last_sequence("CLUSTER") == 0
