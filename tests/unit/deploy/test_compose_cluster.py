"""The compose file of a cluster: what it names is what docker-compose.yml and the code have."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from podyard.cli import services
from podyard.runtime.settings import load_settings
from tests.unit.deploy.test_lab_files import DEPLOY, REPOSITORY

Document = dict[str, Any]
SERVERS = ("nats", "nats-2", "nats-3")
URLS = ",".join(f"nats://{name}:4222" for name in SERVERS)


def compose(path: Path) -> Document:
    return yaml.safe_load(path.read_text())


STACK = compose(REPOSITORY / "docker-compose.yml")
BASE = STACK["services"]
CLUSTER = compose(DEPLOY / "compose.cluster.yml")
FOUND = CLUSTER["services"]


def test_two_of_each_service_and_three_servers() -> None:
    assert {name: FOUND[name]["deploy"]["replicas"] for name in FOUND if "deploy" in FOUND[name]} == {
        name.replace("_", "-"): 2 for name in services.NAMES
    }
    assert {name for name in FOUND if name.startswith("nats") and name != "nats-streams"} == {*SERVERS}
    assert {*FOUND} - {*BASE} == {*SERVERS[1:]}, "others are not in docker-compose.yml"


@pytest.mark.parametrize("name", services.NAMES)
def test_every_service_is_told_of_all_servers(name: str) -> None:
    given = FOUND[name.replace("_", "-")]
    common, _ = load_settings(services.definition(name).settings_type, name, environment=given["environment"])
    assert common.nats.servers == tuple(URLS.split(","))


def test_people_and_who_rotates_keys_are_told_of_all_servers() -> None:
    for name in ("cli", "demo", "lab-nodes", "keys", "nats-streams"):
        assert FOUND[name]["environment"] == {"PODYARD_NATS_SERVERS": URLS}


@pytest.mark.parametrize("name", SERVERS[1:])
def test_a_further_server_is_as_the_first(name: str) -> None:
    first, found = BASE["nats"], FOUND[name]
    for same in ("image", "read_only", "cap_drop", "security_opt", "restart", "mem_limit", "logging", "environment"):
        assert found[same] == first[same], same
    assert found["healthcheck"]["test"] == first["healthcheck"]["test"]
    assert found["depends_on"] == first["depends_on"]
    assert f"{name}-data:/data" in found["volumes"]
    assert f"{name}-data" in CLUSTER["volumes"]


def test_the_administrators_make_streams_with_as_many_copies_once_all_servers_are_there() -> None:
    found = FOUND["nats-streams"]
    assert found["command"] == [*BASE["nats-streams"]["command"], "--replicas", str(len(SERVERS))]
    assert {*BASE["nats-streams"]["depends_on"], *found["depends_on"]} == {*SERVERS}


def test_who_makes_keys_makes_them_for_all_servers() -> None:
    words = BASE["keys"]["command"]
    assert words[words.index("--cluster") + 1] == ",".join(SERVERS)


@pytest.mark.parametrize("name", sorted({*BASE, *SERVERS}))
def test_every_container_has_a_bound_of_memory_and_of_logs(name: str) -> None:
    found = BASE.get(name) or FOUND[name]
    assert found["mem_limit"] in ("1g", "2g")
    assert found["logging"]["options"] == {"max-size": "10m", "max-file": "3"}
    limit = found.get("environment", {}).get("GOMEMLIMIT", "0MiB")
    assert int(limit.removesuffix("MiB")) < int(found["mem_limit"][0]) * 1024


@pytest.mark.parametrize("name", sorted(BASE))
def test_nobody_pulls_an_image_that_is_made_here(name: str) -> None:
    ours = BASE[name]["image"] == "${PODYARD_IMAGE}"
    assert (BASE[name].get("pull_policy") == "never") is ours
