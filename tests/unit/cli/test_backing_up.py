"""What is refused as a backup, before a server is asked for anything."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from podyard.bus.backup import BACKED_UP, FORMAT, MANIFEST, KeptStream, Manifest
from podyard.cli import backing_up
from podyard.cli.errors import InputError
from podyard.cli.render import backup as render

Change = Callable[[Manifest], Manifest]


def written(directory: Path, change: Change = lambda manifest: manifest) -> Path:
    """A backup of empty files."""
    kept = tuple(
        KeptStream(
            name=spec.name,
            file=f"{spec.name}.gz",
            messages=0,
            first=1,
            last=0,
            size=0,
            unpacked=0,
            sha256=hashlib.sha256(b"").hexdigest(),
        )
        for spec in BACKED_UP
    )
    for one in kept:
        (directory / one.file).write_bytes(b"")
    manifest = change(Manifest(format=FORMAT, at=1.0, streams=kept))
    (directory / MANIFEST).write_bytes(msgspec.json.encode(manifest))
    return directory


def replaced(**fields: object) -> Change:
    """The first stream is told of otherwise."""

    def change(manifest: Manifest) -> Manifest:
        first, *others = manifest.streams
        return msgspec.structs.replace(manifest, streams=(msgspec.structs.replace(first, **fields), *others))

    return change


def test_a_whole_one_is_read(tmp_path: Path) -> None:
    assert backing_up.read(written(tmp_path)).streams[0].name == "CLUSTER"


def test_who_leads_is_not_kept() -> None:
    assert "LEASES" not in {spec.name for spec in BACKED_UP}


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda manifest: msgspec.structs.replace(manifest, format=2), "format 2; this release reads 1"),
        (lambda manifest: msgspec.structs.replace(manifest, streams=manifest.streams[1:]), "CLUSTER: it is not in it"),
        (
            lambda manifest: msgspec.structs.replace(manifest, streams=(*manifest.streams, manifest.streams[0])),
            "CLUSTER: no such stream, or twice",
        ),
        (replaced(name="LEASES"), "LEASES: no such stream, or twice"),
        (replaced(sha256="0"), "CLUSTER.gz: it is not what it was when the backup was taken"),
        (replaced(file="../CLUSTER.gz"), "CLUSTER: there is no file CLUSTER.gz"),
    ],
)
def test_what_is_not_whole_is_refused(tmp_path: Path, change: Change, told: str) -> None:
    with pytest.raises(InputError) as refused:
        backing_up.read(written(tmp_path, change))
    assert told in refused.value.message


def test_a_directory_that_was_not_finished_is_none(tmp_path: Path) -> None:
    (written(tmp_path) / MANIFEST).unlink()
    with pytest.raises(InputError, match="No such file") as refused:
        backing_up.read(tmp_path)
    assert "was not finished" in refused.value.advice


def test_a_file_that_is_gone_is_missed(tmp_path: Path) -> None:
    (written(tmp_path) / "MOVES.gz").unlink()
    with pytest.raises(InputError, match=r"MOVES: there is no file MOVES\.gz"):
        backing_up.read(tmp_path)


@pytest.mark.parametrize(
    ("amount", "told"), [(0, "0 B"), (1023, "1023 B"), (1024, "1.0 KiB"), (3 << 20, "3.0 MiB"), (1 << 41, "2048.0 GiB")]
)
def test_sizes(amount: int, told: str) -> None:
    assert render.size(amount) == told
