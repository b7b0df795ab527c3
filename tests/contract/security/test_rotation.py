"""Keys replaced while everything works: a lab under writes, all of its identities one after the other."""

import json
import stat
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import msgspec
import pytest

from podyard.bus import EmbeddedServer, connect
from podyard.bus.settings import BusSettings
from podyard.cli.demo.actions import Actions
from podyard.cli.demo.evidence import gather
from podyard.cli.errors import CliError, InputError
from podyard.cli.lab import plan
from podyard.cli.lab.lab import LabOptions, running_lab
from podyard.cli.security import directory, identities, rotating, rotation
from podyard.cli.security.rotating import Rotating, Told, alone, wanted
from podyard.cli.security.servers import Servers, believes, lets_in
from podyard.proto import streams
from tests.contract.security.servers import Cluster, cluster
from tests.contract.security.visitors import Site, site
from tests.e2e.stage import READY_S, WITHIN_S, Done, cli
from tests.faults.process import Process
from tests.faults.stage import settings
from tests.support.objects import node, pod, written
from tests.support.waiting import eventually

whole = pytest.mark.whole_faults

EVERY_S = 0.1
"""One pod so often, while keys are replaced."""

SERVICES = ("api", "queue", "scheduler", "binder", "node_agent", "workloads")


def kept(security: Path, folder: Path) -> None:
    """Copy all keys, as a thief would have."""
    for path in (security / "identities").rglob("*"):
        if path.is_file():
            copy = folder / path.relative_to(security)
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())


def stolen(security: Path, folder: Path, name: str, server: str) -> BusSettings:
    """How who has the copies comes."""
    own = directory.bus_settings(security, directory.named(name, directory.agents(security)), (server,))
    there = {
        setting: str(folder / Path(getattr(own, setting)).relative_to(security))
        for setting in ("nkey_seed_file", "tls_cert_file", "tls_key_file")
    }
    return BusSettings(**{**{field: getattr(own, field) for field in own.__struct_fields__}, **there})


async def replaced_under_writes(known_as: BusSettings, rotate: Callable[[], Awaitable[Done]]) -> tuple[Done, int]:
    """Keys are replaced while a person makes pods. All of these run in the end.

    :return: what the command said, and how many pods there were
    """
    made: list[str] = []
    ended = anyio.Event()
    async with connect(known_as) as bus, gather(bus) as seen:
        await Actions(bus).apply([written(node("node-1", pods="5000"))], "a test")

        async def write() -> None:
            while not ended.is_set():
                name = f"web-{len(made)}"
                await Actions(bus).apply([written(pod(name, requests={"cpu": "1m"}))], "a test")
                made.append(name)
                await anyio.sleep(EVERY_S)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write)
            done = await rotate()
            ended.set()
        assert done.code == 0, done.out + done.err
        await Actions(bus).apply([written(pod("last", requests={"cpu": "1m"}))], "a test")
        made.append("last")

        def all_run() -> bool:
            found = [seen.view.pods.get(("default", name)) for name in made]
            return all(one is not None and one.status is not None and one.status.phase == "Running" for one in found)

        await seen.until("all pods running", all_run, WITHIN_S)
    return done, len(made)


async def old_ones_are_refused(security: Path, folder: Path, which: str, server: str) -> None:
    """Nobody gets in with what he had before, and everybody with what he has now.

    :param folder: where the keys of before are `kept`
    :param which: `--all` or `--ca`
    """
    for name in directory.names(security):
        own = directory.bus_settings(security, directory.named(name, directory.agents(security)), (server,))
        old = stolen(security, folder, name, server)
        assert await lets_in(own), name
        old_key = msgspec.structs.replace(own, nkey_seed_file=old.nkey_seed_file)
        assert not await lets_in(old_key), name
        assert await believes(old) is (which == "--all"), name
    assert not (security / "rotation").exists()
    dead = directory.bus_settings(security, directory.named("admin"), (server,))
    async with connect(dead) as admin:
        assert await admin.last_sequence("DEAD") == 0, "something was stored that could not be read"


@pytest.mark.timeout(420)
async def test_all_keys_are_replaced_under_writes_and_nothing_is_lost(tmp_path: Path) -> None:
    options = LabOptions(services=plan.parse(",".join(SERVICES)), data_dir=str(tmp_path / "lab"), secure=True)
    async with running_lab(options) as lab:
        await lab.until_ready(READY_S)
        security = Path(lab.options.security)
        kept(security, tmp_path / "stolen")
        names = directory.names(security)
        pids = {child.instance: child.pid for child in lab.children}
        done, made = await replaced_under_writes(
            lab.person(), lambda: cli("security", "rotate", str(security), "--all", "-o", "json", url=lab.url)
        )
        assert made > len(names)
        assert {child.instance: child.pid for child in lab.children} == pids
        steps = json.loads(done.out)["steps"]
        used = {step["identity"]: step["text"] for step in steps if step["step"] == "used"}
        assert set(used) == {*names, "server"}
        assert [name for name in SERVICES if f"{name}-1 (127.0.0.1)" not in used[name]] == []
        await old_ones_are_refused(security, tmp_path / "stolen", "--all", lab.url)


@whole
@pytest.mark.timeout(420)
async def test_the_authority_of_a_cluster_is_replaced_under_writes_and_nothing_is_lost(tmp_path: Path) -> None:
    """All keys with it, over three servers, each with a configuration of its own; services know all of
    them."""
    async with cluster(tmp_path) as here, working(here, tmp_path) as processes, anyio.create_task_group() as tasks:
        tasks.start_soon(here.follow)
        kept(here.security, tmp_path / "stolen")
        pids = {process.instance: process.pid for process in processes}
        person = directory.bus_settings(here.security, directory.named("person"), here.urls)
        done, made = await replaced_under_writes(
            person,
            lambda: cli("security", "rotate", str(here.security), "--ca", "-o", "json", url=",".join(here.urls)),
        )
        steps = json.loads(done.out)["steps"]
        used = {step["identity"]: step["text"] for step in steps if step["step"] == "used"}
        assert made > len(used) > len(SERVICES)
        assert [one.instance for one in processes if f"{one.instance} (" not in used[one.service]] == []
        assert {process.instance: process.pid for process in processes if process.alive} == pids
        for url in here.urls:
            await old_ones_are_refused(here.security, tmp_path / "stolen", "--ca", url)
        tasks.cancel_scope.cancel()


@asynccontextmanager
async def working(here: Cluster, folder: Path) -> AsyncGenerator[list[Process]]:
    """Services of a cluster, each as its identity, ready; one of each, and a standby where one leads."""
    processes = []
    for planned in plan.parse("api,queue=2,scheduler,binder=2,node_agent,workloads"):
        environment = directory.environment(here.security, directory.named(planned.service))
        given = {**settings(streams.LEASE_TTL_S), **environment, "PODYARD_NATS_SERVERS": ",".join(here.urls)}
        log = folder / f"{planned.instance}.log"
        processes.append(Process(planned.service, planned.instance, log, given, lambda _text: None))
    try:
        for process in processes:
            await process.start()
        for process in processes:
            await process.ready()
        yield processes
    finally:
        for process in processes:
            process.kill()
        for process in processes:
            if process.pid:
                await process.ended()


class Following(Servers):
    """Servers that have their configuration from the directory."""

    def __init__(self, place: Path, server: EmbeddedServer) -> None:
        super().__init__(place, (server.url,))
        self.server = server
        self.broken = False
        self.overtaken = 0
        """So many of the next reloads come to nothing: what the server read before is applied after them."""

    async def reload(self) -> None:
        """As the lab, and somebody who copies files, do it."""
        if self.broken:
            raise CliError("a server was away")
        if self.overtaken:
            self.overtaken -= 1
            return
        self.server.reload(directory.server_settings(self._place))
        await super().reload()


class Stage:
    """One identity's rotation on a server."""

    def __init__(self, here: Site) -> None:
        self.here = here
        self.told: list[Told] = []
        self.servers = Following(here.security, here.server)
        self.rotating = Rotating(
            here.security, self.servers, lambda: rotation.authority(here.security), self.told.append
        )

    @property
    def steps(self) -> list[str]:
        return [one.step for one in self.told]

    def state(self, name: str) -> str:
        found = rotation.load(self.here.security, name)
        return found.step if found is not None else ""


async def test_who_still_uses_the_old_key_is_named_and_waited_for(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        stage = Stage(here)
        async with here.visit("bridge") as visitor:
            with pytest.raises(CliError, match=r"the old key of bridge is still used by somebody \(127.0.0.1\)"):
                await stage.rotating.rotate("bridge", within_s=1)
            assert (stage.steps, stage.state("bridge")) == (["made", "known", "replaced"], "replaced")
            assert visitor.client.is_connected
        await stage.rotating.rotate("bridge", within_s=5)
        assert stage.steps == ["made", "known", "replaced", "used", "gone"]
        async with here.visit("bridge"):
            pass


async def test_with_now_who_has_the_old_key_is_cut_off(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        stage = Stage(here)
        async with here.visit("person") as visitor:
            await stage.rotating.rotate("person", within_s=0)
            assert stage.steps == ["made", "known", "replaced", "used", "gone"]
            await eventually("the old key's user is cut off", lambda: not visitor.client.is_connected)


@pytest.mark.parametrize("name", ["queue", rotating.SERVER])
async def test_a_server_that_applied_older_files_last_is_told_to_read_them_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setattr(rotating, "READ_AGAIN_S", 0.5)
    async with site(tmp_path) as here:
        stage = Stage(here)
        stage.servers.overtaken = 1
        await stage.rotating.rotate(name, within_s=5)
        assert stage.servers.overtaken == 0
        assert stage.steps[-1] == ("used" if name == rotating.SERVER else "gone")


@pytest.mark.parametrize("at", ["replaced", *(pytest.param(at, marks=whole) for at in ("made", "known", "gone"))])
async def test_an_interrupted_rotation_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    """The first try ends in the middle of each step: a key made and the files not all there, configurations
    changed and servers not told, some files replaced, the old key out of some."""

    class InterruptedError_(Exception):
        pass

    def interrupted(*_given: object) -> None:
        raise InterruptedError_

    async with site(tmp_path) as here:
        stage = Stage(here)
        kept(here.security, tmp_path / "stolen")
        where = {
            "made": (Path, "rename", interrupted),
            "known": (rotation, "done", interrupted),
            "replaced": (
                rotation.keys,
                "replace_secret",
                _fails_at("tls.key", rotation.keys.replace_secret, interrupted),
            ),
            "gone": (rotation, "finish", interrupted),
        }
        with monkeypatch.context() as patched:
            patched.setattr(*where[at])
            with pytest.raises(InterruptedError_):
                await stage.rotating.rotate("api", within_s=5)
        await stage.rotating.rotate("api", within_s=5)
        assert stage.steps[-1] == "gone"
        assert not (here.security / "rotation").exists()
        assert not await lets_in(stolen(here.security, tmp_path / "stolen", "api", here.server.url))
        assert await lets_in(directory.bus_settings(here.security, here.identity("api"), (here.server.url,)))
        names = json.loads((here.security / "identities/api/identities.json").read_bytes())
        assert sorted(names.values()) == directory.names(here.security)
        modes = {stat.S_IMODE(path.stat().st_mode) for path in here.security.rglob("*") if path.is_file()}
        assert modes == {0o600}


def _fails_at(name, real, raising):
    def replace(path: Path, content: bytes) -> None:
        if path.name == name:
            raising()
        real(path, content)

    return replace


async def test_a_server_that_is_away_or_was_not_given_its_files_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podyard.cli.security.rotating.LOOKED_FOR_S", 0.5)
    async with site(tmp_path) as here:
        stage = Stage(here)
        before = (here.security / "identities/queue/nkey.seed").read_bytes()
        stage.servers.broken = True
        with pytest.raises(CliError, match="away"):
            await stage.rotating.rotate("queue", within_s=5)
        unmoved = Rotating(
            here.security,
            Servers(here.security, (here.server.url,)),
            lambda: rotation.authority(here.security),
            stage.told.append,
        )
        with pytest.raises(CliError, match="does not let the new key in of queue") as told:
            await unmoved.rotate("queue", within_s=5)
        assert "give it the files of" in told.value.advice
        assert (here.security / "identities/queue/nkey.seed").read_bytes() == before
        assert stage.state("queue") == "made"
        stage.servers.broken = False
        await stage.rotating.rotate("queue", within_s=5)
        assert stage.steps == ["made", "known", "replaced", "used", "gone"]


async def test_no_certificate_is_made_without_the_authoritys_key(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        key = here.security / "ca/ca.key"
        away = key.rename(tmp_path / "safe.key")
        done = await cli("security", "rotate", str(here.security), "api", url=here.server.url)
        assert (done.code, "name it with --ca-key" in done.err) == (2, True), done.err
        other = tmp_path / "other"
        directory.create(other, identities.all_identities())
        done = await cli(
            "security", "rotate", str(here.security), "api", "--ca-key", str(other / "ca/ca.key"), url=here.server.url
        )
        assert (done.code, "the key of another authority" in done.err) == (2, True), done.err
        assert rotation.authority(here.security, str(away)).issued.key == away.read_bytes()
        assert not (here.security / "rotation").exists()


async def test_one_rotation_at_a_time_in_a_good_order(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        rotation.begin(here.security, "workloads", rotation.authority(here.security))
        order = wanted(here.security, (), everybody=True)
        assert (order[0], order[-2:]) == ("workloads", ["operator", "server"])
        assert set(order) == {*directory.names(here.security), "server"}
        with pytest.raises(InputError, match="has no identity 'nobody'"):
            wanted(here.security, ("nobody",), everybody=False)
        with (
            alone(here.security),
            pytest.raises(InputError, match=r"another rotation of .* runs"),
            alone(here.security),
        ):
            pass
