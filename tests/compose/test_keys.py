"""TLS, a key for everybody and three accounts, as `docker compose up` makes them at the first start; keys and
the authority replaced while everything runs."""

import json
import re
import ssl
from collections import Counter
from pathlib import Path

import pytest

from tests.compose import readme
from tests.compose.conftest import PROJECT, free_ports
from tests.compose.engine import REPOSITORY, Engine
from tests.compose.stack import LASTING, Stack
from tests.compose.test_stack import POD

AUTHORITY = "PODYARD_NATS_TLS_CA_FILE"
CERTIFICATE = ("PODYARD_NATS_TLS_CERT_FILE", "PODYARD_NATS_TLS_KEY_FILE")
ONCE = ("keys", "nats-streams", "lab-nodes")


def volumes(stack: Stack) -> dict[str, set[str]]:
    """By service: the volumes of keys that its container has."""
    return {
        one.service: {
            mount["Name"].partition("_")[2]
            for mount in one.details["Mounts"]
            if mount["Type"] == "volume" and "_keys" in mount["Name"]
        }
        for one in stack.containers()
    }


def test_the_first_up_tells_of_no_image_that_cannot_be_pulled(stack: Stack) -> None:
    assert "Built" in stack.told_at_up, stack.told_at_up
    assert not re.findall(r"^.*(?:Pulling|Warning|denied| Error).*$", stack.told_at_up, re.MULTILINE)


def test_who_makes_keys_and_streams_leaves_and_nobody_has_the_key_of_another(stack: Stack) -> None:
    for service in ONCE:
        found = stack.container(service)
        assert (found.state, found.details["State"]["ExitCode"]) == ("exited", 0), service
    held = volumes(stack)
    assert held.pop("keys") > {"keys", "keys-server", "keys-admin"}
    assert held.pop("nats-streams") == {"keys-admin", "keys-mirrors"}
    assert held.pop("nats") == {"keys-server"}
    assert held.pop("jaeger") == set()
    assert held.pop("lab-nodes") == {"keys-person"}
    assert {service: {f"keys-{service}"} for service in held} == held


@pytest.mark.parametrize("service", ["api", "node-agent"])
def test_in_a_container_there_are_the_files_of_one_identity(stack: Stack, service: str) -> None:
    found = r"find / \( -path /proc -o -path /sys \) -prune -o \( -name nkey.seed -o -name ca.key \) -print 2>/dev/null"
    look = f"{found}; ls -ln /etc/podyard-identity"
    seen = stack.compose("exec", service, "/bin/sh", "-c", look).splitlines()
    seeds = [line for line in seen if line.startswith("/")]
    assert seeds == ["/etc/podyard-identity/nkey.seed"]
    files = [line.split() for line in seen if line.startswith("-")]
    assert {(line[0], line[2]) for line in files} == {("-rw-------", "10001")}, seen


@pytest.mark.parametrize("service", LASTING)
def test_what_a_container_remembers_and_logs_is_bounded(stack: Stack, service: str) -> None:
    found = stack.container(service).details["HostConfig"]
    assert found["Memory"] in (1 << 30, 2 << 30)
    assert found["LogConfig"] == {"Type": "json-file", "Config": {"max-file": "3", "max-size": "10m"}}


def test_outside_a_person_with_the_key_that_the_readme_gives_reads_and_writes(stack: Stack) -> None:
    told = stack.good(f"{stack.at_its_port} && {' && '.join(readme.commands(1))}")
    assert "node-8" in told
    stack.podyard("apply", "-f", "-", stdin=POD.replace("NAME", "with-a-key"))
    stack.until("the pod runs", lambda: stack.phase("with-a-key") == "Running")


@pytest.mark.parametrize("held", [(), (AUTHORITY,), (AUTHORITY, *CERTIFICATE)], ids=["nothing", "authority", "no nkey"])
def test_outside_nobody_is_let_in_without_all_of_it(stack: Stack, held: tuple[str, ...]) -> None:
    stranger = {name: path for name, path in stack.outside.items() if name in held}
    assert len(stranger) == len(held)
    refused = stack.try_podyard("get", "nodes", outside=stranger)
    assert (refused.code, refused.out) == (1, "")
    assert "does not let us in" in refused.err, refused.err


def authority(stack: Stack) -> bytes:
    """The certificate that a person believes."""
    with open(stack.outside[AUTHORITY], encoding="ascii") as file:
        return ssl.PEM_cert_to_DER_cert(file.read())


def test_another_up_makes_no_other_keys(stack: Stack) -> None:
    before = authority(stack)
    stack.compose("up", "--detach", "--wait")
    stack.become_a_person()
    assert authority(stack) == before
    assert "has keys: nothing was changed" in stack.compose("logs", "keys")


def processes(stack: Stack) -> dict[str, int]:
    return {one.id: one.pid for one in stack.containers() if one.service in LASTING}


@pytest.mark.parametrize("which", ["--all", "--ca"])
def test_keys_are_replaced_while_everything_runs(stack: Stack, which: str) -> None:
    _replaced(stack, which)


@pytest.mark.parametrize("which", ["--all", "--ca"])
def test_keys_of_a_cluster_are_replaced_while_everything_runs(cluster: Stack, which: str) -> None:
    _replaced(cluster, which)


def _replaced(stack: Stack, which: str) -> None:
    stranger = {**stack.outside}
    running = processes(stack)
    before = authority(stack)
    told = json.loads(stack.compose("run", "--rm", "keys", "security", "rotate", "/keys", which, "-o", "json"))
    gone = {step["identity"] for step in told["steps"] if step["step"] == "gone"}
    assert gone >= {"api", "scheduler", "person", "operator"}
    assert processes(stack) == running
    refused = stack.try_podyard("get", "nodes", outside=stranger)
    assert (refused.code, "does not let us in" in refused.err) == (1, True), refused.err
    stack.become_a_person()
    assert (authority(stack) == before) is (which == "--all")
    name = f"after-{which.strip('-')}"
    stack.podyard("apply", "-f", "-", stdin=POD.replace("NAME", name))
    stack.until("the pod runs", lambda: stack.phase(name) == "Running")
    stack.until("all healthy", stack.all_well)


def test_a_cluster_goes_on_without_one_of_its_servers(cluster: Stack) -> None:
    assert cluster.all_well(), cluster.state()
    well = Counter(one.service for one in cluster.containers() if one.well)
    assert {well[name] for name in ("nats", "nats-2", "nats-3", "jaeger")} == {1}
    assert {well[name] for name in LASTING if name not in ("nats", "jaeger")} == {2}
    cluster.crash("nats-2")
    pod = POD.replace("NAME", "without-one")

    def taken() -> bool:
        # who led the stream may have been the one that is gone
        return cluster.try_podyard("apply", "-f", "-", stdin=pod, outside=cluster.outside).code == 0

    cluster.until("the pod is taken", taken)
    cluster.until("the pod runs", lambda: cluster.phase("without-one") == "Running")
    cluster.until("all healthy", cluster.all_well)


def test_keys_of_a_folder_are_asked_for_and_used(
    docker: Engine, environment: dict[str, str], stack: Stack, tmp_path: Path
) -> None:
    assert stack.all_well()
    files = "docker-compose.yml:deploy/compose.own-keys.yml"
    settings = {**environment, **free_ports(), "COMPOSE_PROJECT_NAME": f"{PROJECT}-own-keys", "COMPOSE_FILE": files}
    unsaid = Stack(docker, settings, tmp_path).shell("docker compose up --detach --wait")
    assert unsaid.code != 0
    assert "security init /srv/podyard-security --owner 10001" in unsaid.err, unsaid.err
    assert "PODYARD_SECURITY_DIR=/srv/podyard-security" in unsaid.err

    made = tmp_path / "security"
    own = Stack(docker, {**settings, "PODYARD_SECURITY_DIR": str(made)}, tmp_path)
    told = own.shell("podyard security init $PODYARD_SECURITY_DIR")
    assert told.code == 0, told.err
    try:
        refused = own.shell("docker compose up --detach --wait nats")
        assert refused.code != 0, "they are not the user's of the image"
        assert "chown -R 10001:10001 /keys/identities" in own.compose("logs", "keys")
        own.good("chown -R 10001:10001 $PODYARD_SECURITY_DIR/identities")
        before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
        assert "node/node-8 created" in own.compose("run", "--rm", "lab-nodes")
        assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before
    finally:
        own.compose("down", "--volumes")


def test_a_backup_is_taken_and_restored_as_the_page_says(stack: Stack) -> None:
    stack.podyard("apply", "-f", "-", stdin=POD.replace("NAME", "backed-up"))
    stack.until("the pod runs", lambda: stack.phase("backed-up") == "Running")
    take, restore = (block.replace("podyard_nats", f"{PROJECT}_nats") for block in _of_the_page())
    *before, take_it = take.splitlines()
    log_in = " && ".join([stack.at_its_port, *before])
    place = f"{stack.home}/monday"
    stack.good(f"{log_in} && {take_it.replace('/srv/backups/monday', place)}")
    stack.good(f"{log_in} && set -e; {restore.replace('/srv/backups/monday', place)}")
    stack.until("the pod runs again", lambda: stack.phase("backed-up") == "Running")
    stack.until("all healthy", stack.all_well)


def _of_the_page() -> list[str]:
    """The blocks of docs/backup.md about the compose stack: how to take a backup, how to restore it."""
    text = (REPOSITORY / "docs/backup.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```\n(docker compose .*?)^```", text, re.MULTILINE | re.DOTALL)
    assert len(blocks) == 2
    return blocks
