"""What the runtime is told, and says, of pods and containers."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

import msgspec

NOBODY: Final = 65534


class PodId(msgspec.Struct, frozen=True, kw_only=True):
    """Which pod."""

    uid: str
    namespace: str
    name: str


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """What a pod or a container may use; None: as much as there is."""

    memory_bytes: int | None = None
    cpu_request_millis: int = 0
    """Its share where CPUs are short."""
    cpu_limit_millis: int | None = None
    processes: int | None = None


class Command(msgspec.Struct, frozen=True, kw_only=True):
    """One run of a container."""

    container: str
    argv: tuple[str, ...]
    """Not empty; the first is looked for in the PATH of `env`."""
    env: dict[str, str] = {}
    """All of its environment, but for PATH, HOME, TMPDIR and HOSTNAME, which have defaults."""
    working_dir: str = ""
    """Empty: a directory of its own, which is also HOME and TMPDIR."""
    uid: int = NOBODY
    gid: int = NOBODY
    groups: tuple[int, ...] = ()
    limits: Limits = Limits()
    attempt: int = 0
    """How often it was started before."""


class Started(NamedTuple):
    """A container runs."""

    pod_uid: str
    container: str
    attempt: int
    pid: int
    at: float
    """UTC seconds."""


class Ended(NamedTuple):
    """A container has ended, and all of its processes."""

    pod_uid: str
    container: str
    attempt: int
    code: int | None
    """128 and the signal for what a signal ended; None: nobody saw it end."""
    signal: int
    """0: none."""
    oom_killed: bool
    """The kernel killed one of its processes for memory."""
    started_at: float
    ended_at: float
    """UTC seconds. If nobody saw it end: when that was found out."""

    @property
    def reason(self) -> str:
        """In the words of a container's status."""
        if self.code is None:
            return "ContainerStatusUnknown"
        if not self.code:
            return "Completed"
        return "OOMKilled" if self.oom_killed else "Error"


class Found(NamedTuple):
    """A pod that an earlier agent made, and the last run of each of its containers."""

    pod: PodId
    containers: tuple[Started | Ended, ...]


class ContainerPlace(NamedTuple):
    """Where what a container uses is seen."""

    group: str
    files: Path
    """Its own directory."""
    logs: Path


class PodPlace(NamedTuple):
    """Where what a pod uses is seen."""

    group: str
    directory: Path
    """With all of its containers' directories."""
    containers: Mapping[str, ContainerPlace]
