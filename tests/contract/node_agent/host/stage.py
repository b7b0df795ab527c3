"""A real host: cgroups of its own, made and removed again. Needs root."""

import os
import shutil
import tempfile
import time
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import pytest

from podyard.node_agent.host import hierarchies, launcher
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.hierarchies import Hierarchy
from podyard.node_agent.host.processes import Processes
from podyard.node_agent.host.records import Command, Ended, Limits, PodId, Started
from tests.support.waiting import eventually

POD = PodId(uid="0b5e-u1", namespace="default", name="web")
UNIFIED = Path("/sys/fs/cgroup/unified")
"""Version 2 where version 1 has the controllers: cgroups without limits, which can be killed."""


def hierarchy(version: int = 1) -> Hierarchy:
    """Of this machine, or the test is skipped."""
    if os.geteuid():
        pytest.skip("making cgroups and becoming other users needs root")
    if version == 2 and (UNIFIED / "cgroup.procs").exists():
        found = Hierarchy(2, UNIFIED, frozenset())
    else:
        try:
            found = hierarchies.find()
        except HostError as error:
            pytest.skip(str(error))
    if found.version != version:
        pytest.skip(f"needs cgroups of version {version}; those at {found.root} are of version {found.version}")
    for directory in found.directories(""):
        if not os.access(directory, os.W_OK):
            pytest.skip(f"making cgroups needs to write to {directory}, which is mounted read-only here")
    return found


class Host:
    """A cgroup for a node, a directory for the runtime's state, and what was told."""

    def __init__(self, of: Hierarchy) -> None:
        self.hierarchy = of
        self.node = f"podyard-test-{uuid.uuid4().hex[:8]}"
        self.state = Path(tempfile.mkdtemp(prefix="podyard-test-"))
        """Not pytest's: no other user may enter that."""
        self.state.chmod(0o711)
        self.ended: list[Ended] = []
        self.processes: Processes

    def alive(self) -> set[int]:
        """All processes, launchers included."""
        return launcher.processes_of(map(str, self.hierarchy.directories(self.node)))

    def write(self, controller: str, name: str, text: str) -> None:
        (self.hierarchy.directory(controller, self.node) / name).write_text(text)

    @asynccontextmanager
    async def runtime(self, *, allow_root: bool = False, log_bytes: int = 1 << 20) -> AsyncIterator[Processes]:
        """One agent's."""
        made = Processes(
            self.hierarchy,
            self.node,
            self.state,
            tell=self.ended.append,
            now=time.time,
            allow_root=allow_root,
            log_bytes=log_bytes,
        )
        async with made as self.processes:
            yield self.processes

    async def run(self, script: str, container: str = "main", **options: object) -> Started:
        """A container of the one pod that runs a script of the shell."""
        await self.processes.make(POD, Limits())
        argv = ("/bin/sh", "-c", script)
        return await self.processes.start(POD.uid, Command(container=container, argv=argv, **options))  # type: ignore[arg-type]

    async def end(self, container: str = "main") -> Ended:
        """The last end of a container, once it was told."""
        return await eventually(
            f"the end of {container}",
            lambda: next((one for one in reversed(self.ended) if one.container == container), None),
        )

    async def printed(self, text: str, container: str = "main", attempt: int = 0) -> str:
        """All that a container printed, once this is in it."""
        path = self.processes.log(POD.uid, container, attempt)
        return await eventually(
            f"{container} prints {text!r}",
            lambda: found if path.exists() and text in (found := path.read_text()) else None,
        )

    async def clean(self) -> None:
        """Nothing is left of it."""
        groups = [str(one) for one in self.hierarchy.directories(self.node)]

        def gone() -> bool:
            with suppress(HostError):
                self.hierarchy.remove(self.node)
                return True
            return False

        await eventually("its processes have ended", lambda: not launcher.kill_all(groups))
        await eventually("its cgroups are removed", gone)
        shutil.rmtree(self.state, ignore_errors=True)


def busy(count: int) -> Iterator[str]:
    """Children of a shell that sleep for long."""
    return (f"sleep {3600 + number} &" for number in range(count))
