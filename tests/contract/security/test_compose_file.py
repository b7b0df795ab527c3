"""docker-compose.yml and the file of the cluster against the table of identities and the directory that
`security init` writes."""

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from podyard.bus import connect, embedded_server
from podyard.cli import app, services
from podyard.cli.security import directory, identities, kube_files, mirrors
from podyard.cli.security.identities import READ_API

STACK: dict[str, Any] = yaml.safe_load(Path("docker-compose.yml").read_text())
SERVICES: dict[str, Any] = STACK["services"]
CLUSTER: dict[str, Any] = yaml.safe_load(Path("deploy/compose.cluster.yml").read_text())["services"]
DOCKERFILE = Path("deploy/Dockerfile").read_text()
PEOPLE = ("lab-nodes", "demo", "cli")
ADMINISTRATORS = ("admin", "mirrors")
SERVERS = ("nats", "nats-2", "nats-3")


def key_volumes(name: str, found: dict[str, Any] = SERVICES) -> dict[str, str]:
    """Where a container has which volume of keys."""
    mounts: dict[str, str] = {}
    for mount in found[name].get("volumes", ()):
        source, target, mode = (
            (mount["source"], mount["target"], "ro" if mount["read_only"] else "rw")
            if isinstance(mount, dict)
            else (*mount.split(":"), "rw")[:3]
        )
        if source.startswith("keys"):
            assert mode == "ro" or name == "keys", mount
            mounts[target] = source
    return mounts


def volume(identity: str) -> str:
    return f"keys-{identity.replace('_', '-')}"


def test_every_container_that_uses_nats_has_a_key_of_its_own_and_no_other() -> None:
    ours = {name for name, service in SERVICES.items() if "PODYARD_NATS_SERVERS" in service.get("environment", {})}
    assert ours == {*PEOPLE, "keys", "nats-streams"} | {name.replace("_", "-") for name in services.NAMES}
    for name in ours - {"keys", "nats-streams"}:
        assert [*key_volumes(name).values()] == [volume("person" if name in PEOPLE else name)]
    assert {*key_volumes("nats-streams").values()} == {volume(name) for name in ADMINISTRATORS}
    for name, service in {**SERVICES, **CLUSTER}.items():
        if name not in ours and not name.startswith("nats"):
            assert not [mount for mount in service.get("volumes", ()) if str(mount).startswith("keys")], name


@pytest.mark.parametrize("name", [*PEOPLE, *(name.replace("_", "-") for name in services.NAMES)])
def test_a_container_comes_as_its_identity(name: str) -> None:
    identity = directory.named("person" if name in PEOPLE else name.replace("-", "_"))
    environment = SERVICES[name]["environment"]
    [folder] = key_volumes(name)
    assert environment["PODYARD_NATS_NKEY_SEED_FILE"] == f"{folder}/{directory.SEED}"
    assert environment["PODYARD_NATS_TLS_CA_FILE"] == f"{folder}/ca.crt"
    assert environment["PODYARD_NATS_TLS_CERT_FILE"] == f"{folder}/tls.crt"
    assert environment["PODYARD_NATS_TLS_KEY_FILE"] == f"{folder}/tls.key"
    assert environment.get("PODYARD_NATS_JETSTREAM_PREFIX", "$JS.API") == identity.jetstream
    assert identity.jetstream in (READ_API, "$JS.API")
    # the inbox that a process has by default, from its service's name
    assert identity.inbox == f"_INBOX.{'cli' if name in PEOPLE else identity.name}"
    if name in PEOPLE:
        # as `podyard security env` finds it in a copy
        assert folder == "/keys/identities/person"
    else:
        assert environment["PODYARD_NATS_ENSURE_STREAMS"] == "false"
    assert ("PODYARD_API_IDENTITIES_FILE" in environment) == (name == "api")
    if name == "kube-api":
        served = kube_files.settings(Path(folder))
        assert {key: environment[key] for key in served} == served


def test_each_volume_of_keys_is_there_and_filled_by_the_one_who_makes_them(tmp_path: Path) -> None:
    made = tmp_path / "keys"
    init(made)
    volumes = {name for name in STACK["volumes"] if name.startswith("keys")}
    filled = key_volumes("keys")
    assert {*filled.values()} == volumes
    for target in filled:
        assert (made / target.removeprefix("/keys").lstrip("/")).is_dir(), target
    used = {found for name in SERVICES if name != "keys" for found in key_volumes(name).values()}
    assert used == volumes - {"keys"}


def test_a_folder_of_ones_own_takes_the_place_of_every_volume_of_keys(tmp_path: Path) -> None:
    made = tmp_path / "keys"
    init(made)
    own = yaml.safe_load(Path("deploy/compose.own-keys.yml").read_text())["volumes"]
    targets = {volume: target for target, volume in key_volumes("keys").items()}
    assert {*own} == {*targets}
    for name, volume in own.items():
        options = volume["driver_opts"]
        assert (options["type"], options["o"]) == ("none", "bind")
        place = re.sub(r"^\$\{PODYARD_SECURITY_DIR(:\?[^}]*)?\}", "/keys", options["device"])
        assert place == targets[name]
        assert Path(place.replace("/keys", str(made))).is_dir()


def test_who_makes_keys_gives_them_to_the_user_of_the_image() -> None:
    words: list[str] = SERVICES["keys"]["command"]
    [user] = re.findall(r"^USER (\d+):\d+$", DOCKERFILE, re.MULTILINE)
    assert words[words.index("--owner") + 1] == user
    assert (SERVICES["keys"]["user"], SERVICES["keys"]["cap_drop"]) == ("0:0", ["ALL"])


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_has_the_folder_of_the_servers_and_its_own_configuration(name: str, tmp_path: Path) -> None:
    made = tmp_path / "keys"
    init(made)
    found = SERVICES if name == "nats" else CLUSTER
    assert key_volumes(name, found) == {directory.MOUNTED: "keys-server"}
    [mount] = [mount for mount in found[name]["volumes"] if isinstance(mount, dict)]
    assert mount["volume"] == {"nocopy": True}, "or the image's own files are taken for keys"
    for path, in_cluster in ((CLUSTER[name]["command"][1], True), (found[name]["command"][1], name != "nats")):
        written = json.loads((made / "server" / path.removeprefix(f"{directory.MOUNTED}/")).read_text())
        assert ("cluster" in written) is in_cluster
        assert written["server_name"] == (name if in_cluster else "podyard-nats")


def init(made: Path) -> None:
    """As the service `keys` does it; nobody is given anything, which takes root."""
    words = [word.replace("/keys", str(made)) for word in SERVICES["keys"]["command"]]
    owner = words.index("--owner")
    del words[owner : owner + 2]
    words = ["" if word.startswith("${") else word for word in words]
    assert app.run(words) == 0


async def test_the_server_runs_with_what_was_made_and_the_administrators_need_no_more_than_their_keys(
    tmp_path: Path,
) -> None:
    made = tmp_path / "keys"
    directory.create(made, identities.all_identities())
    written = json.loads((made / "server" / "nats.conf").read_text().replace("/etc/nats", str(made / "server")))
    assert (written.pop("port"), written.pop("http"), written["jetstream"].pop("store_dir")) == (
        4222,
        "127.0.0.1:8222",
        "/data",
    )
    theirs = tmp_path / "theirs"
    for name in ADMINISTRATORS:
        (theirs / "identities").mkdir(parents=True, exist_ok=True)
        (theirs / "identities" / name).symlink_to(made / "identities" / name)
    async with embedded_server(tmp_path / "nats", settings=written) as server:
        await mirrors.bootstrap(theirs, (server.url,))
        await mirrors.bootstrap(theirs, (server.url,))  # again changes nothing
        person = directory.bus_settings(made, directory.named("person"), (server.url,))
        async with connect(person) as bus:
            assert await bus.last_sequence("CLUSTER") == 0


@pytest.mark.parametrize("stack", [SERVICES, CLUSTER])
def test_commands_of_the_administrators_are_some(stack: dict[str, Any]) -> None:
    words = stack["nats-streams"]["command"]
    app.build().parse_args(shlex.join(words), print_error=False, exit_on_error=False)
