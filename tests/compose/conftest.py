"""The stack, brought up once for all tests as README.md says, and taken down as it says; people outside have
the key that README.md gives them."""

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Final

import pytest

from podyard.bench.programs.go_programs import NoProgramError
from podyard.runtime import ports
from tests.compose import engine, images, readme
from tests.compose.engine import Engine, NoEngineError
from tests.compose.stack import Stack
from tests.jaeger.binary import find
from tests.prometheus import binary as prometheus
from tests.prometheus.binary import NoPrometheusError

CA_BUNDLE: Final = Path("/etc/ssl/certs/ca-certificates.crt")
PORTS: Final = ("PODYARD_NATS_PORT", "PODYARD_JAEGER_PORT", "PODYARD_OTLP_PORT", "PODYARD_PROMETHEUS_PORT")
INSTANCES: Final = 10
"""Of kube-api, each with a port."""
PROJECT: Final = "podyard-test"
CLUSTER_PROJECT: Final = "podyard-test-cluster"
CLUSTER_FILES: Final = "docker-compose.yml:deploy/compose.cluster.yml"


@pytest.fixture(scope="session")
def docker() -> Iterator[Engine]:
    """A Docker engine; without one the tests fail, with the reason."""
    with ExitStack() as stack:
        try:
            found = stack.enter_context(engine.running())
        except NoEngineError as error:
            pytest.fail(str(error), pytrace=False)
        yield found


@pytest.fixture(scope="session")
def environment(docker: Engine) -> dict[str, str]:
    """What goes before the lines of .env: our stand-ins for the official images, free ports, a project of our
    own."""
    try:
        made = images.make(docker, find(), prometheus.find().prometheus)
    except (NoEngineError, NoProgramError, NoPrometheusError) as error:
        pytest.fail(str(error), pytrace=False)
    return {
        "COMPOSE_PROJECT_NAME": PROJECT,
        "PODYARD_IMAGE": f"{PROJECT}/podyard:latest",
        "PODYARD_PYTHON_IMAGE": made.base,
        "PODYARD_NATS_IMAGE": made.nats,
        "PODYARD_JAEGER_IMAGE": made.jaeger,
        "PODYARD_PROMETHEUS_IMAGE": made.prometheus,
        # the build reaches the package index as pip does here
        "PODYARD_BUILD_NETWORK": "host",
        "PODYARD_CA_BUNDLE": os.environ.get("PIP_CERT") or (str(CA_BUNDLE) if CA_BUNDLE.exists() else "/dev/null"),
        **free_ports(),
    }


def free_ports() -> dict[str, str]:
    """For a stack beside others."""
    others = ports.free_ports(len(PORTS))
    # each port is handed out once: those of the instances lie behind the others
    first, *_ = ports.free_ports(INSTANCES)
    of_instances = {
        "PODYARD_KUBE_API_PORTS": f"{first}-{first + INSTANCES - 1}",
        "PODYARD_KUBE_API_URL": f"https://localhost:{first}",
    }
    return {name: str(port) for name, port in zip(PORTS, others, strict=True)} | of_instances


@pytest.fixture(scope="session")
def stack(docker: Engine, environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    """Brought up by README's first command, from nothing; taken down by its last."""
    up, *_, down = readme.commands()
    assert " up" in up, up
    assert " down" in down, down
    found = Stack(docker, environment, tmp_path_factory.mktemp("home"))
    found.good(down)
    # so that `up` makes it of today's sources, as on a machine that has none; the engine keeps the layers
    docker.run("image", "rm", "--force", environment["PODYARD_IMAGE"])
    try:
        found.told_at_up = found.shell(up).err
        assert found.all_well(), f"{found.told_at_up}\n{found.state()}\n{found.logs()}"
        found.become_a_person()
        yield found
    finally:
        found.good(down)
    assert found.containers() == []


@pytest.fixture(scope="module")
def cluster(
    docker: Engine, environment: dict[str, str], stack: Stack, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Stack]:
    """A second project beside the first, of the same image: three servers, two of each service."""
    settings = {
        **environment,
        **free_ports(),
        "COMPOSE_PROJECT_NAME": CLUSTER_PROJECT,
        "COMPOSE_FILE": CLUSTER_FILES,
    }
    found = Stack(docker, settings, tmp_path_factory.mktemp("home-of-cluster"))
    found.compose("down", "--volumes")
    try:
        found.compose("up", "--detach", "--wait")
        found.become_a_person()
        yield found
    finally:
        found.compose("down", "--volumes")
    assert found.containers() == []
