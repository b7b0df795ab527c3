"""The compose files of a cluster: what they name is what docker-compose.yml, the servers' configuration and
the code have."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from podyard.bus.embedded import batch_limits
from podyard.cli import app, services
from podyard.cli.security import directory, identities
from podyard.proto import streams
from podyard.runtime.settings import load_settings
from tests.unit.deploy.test_lab_files import DEPLOY, REPOSITORY

Document = dict[str, Any]
SERVERS = ("nats", "nats-2", "nats-3")
URLS = ",".join(f"nats://{name}:4222" for name in SERVERS)
CONFIG = (DEPLOY / "nats-cluster.conf").read_text()


def compose(path: Path) -> Document:
    return yaml.safe_load(path.read_text())


BASE = compose(REPOSITORY / "docker-compose.yml")["services"]
CLUSTER = compose(DEPLOY / "compose.cluster.yml")
SECURED = compose(DEPLOY / "compose.cluster.secure.yml")["services"]


def test_two_of_each_service_and_three_servers() -> None:
    found = CLUSTER["services"]
    assert {name: found[name]["deploy"]["replicas"] for name in found if "deploy" in found[name]} == {
        name.replace("_", "-"): 2 for name in services.NAMES
    }
    assert {name for name in found if name.startswith("nats")} == {*SERVERS}
    assert {*found} - {*BASE} == {*SERVERS[1:]}, "others are not in docker-compose.yml"


@pytest.mark.parametrize("name", services.NAMES)
def test_every_service_is_told_of_all_servers_and_copies(name: str) -> None:
    given = CLUSTER["services"][name.replace("_", "-")]
    common, _ = load_settings(services.definition(name).settings_type, name, environment=given["environment"])
    assert common.nats.servers == tuple(URLS.split(","))
    assert common.nats.stream_replicas == len(SERVERS)
    assert {*given["depends_on"]} == {*SERVERS}


def test_people_are_told_of_all_servers() -> None:
    for name in ("cli", "demo", "lab-nodes"):
        assert CLUSTER["services"][name]["environment"] == {"PODYARD_NATS_SERVERS": URLS}


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_has_its_name_and_the_configuration_of_the_cluster(name: str) -> None:
    found = CLUSTER["services"][name]
    assert found["command"] == ["--config", "/etc/nats/cluster.conf", "--name", name]
    assert "./deploy/nats-cluster.conf:/etc/nats/cluster.conf:ro" in found["volumes"]
    others = {name: CLUSTER["services"][name] for name in SERVERS[1:]}
    if name in others:
        assert found["image"] == BASE["nats"]["image"]
        assert found["healthcheck"]["test"] == BASE["nats"]["healthcheck"]["test"]
        assert f"{name}-data:/data" in found["volumes"]
        assert f"{name}-data" in CLUSTER["volumes"]


def test_the_servers_know_each_other_and_have_the_limits_of_one() -> None:
    [routes] = re.findall(r"routes: \[(.*)\]", CONFIG)
    assert routes.split(", ") == [f"nats://{name}:6222" for name in SERVERS]
    assert "sync_interval: always" in CONFIG
    sizes = r"^\s*(max_\w+): (\d+)[MG]B$"
    assert re.findall(sizes, CONFIG, re.MULTILINE) == re.findall(
        sizes, (DEPLOY / "nats.conf").read_text(), re.MULTILINE
    )
    assert int(dict(re.findall(sizes, CONFIG, re.MULTILINE))["max_payload"]) << 20 == streams.MAX_PAYLOAD_BYTES
    found = dict(re.findall(r"(max_inflight_\w+): (\d+)", CONFIG))
    assert {key: int(number) for key, number in found.items()} == batch_limits()["batch"]


def test_keys_are_mounted_that_init_makes(tmp_path: Path) -> None:
    made = tmp_path / "security"
    words = re.search(r"podyard (security init) \S+ (.*)", (DEPLOY / "compose.cluster.secure.yml").read_text())
    assert words is not None
    app.build().parse_args([*words[1].split(), str(made), *words[2].split()], print_error=False, exit_on_error=False)
    directory.create(made, identities.all_identities(), hosts=(), cluster=SERVERS)
    for name in SERVERS:
        mounts = dict(line.removesuffix(":ro").rsplit(":", 1) for line in SECURED[name]["volumes"])
        assert mounts[f"${{PODYARD_SECURITY_DIR}}/server/{name}.conf"] == "/etc/nats/cluster.conf"
        for source in mounts:
            assert (made / source.removeprefix("${PODYARD_SECURITY_DIR}/")).is_file(), source
        config = yaml.safe_load((made / "server" / f"{name}.conf").read_text())
        assert config["server_name"] == name
        assert len(config["cluster"]["routes"]) == len(SERVERS) - 1


def test_the_administrators_make_streams_with_as_many_copies() -> None:
    words = SECURED["nats-streams"]["command"]
    app.build().parse_args(words, print_error=False, exit_on_error=False)
    assert words[-4:] == ["--replicas", str(len(SERVERS)), "--nats", URLS]
