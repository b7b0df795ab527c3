"""A small lab in which everybody has to log in: pods run, and the command line works as a person."""

import json
import stat
from pathlib import Path

import pytest

from podyard.bus import BusSettings, connect
from podyard.cli.demo.actions import Actions
from podyard.cli.demo.evidence import gather
from podyard.cli.lab import plan
from podyard.cli.lab.lab import LabOptions, running_lab
from podyard.cli.security import accounts, directory, identities
from tests.e2e.stage import READY_S, WITHIN_S, cli
from tests.support.objects import node, pod, written


@pytest.mark.timeout(180)
async def test_a_pod_runs_and_a_person_sees_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    options = LabOptions(
        services=plan.parse("api,queue,scheduler*2,binder,node_agent"), data_dir=str(tmp_path / "lab"), secure=True
    )
    async with running_lab(options) as lab:
        await lab.until_ready(READY_S)
        async with connect(lab.person()) as bus, gather(bus) as seen:
            await Actions(bus).apply([written(node("node-1")), written(pod("web"))], "a test")

            def runs() -> bool:
                found = seen.view.pods.get(("default", "web"))
                return found is not None and found.status is not None and found.status.phase == "Running"

            await seen.until("web running", runs, WITHIN_S)
        person = directory.environment(Path(lab.options.security), directory.named(identities.PERSON))
        stranger = await cli("get", "pods", url=lab.url)
        assert (stranger.code, "web" in stranger.out) == (1, False)
        for name, value in person.items():
            monkeypatch.setenv(name, value)
        shown = await cli("get", "pod", "web", "-o", "json", url=lab.url)
        assert shown.code == 0, shown.err
        assert json.loads(shown.out)["status"]["phase"] == "Running"
        places = [word for child in lab.children for word in ("--at", f"{child.instance}={child.http}")]
        top = await cli("top", "-o", "json", "--interval", "0.1", *places, url=lab.url)
        assert top.code == 0, top.err
        figures = json.loads(top.out)
        assert [(row["instance"], row["session"] != "") for row in figures["schedulers"]] == [
            ("scheduler-1", True),
            ("scheduler-2", True),
        ]
        assert sum(row["decisions"] for row in figures["schedulers"]) == figures["binders"][0]["bindings"] == 1
        assert all(row["ready"] for row in figures["services"])


def test_every_file_is_its_owners_alone(tmp_path: Path) -> None:
    made = tmp_path / "security"
    directory.create(made, identities.all_identities({"rack1": ("node-1",)}), cluster=("n1", "n2", "n3"))
    modes = {path: stat.S_IMODE(path.stat().st_mode) for path in (made, *made.rglob("*"))}
    assert {mode for path, mode in modes.items() if path.is_dir()} == {0o700}
    assert {mode for path, mode in modes.items() if path.is_file()} == {0o600}


async def test_init_says_no_secret_and_overwrites_nothing(tmp_path: Path) -> None:
    made = tmp_path / "security"
    done = await cli("security", "init", str(made))
    assert done.code == 0, done.err
    secrets = [path.read_text() for path in made.rglob("*") if path.suffix in (".seed", ".key", ".csv")]
    shown = done.out + done.err + "".join(path.read_text() for path in made.glob("server/*.conf"))
    # of the authority, the server, Secrets, and the Kubernetes API over HTTPS: its key and its tokens
    assert len(secrets) == 5 + 2 * len(identities.all_identities())
    assert not [secret for secret in secrets if secret.strip() in shown or secret.splitlines()[0] in shown]
    before = {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}
    again = await cli("security", "init", str(made))
    assert (again.code, "exists" in again.err) == (2, True)
    assert {path: path.read_bytes() for path in made.rglob("*") if path.is_file()} == before


def contents(made: Path) -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in made.rglob("*") if path.is_file()}


async def test_init_fills_a_tree_that_holds_no_file_and_where_keys_are_changes_nothing(tmp_path: Path) -> None:
    """As where volumes are mounted for each identity."""
    made = tmp_path / "keys"
    for part in ("server", "identities/api", "identities/person"):
        (made / part).mkdir(parents=True)
    mounted = (made / "identities/api").stat().st_ino
    done = await cli("security", "init", str(made), "--if-missing", "--cluster", "nats,nats-2")
    assert done.code == 0, done.err
    assert (made / "identities/api").stat().st_ino == mounted
    assert {path.name for path in (made / "server").glob("*.conf")} == {
        "nats.conf", "cluster-nats.conf", "cluster-nats-2.conf",
    }  # fmt: skip
    assert "cluster" not in json.loads((made / "server/nats.conf").read_text())
    before = contents(made)
    again = await cli("security", "init", str(made), "--if-missing")
    assert (again.code, again.out) == (0, f"{made} has keys: nothing was changed\n")
    owner = (made / "identities/api/nkey.seed").stat()
    mine, others = f"{owner.st_uid}:{owner.st_gid}", f"{owner.st_uid + 1}:{owner.st_gid}"
    again = await cli("security", "init", str(made), "--if-missing", "--owner", mine)
    assert again.code == 0, again.err
    again = await cli("security", "init", str(made), "--if-missing", "--owner", others)
    assert (again.code, f"chown -R {others} {made}/identities" in again.err) == (2, True), again.err
    assert contents(made) == before


@pytest.mark.parametrize("how", ["exception", "kill"])
def test_what_an_interrupted_init_left_is_made_anew_and_counts_as_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str
) -> None:
    made = tmp_path / "keys"
    with monkeypatch.context() as patched:
        patched.setattr(accounts, "single", lambda *_given: 1 / 0)
        if how == "kill":
            patched.setattr(directory, "_empty", lambda _directory: None)
        with pytest.raises(ZeroDivisionError):
            directory.create(made, identities.all_identities())
    assert not directory.is_made(made)
    left = contents(made)
    assert (left != {}) is (how == "kill")
    directory.create(made, identities.all_identities())
    assert directory.is_made(made)
    assert {path.name for path in left} - {"unfinished"} <= {path.name for path in contents(made)}
    assert all(contents(made)[path] != old for path, old in left.items() if path.suffix == ".key")
    modes = {stat.S_IMODE(path.stat().st_mode) for path in made.rglob("*") if path.is_dir()}
    assert modes == {0o700}


async def test_init_touches_nothing_of_others(tmp_path: Path) -> None:
    theirs = tmp_path / "theirs"
    theirs.mkdir()
    (theirs / "notes").write_text("dear diary")
    for words in ((), ("--if-missing",)):
        done = await cli("security", "init", str(theirs), *words)
        assert (done.code, "holds files" in done.err) == (2, True), done.err
    assert contents(theirs) == {theirs / "notes": b"dear diary"}


@pytest.mark.parametrize("owner", ["root", "-1", "1:-1", "4294967295"])
async def test_an_owner_is_a_number(tmp_path: Path, owner: str) -> None:
    done = await cli("security", "init", str(tmp_path / "keys"), f"--owner={owner}")
    assert (done.code, "UID or UID:GID" in done.err) == (2, True), done.err
    assert not (tmp_path / "keys").exists()


def test_settings_of_an_agent_name_its_nodes(tmp_path: Path) -> None:
    made = tmp_path / "security"
    directory.create(made, identities.all_identities({"rack1": ("node-1", "node-2")}))
    found = directory.environment(made, directory.named("agent-rack1", directory.agents(made)))
    assert found["PODYARD_NODE_AGENT_NODES"] == "node-1,node-2"
    assert isinstance(directory.bus_settings(made, directory.named("api"), ("nats://x:1",)), BusSettings)
