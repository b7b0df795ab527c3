"""The stack that docker-compose.yml brings up, as somebody outside the containers sees and troubles it."""

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from tests.compose import readme
from tests.compose.engine import REPOSITORY, Engine

T = TypeVar("T")

WITHIN_S: Final = 90.0
"""Limit of a wait: a health check runs every 5 s and must fail six times, on a machine that does other
things."""

LOOK_EVERY_S: Final = 0.5
LASTING: Final = (
    "nats",
    "jaeger",
    "api",
    "kube-api",
    "queue",
    "scheduler",
    "binder",
    "node-agent",
    "descheduler",
    "workloads",
)
"""Services that are to run; the others end when they have done what they are for."""


class Done(NamedTuple):
    """A command that has ended."""

    code: int
    out: str
    err: str


class Container(NamedTuple):
    """One of the stack's containers, as the engine tells."""

    service: str
    id: str
    pid: int
    """On the machine of the engine; 0 if it does not run."""
    state: str
    health: str
    """Empty if it has no health check."""
    restarts: int
    details: Mapping[str, Any]

    @property
    def well(self) -> bool:
        """Whether it runs and its health check says so."""
        return self.state == "running" and self.health == "healthy"


class Stack:
    """One project of docker-compose.yml.

    `environment` goes before the lines of .env. `home` is the home directory of who types commands on this
    machine; `outside` is who they are: nobody, until `become_a_person`.
    """

    def __init__(self, engine: Engine, environment: Mapping[str, str], home: Path) -> None:
        self.home = home
        self.outside: dict[str, str] = {}
        self.told_at_up = ""
        """What the first `up` said of its progress."""
        docker = {"DOCKER_CONFIG": str(Path.home() / ".docker"), **engine.environment}
        path = f"{Path(sys.executable).parent}:{docker['PATH']}"
        self._environment = {
            **docker, "NO_COLOR": "1", "COLUMNS": "200", **environment, "PATH": path, "HOME": str(home)
        }  # fmt: skip

    def become_a_person(self) -> None:
        """Commands on this machine get the key that README.md says how to get."""
        copy, log_in, *_ = readme.commands(1)
        asked = f"{copy} >&2 && {log_in} && env --null"
        variables = dict(line.split("=", 1) for line in self.good(asked).split("\0") if line)
        new = {name: value for name, value in variables.items() if name not in self._environment}
        self.outside = {name: value for name, value in new.items() if name.startswith("PODYARD_")}

    @property
    def at_its_port(self) -> str:
        """What a reader whose stack has another port than the usual one types first."""
        return f"export PODYARD_NATS_SERVERS=nats://127.0.0.1:{self._environment['PODYARD_NATS_PORT']}"

    def shell(self, command: str) -> Done:
        """A command as a reader of the README types it, at the top of the repository."""
        done = subprocess.run(
            ["/bin/bash", "-c", command],
            cwd=REPOSITORY,
            env=self._environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def compose(self, *words: str) -> str:
        """`docker compose <words>`; what it printed.

        :raises AssertionError: if it failed, with what it said
        """
        return self.good(f"docker compose {shlex.join(words)}")

    def good(self, command: str) -> str:
        """A command that must succeed; what it printed.

        :raises AssertionError: with its exit code and what it and the containers said
        """
        done = self.shell(command)
        assert done.code == 0, f"$ {command}\nexit code {done.code}\n{done.out}{done.err}\n{self.logs()}"
        return done.out

    def podyard(self, *words: str, stdin: str = "") -> str:
        """`podyard <words>` on this machine, outside all containers; what it printed.

        :raises AssertionError: if it failed, with what it said
        """
        done = self.try_podyard(*words, stdin=stdin, outside=self.outside)
        assert done.code == 0, f"podyard {' '.join(words)}:\n{done.out}{done.err}"
        return done.out

    def try_podyard(self, *words: str, stdin: str = "", outside: Mapping[str, str]) -> Done:
        """The same, whatever becomes of it, as somebody else."""
        environment = {
            **self._environment,
            **outside,
            "PODYARD_STATE_DIR": "/nonexistent",
            "PODYARD_NATS_SERVERS": f"nats://127.0.0.1:{self._environment['PODYARD_NATS_PORT']}",
            "PODYARD_JAEGER_URL": f"http://127.0.0.1:{self._environment['PODYARD_JAEGER_PORT']}",
        }
        done = subprocess.run(
            [sys.executable, "-m", "podyard.cli", *words],
            env=environment,
            input=stdin,
            capture_output=True,
            text=True,
            check=False,
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def containers(self) -> list[Container]:
        """All of the project, running or not."""
        ids = self.compose("ps", "--all", "--quiet").split()
        if not ids:
            return []
        done = subprocess.run(["docker", "inspect", *ids], env=self._environment, capture_output=True, check=False)
        return [_container(found) for found in json.loads(done.stdout)]

    def container(self, service: str) -> Container:
        """The one of a service.

        :raises AssertionError: if there is none
        """
        found = [one for one in self.containers() if one.service == service]
        assert found, f"there is no container of {service}"
        return found[0]

    def crash(self, service: str) -> Container:
        """End a container's process as a crash does; the engine takes `docker kill` for a wish and would not
        start it again.

        :return: the container as it was before
        """
        before = self.container(service)
        assert before.pid > 0, before
        os.kill(before.pid, signal.SIGKILL)
        return before

    def crash_and_wait(self, service: str) -> None:
        """The same, and wait until the engine has brought it back and everything is healthy."""
        before = self.crash(service)

        def back() -> bool:
            now = self.container(service)
            return now.well and now.restarts > before.restarts

        self.until(f"{service} back and healthy", back)
        self.until("all healthy", self.all_well)

    def phase(self, pod: str) -> str:
        """What the agent says of a pod; empty if nothing yet. People read mirrors, which may be a moment
        behind, or without a leader while the cluster looks for one."""
        asked = self.try_podyard("get", "pod", pod, "-o", "json", outside=self.outside)
        if "not found" in asked.err or "no answer within" in asked.err:
            return ""
        assert asked.code == 0, asked.err
        return json.loads(asked.out).get("status", {}).get("phase", "")

    def until(self, what: str, question: Callable[[], T | None], within_s: float = WITHIN_S) -> T:
        """The first answer that is not empty.

        :raises AssertionError: if there is none in time, with the state and logs of all containers
        """
        deadline = time.monotonic() + within_s
        while not (answer := question()):
            assert time.monotonic() < deadline, f"not within {within_s:.0f} s: {what}\n{self.state()}\n{self.logs()}"
            time.sleep(LOOK_EVERY_S)
        return answer

    def all_well(self) -> bool:
        """Whether everything that is to run does, and is healthy."""
        found = self.containers()
        lasting = [one for one in found if one.details["HostConfig"]["RestartPolicy"]["Name"] not in ("", "no")]
        return {one.service for one in found} >= set(LASTING) and all(one.well for one in lasting)

    def state(self) -> str:
        """A line for each container."""
        return "\n".join(
            f"{one.service}: {one.state} {one.health}, restarts {one.restarts}" for one in self.containers()
        )

    def logs(self) -> str:
        """The end of what the containers said."""
        return self.shell("docker compose logs --no-color --tail 15").out[-8000:]


def _container(found: dict[str, Any]) -> Container:
    state = found["State"]
    return Container(
        service=found["Config"]["Labels"]["com.docker.compose.service"],
        id=found["Id"],
        pid=state["Pid"],
        state=state["Status"],
        health=state.get("Health", {}).get("Status", ""),
        restarts=found["RestartCount"],
        details=found,
    )
