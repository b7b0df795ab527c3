"""Starts launchers, and tells them what to run.

Source of reasons and codes: containerd v2, internal/cri/server/container_start.go.
"""

import json
import os
import sys
import time
from collections.abc import Callable
from typing import Final

from podyard.node_agent.host import launcher, limits
from podyard.node_agent.host.errors import HostError, NotStarted
from podyard.node_agent.host.hierarchies import Hierarchy
from podyard.node_agent.host.launcher import Launch
from podyard.node_agent.host.records import Command
from podyard.node_agent.host.store import Store

WITHIN_S: Final = 10.0
"""Seconds until a launcher has said something."""
_PATH: Final = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Starting:
    """Of one host."""

    def __init__(
        self,
        hierarchy: Hierarchy,
        store: Store,
        launchers: str,
        boot: str,
        now: Callable[[], float],
        *,
        allow_root: bool,
        log_bytes: int,
    ) -> None:
        """
        :param launchers: their cgroup
        :param boot: names the time since the machine was started
        :param log_bytes: of each of two files for each run
        """
        self._hierarchy = hierarchy
        self._store = store
        self._launchers = launchers
        self._boot = boot
        self._now = now
        self._allow_root = allow_root
        self._log_bytes = log_bytes

    def check(self, command: Command) -> None:
        """:raises NotStarted: if it may not be tried"""
        if not command.argv or not all("\0" not in one for one in (*command.argv, command.working_dir)):
            raise NotStarted(f"container {command.container} has no command, or one with a NUL in it")
        if self._allow_root:
            return
        if command.uid == 0:
            raise NotStarted(f"container {command.container} may not run as root: allow_root is off")
        if 0 in (command.gid, *command.groups):
            raise NotStarted(f"container {command.container} may not have the group of root: allow_root is off")

    def prepare(self, uid: str, group: str, command: Command) -> None:
        """Make its cgroup anew, and its directories, and say what its launcher has to do.

        :raises HostError: if that cannot be done
        """
        name = command.container
        self._hierarchy.remove(group)
        self._hierarchy.make(group)
        limits.put(self._hierarchy, group, command.limits)
        self._store.make_container(uid, name, command.attempt, (command.uid, command.gid))
        own = str(self._store.files(uid, name))
        pod = self._store.read_pod(uid)
        env = {"PATH": _PATH, "HOME": own, "TMPDIR": own, "HOSTNAME": pod.name if pod is not None else uid}
        self._store.write_launch(
            uid,
            name,
            Launch(
                directory=str(self._store.container(uid, name)),
                log=str(self._store.log(uid, name, command.attempt)),
                log_bytes=self._log_bytes,
                own_groups=self._directories(self._launchers),
                groups=self._directories(group),
                boot=self._boot,
                attempt=command.attempt,
                argv=list(command.argv),
                env={**env, **command.env},
                working_dir=command.working_dir or own,
                uid=command.uid,
                gid=command.gid,
                user_groups=list(command.groups),
                may_gain=self._allow_root,
                clock_ahead_s=self._now() - time.monotonic(),
            ),
        )

    def spawn(self, uid: str, name: str) -> tuple[int, int]:
        """Start its launcher: descriptors of what it says, and of itself.

        :raises HostError: if there can be none
        """
        argv = [sys.executable, "-I", "-S", launcher.__file__, str(self._store.launch(uid, name))]
        nothing = [(os.POSIX_SPAWN_OPEN, one, "/dev/null", os.O_RDWR, 0) for one in range(3)]
        opened: list[int] = []
        try:
            opened += os.pipe()
            told, tell = opened
            pid = os.posix_spawn(
                sys.executable, argv, {}, file_actions=[*nothing, (os.POSIX_SPAWN_DUP2, tell, launcher.REPORT)]
            )
            watched = os.pidfd_open(pid)
        except OSError as error:
            for one in opened:
                os.close(one)
            raise HostError(f"no launcher can be started for {name} of pod {uid}: {error.strerror}") from error
        os.close(tell)
        return told, watched

    def _directories(self, group: str) -> list[str]:
        return [str(one) for one in self._hierarchy.directories(group)]


def said(told: int) -> tuple[int, float] | str:
    """The command's process and when it began, or why there is none."""
    os.set_blocking(told, False)
    try:
        text = os.read(told, 1 << 14)
    except BlockingIOError:
        return f"its launcher said nothing for {WITHIN_S:g} s"
    if not text:
        return "its launcher ended without a word"
    try:
        found: dict[str, int | float | str] = json.loads(text)
    except ValueError:
        return f"its launcher said {text[:200]!r}"
    return str(found["error"]) if "error" in found else (int(found["pid"]), float(found["at"]))
