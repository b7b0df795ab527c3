"""The certificate authority replaced while everything works."""

import stat
from pathlib import Path

import msgspec
import pytest

from podyard.cli.errors import CliError, InputError
from podyard.cli.security import directory, rotation, succession
from podyard.cli.security.rotating import Rotating
from podyard.cli.security.servers import Servers, believes, lets_in
from tests.contract.security.test_rotation import Stage, kept, stolen
from tests.contract.security.visitors import site
from tests.e2e.stage import cli

whole = pytest.mark.whole_faults


class InterruptedError_(Exception):
    pass


def interrupted(*_given: object) -> None:
    raise InterruptedError_


async def test_everything_is_made_anew_and_what_the_old_one_made_is_refused(tmp_path: Path) -> None:
    async with site(tmp_path) as here:
        stage = Stage(here)
        names = directory.names(here.security)
        kept(here.security, tmp_path / "stolen")
        (here.security / "ca/ca.key").unlink()  # taken away, as everybody should
        await stage.rotating.replace_authority(within_s=5)
        steps = [(one.identity, one.step) for one in stage.told]
        assert [step for who, step in steps if who == "ca"] == ["made", "believed", "gone"]
        assert (steps[:2], steps[-1]) == ([("ca", "made"), ("ca", "believed")], ("ca", "gone"))
        assert {who for who, step in steps if step == "gone"} == {*names, "ca"}
        assert steps[-3:-1] == [("server", "replaced"), ("server", "used")]

        address = here.server.url
        for name in names:
            own = directory.bus_settings(here.security, here.identity(name), (address,))
            assert await lets_in(own), name
            old = stolen(here.security, tmp_path / "stolen", name, address)
            assert (await believes(own), await believes(old)) == (True, False), name
            old_key = msgspec.structs.replace(own, nkey_seed_file=old.nkey_seed_file)
            assert not await lets_in(old_key), name

        believed = {path.read_bytes() for path in here.security.rglob("ca.crt")}
        assert len(believed) == 1
        assert believed != {(tmp_path / "stolen/identities/api/ca.crt").read_bytes()}
        assert rotation.authority(here.security).issued.certificate in believed
        assert not (here.security / "rotation").exists()
        modes = {stat.S_IMODE(path.stat().st_mode) for path in here.security.rglob("*") if path.is_file()}
        assert modes == {0o600}


@pytest.mark.parametrize(
    "at", ["an identity", *(pytest.param(at, marks=whole) for at in ("made", "believed", "the servers", "gone"))]
)
async def test_an_interrupted_replacement_goes_on_where_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    where = {
        "made": (Path, "rename"),
        "believed": (succession, "done"),
        "an identity": (rotation, "finish"),
        "the servers": (rotation, "new_server_certificate"),
        "gone": (succession, "finish"),
    }
    async with site(tmp_path, few=True) as here:
        stage = Stage(here)
        kept(here.security, tmp_path / "stolen")
        with monkeypatch.context() as patched:
            patched.setattr(*where[at], interrupted)
            with pytest.raises(InterruptedError_):
                await stage.rotating.replace_authority(within_s=5)
        done = [one.identity for one in stage.told if one.step == "gone"]
        if at != "made":
            with pytest.raises(InputError, match="is being replaced"):
                succession.refuse_while_under_way(here.security)
        await stage.rotating.replace_authority(within_s=5)
        gone = [one.identity for one in stage.told if one.step == "gone"]
        assert gone[: len(done)] == done
        assert sorted(gone) == sorted([*directory.names(here.security), "ca"]), "nothing is done twice"
        old = stolen(here.security, tmp_path / "stolen", "person", here.server.url)
        assert await believes(old) is False
        assert await lets_in(directory.bus_settings(here.security, here.identity("api"), (here.server.url,)))
        assert not (here.security / "rotation").exists()


async def test_a_key_that_was_being_replaced_before_is_replaced_once_more(tmp_path: Path) -> None:
    """Its certificate is of the old authority."""
    async with site(tmp_path, few=True) as here:
        stage = Stage(here)
        rotation.begin(here.security, "queue", rotation.authority(here.security))
        await stage.rotating.replace_authority(within_s=5)
        gone = [one.identity for one in stage.told if one.step == "gone"]
        assert gone.count("queue") == 2
        assert gone[0] == "queue"


@pytest.mark.parametrize("when", ["gone", pytest.param("believed", marks=whole)])
async def test_a_server_that_does_not_follow_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    """It has copies of its files, and was not given the new ones."""
    monkeypatch.setattr("podyard.cli.security.rotating.LOOKED_FOR_S", 1.0)
    async with site(tmp_path, few=True) as here:
        stage = Stage(here)
        if when == "gone":
            with monkeypatch.context() as patched:
                patched.setattr(succession, "believe_only_new", interrupted)
                with pytest.raises(InterruptedError_):
                    await stage.rotating.replace_authority(within_s=5)
        settings = directory.server_settings(here.security)
        copies = tmp_path / "copies"
        copies.mkdir()
        for file in ("server.crt", "server.key", "ca.crt"):
            (copies / file).write_bytes((here.security / "server" / file).read_bytes())
        settings["tls"] |= {
            "cert_file": str(copies / "server.crt"),
            "key_file": str(copies / "server.key"),
            "ca_file": str(copies / "ca.crt"),
        }
        here.server.reload(settings)
        unmoved = Rotating(here.security, Servers(here.security, (here.server.url,)), lambda: 1 / 0, stage.told.append)
        if when == "gone":
            monkeypatch.setattr(
                rotation, "new_server_certificate", lambda place, _signer: (copies / "server.crt").read_bytes()
            )
        what = "does not believe the new authority" if when == "believed" else "still believes the old authority"
        with pytest.raises(CliError, match=what) as told:
            await unmoved.replace_authority(within_s=5)
        assert "give it the files of" in told.value.advice
        await stage.rotating.replace_authority(within_s=5)
        assert stage.told[-1].identity == "ca"


async def test_what_does_not_go_together_is_refused(tmp_path: Path) -> None:
    async with site(tmp_path, few=True) as here:
        place, url = str(here.security), here.server.url
        done = await cli("security", "rotate", place, "api", "--ca", url=url)
        assert (done.code, "whose keys?" in done.err) == (2, True), done.err
        done = await cli("security", "rotate", place, "--ca", "--ca-key", "x", url=url)
        assert (done.code, "does not need the old key" in done.err) == (2, True), done.err
        succession.begin(here.security)
        done = await cli("security", "rotate", place, "api", url=url)
        assert (done.code, f"podyard security rotate {place} --ca" in done.err) == (2, True), done.err
