"""File systems, and what directories take of them.

Sources: cadvisor v0.56.2, fs/vfs/stats.go, getVfsStats, and fs/fs.go, GetDirUsage.
"""

import os
import stat
from pathlib import Path
from typing import Final, NamedTuple

from podyard.node_agent.core.eviction.stats import FsUsage
from podyard.node_agent.host.errors import HostError

BLOCK: Final = 512
"""Bytes of st_blocks' unit, whatever the file system's blocks are."""
DEEPEST: Final = 128
"""Directories are counted to this depth: each level holds a file open."""


class FileSystem(NamedTuple):
    """What a file system has, and what is left for those who are not root."""

    device: int
    capacity_bytes: int
    available_bytes: int
    inodes: int
    """0: it does not count them, as btrfs."""
    inodes_free: int


def file_system(path: Path) -> FileSystem:
    """The file system that a path is on.

    :raises HostError: if it cannot be asked
    """
    try:
        found, device = os.statvfs(path), path.stat().st_dev
    except OSError as error:
        raise HostError(f"the file system of {path} cannot be read: {error.strerror}") from error
    size = found.f_frsize
    return FileSystem(device, size * found.f_blocks, size * found.f_bavail, found.f_files, found.f_ffree)


def directory(path: Path) -> FsUsage:
    """What a directory takes, itself included: each file once however many names it has, nothing on other
    file systems, nothing behind links.

    A directory below `DEEPEST` others is counted, what is in it is not. What vanishes meanwhile is left out.

    :raises HostError: if it cannot be read
    """
    try:
        top = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    except OSError as error:
        raise HostError(f"the directory {path} cannot be counted: {error.strerror}") from error
    count = _Count(top)
    try:
        count.below(top)
    except OSError as error:
        raise HostError(f"the directory {path} cannot be counted: {error.strerror}") from error
    finally:
        os.close(top)
    return FsUsage(used_bytes=count.blocks * BLOCK, inodes=count.inodes)


class _Count:
    """Of one directory. Files are opened relative to what is open: who moves directories about meanwhile does
    not lead the count elsewhere."""

    def __init__(self, top: int) -> None:
        of = os.fstat(top)
        self._device = of.st_dev
        self._linked: set[int] = set()
        self.blocks, self.inodes = of.st_blocks, 1

    def below(self, opened: int, depth: int = 1) -> None:
        with os.scandir(opened) as entries:
            for entry in entries:
                try:
                    self._add(opened, entry, depth)
                except FileNotFoundError:
                    continue

    def _add(self, opened: int, entry: os.DirEntry[str], depth: int) -> None:
        of = entry.stat(follow_symlinks=False)
        if of.st_dev != self._device:
            return
        if not stat.S_ISDIR(of.st_mode) and of.st_nlink > 1:
            if of.st_ino in self._linked:
                return
            self._linked.add(of.st_ino)
        self.blocks += of.st_blocks
        self.inodes += 1
        if stat.S_ISDIR(of.st_mode) and depth < DEEPEST:
            try:
                child = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=opened)
            except (FileNotFoundError, NotADirectoryError):
                return  # it is another one since
            try:
                self.below(child, depth + 1)
            finally:
                os.close(child)
