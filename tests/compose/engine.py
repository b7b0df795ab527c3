"""A Docker engine with Compose v2: the machine's own, or one that is installed and started here.

Installing needs Debian (or a relative) and root. What was started here is ended at the end of the test run,
by its process id; what was installed stays.
"""

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from podyard.bench.programs import kept

REPOSITORY: Final = Path(__file__).parents[2]
COMPOSE_LOCK: Final = REPOSITORY / "requirements" / "compose.txt"
PACKAGES: Final = ("docker.io", "iptables")
START_S: Final = 60.0


class NoEngineError(Exception):
    """There is no Docker engine and none can be had; the text says why and what to do."""


class Engine(NamedTuple):
    """What `docker` needs to be called with."""

    environment: Mapping[str, str]

    def run(self, *words: str, stdin: bytes | None = None, **more: str) -> str:
        """`docker <words>`; what it printed.

        :param more: further environment
        :raises AssertionError: if it failed, with what it said
        """
        environment = {**self.environment, **more}
        done = subprocess.run(["docker", *words], input=stdin, env=environment, capture_output=True, check=False)
        told = done.stdout.decode(errors="replace")
        assert done.returncode == 0, f"docker {' '.join(words)}:\n{told}{done.stderr.decode(errors='replace')}"
        return told

    def has_image(self, name: str) -> bool:
        """Whether the engine holds this image."""
        return bool(self.run("image", "ls", "--quiet", name).strip())


@contextmanager
def running() -> Generator[Engine]:
    """An engine for as long as the block runs.

    :raises NoEngineError: if there is none and none can be had
    """
    plain = dict(os.environ)
    answer = _version(plain)
    if not answer:
        yield Engine(_with_compose(plain))
        return
    _install_missing(answer)
    with _dockerd():
        yield Engine(_with_compose(plain))


def _version(environment: Mapping[str, str]) -> str:
    """Empty if an engine answers, else why not."""
    if shutil.which("docker") is None:
        return "there is no `docker` command"
    done = subprocess.run(
        ["docker", "version", "--format", "{{.Server.Version}}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stderr.strip() if done.returncode else ""


def install(packages: tuple[str, ...], why: str) -> None:
    """Install Debian packages.

    :raises NoEngineError: if this is no Debian, we are not root, or apt-get fails
    """
    if shutil.which("apt-get") is None or os.geteuid() != 0:
        raise NoEngineError(
            f"{why}; installing {', '.join(packages)} needs root and apt-get: install and start it yourself"
        )
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for words in (("update",), ("install", "--yes", "--no-install-recommends", *packages)):
        done = subprocess.run(
            ["apt-get", "-q", *words],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise NoEngineError(f"{why}; apt-get {words[0]} failed:\n{(done.stdout + done.stderr)[-2000:]}")


def _install_missing(why: str) -> None:
    if os.environ.get("DOCKER_HOST"):
        raise NoEngineError(f"DOCKER_HOST={os.environ['DOCKER_HOST']} is set, but no engine answers there: {why}")
    if shutil.which("dockerd") is None or shutil.which("iptables") is None or shutil.which("docker") is None:
        install(PACKAGES, why)
    if os.geteuid() != 0:
        raise NoEngineError(f"{why}; starting dockerd needs root: start it yourself")


@contextmanager
def _dockerd() -> Generator[None]:
    """Our own daemon on the usual socket; `PODYARD_DOCKERD_ARGS` adds to its command line."""
    log = kept.folder() / "dockerd.log"
    with log.open("wb") as out:
        words = ["dockerd", *os.environ.get("PODYARD_DOCKERD_ARGS", "").split()]
        process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)
        try:
            deadline = time.monotonic() + START_S
            while why := _version(os.environ):
                if process.poll() is not None or time.monotonic() > deadline:
                    raise NoEngineError(f"dockerd does not start: {why}\n{log.read_text(errors='replace')[-2000:]}")
                time.sleep(0.2)
            yield
        finally:
            process.terminate()
            try:
                process.wait(30)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _with_compose(environment: dict[str, str]) -> dict[str, str]:
    """`environment`, with a Docker configuration that has Compose v2 if the machine's has none."""
    if (
        subprocess.run(["docker", "compose", "version"], env=environment, capture_output=True, check=False).returncode
        == 0
    ):
        return environment
    place = kept.folder() / f"compose-{kept.digest(COMPOSE_LOCK)}"
    plugin = place / "docker" / "cli-plugins" / "docker-compose"
    with kept.one_at_a_time("compose"):
        if not plugin.exists():
            _install_compose(place, plugin)
    return {**environment, "DOCKER_CONFIG": str(place / "docker")}


def _install_compose(place: Path, plugin: Path) -> None:
    words = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--require-hashes"]
    words += ["--upgrade", "--target", str(place / "packages"), "--requirement", str(COMPOSE_LOCK)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NoEngineError(
            f"there is no `docker compose`, and pip cannot install {COMPOSE_LOCK.name}:\n{done.stderr[-2000:]}"
        )
    plugin.parent.mkdir(parents=True, exist_ok=True)
    plugin.unlink(missing_ok=True)
    plugin.symlink_to(place / "packages" / "compose" / "docker-compose")
