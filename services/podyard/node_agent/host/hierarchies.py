"""Where the cgroups of a host are, in version 1 and 2 of the kernel's interface.

A cgroup is named by its path below the root of its hierarchy, as in /proc/self/cgroup: "" is the root. In
version 1 each controller has a hierarchy of its own, and the same path is made in each.
"""

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Literal, NamedTuple

from podyard.node_agent.host import files
from podyard.node_agent.host.errors import HostError

ROOT: Final = Path("/sys/fs/cgroup")

MEMORY: Final = "memory"
CPU: Final = "cpu"
ACCOUNTING: Final = "cpuacct"
"""Version 1's own controller for what CPUs did; in version 2 each cgroup counts it."""
PIDS: Final = "pids"

_PODS: Final = "podyard-pods"
_LAUNCHERS: Final = "podyard-launchers"

Version = Literal[1, 2]

_IN_ONE: Final = ""
"""Version 2 has one hierarchy."""
_WANTED: Final[dict[Version, tuple[str, ...]]] = {1: (MEMORY, CPU, ACCOUNTING, PIDS), 2: (MEMORY, CPU, PIDS)}
_NAME: Final = r"[A-Za-z0-9][\w.:@-]{0,254}"
_PATH: Final = re.compile(rf"/?({_NAME}(/{_NAME}){{0,15}}/?)?", re.ASCII)


class Hierarchy(NamedTuple):
    """The cgroups of a host, with the controllers that we use."""

    version: Version
    root: Path
    controllers: frozenset[str]

    def directory(self, controller: str, group: str) -> Path:
        """Where the files of a controller are for a cgroup."""
        return self.root / (_IN_ONE if self.version == 2 else controller) / group

    def directories(self, group: str) -> Iterator[Path]:
        """All directories of a cgroup: one in version 2, else one for each controller."""
        if self.version == 2:
            yield self.root / group
        else:
            yield from (self.root / one / group for one in sorted(self.controllers))

    def missing(self) -> tuple[str, ...]:
        """Controllers that we would use and the host does not have."""
        return tuple(one for one in _WANTED[self.version] if one not in self.controllers)

    def make(self, group: str) -> None:
        """Make a cgroup, and those above it, with all controllers. What is there stays.

        :raises HostError: if it cannot be made
        """
        if self.version == 2:
            self._make_with_controllers(group)
            return
        for directory in self.directories(group):
            _make(directory)
            hierarchical = directory / "memory.use_hierarchy"
            if hierarchical.exists() and files.read_number(hierarchical) == 0:
                files.write(hierarchical, "1")

    def _make_with_controllers(self, group: str) -> None:
        """Controllers reach a cgroup if each one above it hands them on."""
        at, wanted = self.root, " ".join(f"+{one}" for one in sorted(self.controllers))
        for part in Path(group).parts:
            if wanted:
                try:
                    files.write(at / "cgroup.subtree_control", wanted)
                except HostError as error:
                    raise HostError(f"{error}; a cgroup with processes of its own has no controllers below") from error
            at /= part
            _make(at)

    def remove(self, group: str) -> None:
        """Remove a cgroup and those below it. None of them has a process.

        :raises HostError: if one has, or cannot be removed
        """
        for directory in self.directories(group):
            for one in sorted(_below(directory), key=lambda path: len(path.parts), reverse=True):
                try:
                    one.rmdir()
                except FileNotFoundError:
                    continue
                except OSError as error:
                    raise HostError(f"the cgroup {one} cannot be removed: {error.strerror}") from error

    def children(self, group: str) -> set[str]:
        """The names of the cgroups directly below one; none if it is not there."""
        return {child.name for directory in self.directories(group) for child in _directories(directory)}

    def processes(self, group: str) -> set[int]:
        """The processes of a cgroup and of those below it.

        :raises HostError: if they cannot be read
        """
        found: set[int] = set()
        for directory in self.directories(group):
            for one in _below(directory):
                try:
                    text = files.read(one / "cgroup.procs")
                except files.Missing:
                    continue
                found.update(files.number(one, line) for line in text.split())
        return found


def find(root: Path = ROOT) -> Hierarchy:
    """The cgroups that are mounted at `root`. Version 1 counts where both are: it has the controllers.

    :raises HostError: if there are none
    """
    if (root / "cgroup.controllers").exists():
        listed = files.read(root / "cgroup.controllers").split()
        return Hierarchy(2, root, frozenset(one for one in _WANTED[2] if one in listed))
    found = frozenset(one for one in _WANTED[1] if (root / one / "cgroup.procs").exists())
    if not found:
        raise HostError(f"no cgroups are mounted at {root}: mount cgroup2 there, or say where they are")
    return Hierarchy(1, root, found)


def checked(group: str) -> str:
    """A cgroup's path as people give it, without slashes around it.

    :raises HostError: if it is none
    """
    if _PATH.fullmatch(group) is None:
        raise HostError(
            f"{group!r} is no path of a cgroup: expected names with slashes between, such as /tests/leak, below "
            "the root of the hierarchy, without /sys/fs/cgroup and the controller"
        )
    return group.strip("/")


def of_pods(node: str) -> str:
    """The cgroup that has the pods of a node."""
    return _below_node(node, _PODS)


def of_launchers(node: str) -> str:
    """The cgroup that has the processes that stay with containers."""
    return _below_node(node, _LAUNCHERS)


def _below_node(node: str, name: str) -> str:
    return f"{node}/{name}" if node else name


def _make(directory: Path) -> None:
    try:
        directory.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise HostError(f"the cgroup {directory} cannot be made: {error.strerror}") from error


def _directories(directory: Path) -> Iterable[Path]:
    try:
        with os.scandir(directory) as entries:
            return [Path(entry.path) for entry in entries if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return ()


def _below(directory: Path) -> Iterator[Path]:
    """A directory, if it is there, and all below it."""
    if directory.is_dir():
        yield directory
        for child in _directories(directory):
            yield from _below(child)
