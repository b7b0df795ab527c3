"""TLS, a key for everybody and three accounts, as `docker compose up` makes them at the first start; keys and
the authority replaced while everything runs."""

import json
import re
import ssl
from collections import Counter

import pytest

from tests.compose import readme
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
