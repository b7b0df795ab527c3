"""Where the runtime keeps what it knows of pods, and what containers leave.

    STATE/lock                                       held by the agent that runs containers from here
    STATE/pods/UID/pod.json                          which pod it is
    STATE/pods/UID/containers/NAME/run.json          the last run, written by its launcher
    STATE/pods/UID/containers/NAME/files/            the container's own: working directory, HOME, TMPDIR
    STATE/pods/UID/containers/NAME/logs/ATTEMPT.log  what it printed last, and ATTEMPT.log.1 before that

Others than root may enter directories, see nothing in them, and own `files` alone.
"""

import fcntl
import json
import os
import re
import time
import uuid
from pathlib import Path
from typing import Final

import msgspec

from podyard.node_agent.host import launcher
from podyard.node_agent.host.errors import HostError
from podyard.node_agent.host.launcher import Launch, Record
from podyard.node_agent.host.records import PodId

ENTERED: Final = 0o711
OWN: Final = 0o700
_OTHERS_ENTER: Final = 0o001
_LAUNCH: Final = "launch.json"
_UID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
_CONTAINER: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?", re.ASCII)
_DEEP: Final = 100
"""Each level holds a file open."""
_TORN_S: Final = 0.01
_TORN_TRIES: Final = 10


def checked_uid(uid: str) -> str:
    """:raises HostError: if it cannot name a directory"""
    if _UID.fullmatch(uid) is None:
        raise HostError(f"{uid!r} is no uid of a pod: expected letters, digits, '-', '_' and '.', at most 128")
    return uid


def checked_container(name: str) -> str:
    """:raises HostError: if it is no name of a container"""
    if _CONTAINER.fullmatch(name) is None:
        raise HostError(f"{name!r} is no name of a container: expected a DNS label, at most 63 characters")
    return name


class Store:
    """One directory of one agent."""

    def __init__(self, state: Path) -> None:
        """:raises HostError: if it cannot be used, or if another agent uses it"""
        self._pods = state / "pods"
        try:
            state.mkdir(parents=True, exist_ok=True, mode=ENTERED)
            state.chmod(ENTERED)
            _make(self._pods, ENTERED)
            self._lock = os.open(state / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise HostError(f"the directory {state} cannot be used: {error.strerror}") from error
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            os.close(self._lock)
            raise HostError(f"another agent runs containers from {state}: give each its own") from error
        closed = next((one for one in state.resolve().parents if not one.stat().st_mode & _OTHERS_ENTER), None)
        if closed is not None:
            os.close(self._lock)
            raise HostError(
                f"containers run as users that may not enter {closed}, and so not {state}: let them (chmod o+x), or "
                "keep the state elsewhere"
            )

    def close(self) -> None:
        """Another agent may use it."""
        os.close(self._lock)

    # ---- pods ----------------------------------------------------------------------------------------------

    def pod(self, uid: str) -> Path:
        """Its directory."""
        return self._pods / uid

    def uids(self) -> list[str]:
        """Of all pods."""
        return sorted(path.name for path in self._pods.iterdir())

    def make_pod(self, pod: PodId) -> None:
        """:raises HostError: if the disk does not take it"""
        directory = self.pod(pod.uid)
        if self.read_pod(pod.uid) == pod:  # so that a full disk is in nobody's way
            return
        try:
            _make(directory, ENTERED)
            _make(directory / "containers", ENTERED)
            new = directory / "pod.json.new"
            new.write_bytes(msgspec.json.encode(pod))
            new.replace(directory / "pod.json")
        except OSError as error:
            raise HostError(f"the directory {directory} cannot be made: {error.strerror}") from error

    def read_pod(self, uid: str) -> PodId | None:
        """None: it says nothing that can be read."""
        try:
            found = msgspec.json.decode((self.pod(uid) / "pod.json").read_bytes(), type=PodId)
        except (OSError, msgspec.DecodeError):
            return None
        return found if found.uid == uid else None

    def remove_pod(self, uid: str) -> None:
        """:raises HostError: if it cannot be removed"""
        _remove(self.pod(uid))

    # ---- containers ----------------------------------------------------------------------------------------

    def containers(self, uid: str) -> list[str]:
        """The names of those that were ever started."""
        directory = self.pod(uid) / "containers"
        return sorted(one.name for one in directory.iterdir()) if directory.is_dir() else []

    def container(self, uid: str, name: str) -> Path:
        """Its directory."""
        return self.pod(uid) / "containers" / name

    def files(self, uid: str, name: str) -> Path:
        """What is the container's own."""
        return self.container(uid, name) / "files"

    def logs(self, uid: str, name: str) -> Path:
        """What it printed."""
        return self.container(uid, name) / "logs"

    def log(self, uid: str, name: str, attempt: int) -> Path:
        """What it printed last, in one run."""
        return self.logs(uid, name) / f"{attempt}.log"

    def make_container(self, uid: str, name: str, attempt: int, owner: tuple[int, int]) -> None:
        """Its directories, empty, but for what the run before this one printed.

        :raises HostError: if the disk does not take it
        """
        directory, files, logs = self.container(uid, name), self.files(uid, name), self.logs(uid, name)
        kept = {f"{one}.log{end}" for one in (attempt, attempt - 1) for end in ("", ".1")}
        try:
            _make(directory, ENTERED)
            (directory / launcher.RECORD).unlink(missing_ok=True)
            if files.exists():
                _remove(files)
            _make(files, OWN)
            os.chown(files, *owner)
            _make(logs, OWN)
            for old in logs.iterdir():
                if old.name not in kept:
                    old.unlink()
        except OSError as error:
            raise HostError(f"the directory {directory} cannot be made: {error.strerror}") from error

    def launch(self, uid: str, name: str) -> Path:
        """What its launcher is told."""
        return self.container(uid, name) / _LAUNCH

    def write_launch(self, uid: str, name: str, launch: Launch) -> None:
        """The launcher removes it: an environment may hold what is secret.

        :raises HostError: if the disk does not take it
        """
        path = self.launch(uid, name)
        try:
            path.unlink(missing_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "w") as file:
                json.dump(launch, file)
        except OSError as error:
            raise HostError(f"{path} cannot be written: {error.strerror}") from error

    def record(self, uid: str, name: str) -> Record | None:
        """Of the last run; None: there was none, or it says nothing that can be read.

        A launcher may be writing it: then it is read again.
        """
        path = self.container(uid, name) / launcher.RECORD
        for _ in range(_TORN_TRIES):
            try:
                text = path.read_bytes()
            except OSError:
                return None
            try:
                return msgspec.json.decode(text, type=Record) if text.strip() else None
            except msgspec.DecodeError:
                time.sleep(_TORN_S)
        return None

    def write_record(self, uid: str, name: str, record: Record) -> None:
        """In the place of a launcher that is no more.

        :raises HostError: if the disk does not take it
        """
        path = self.container(uid, name) / launcher.RECORD
        try:
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                launcher.write_record(descriptor, record)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise HostError(f"{path} cannot be written: {error.strerror}") from error


def _make(directory: Path, mode: int) -> None:
    directory.mkdir(exist_ok=True)
    directory.chmod(mode)


def _remove(directory: Path) -> None:
    """However deep it is: Python's own way ends at a thousand levels."""
    try:
        top = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            while os.listdir(top):
                _empty(top, top, 0)
        finally:
            os.close(top)
        directory.rmdir()
    except OSError as error:
        raise HostError(f"{directory} cannot be removed: {error.strerror} ({error.filename})") from error


def _empty(opened: int, top: int, depth: int) -> None:
    """Remove what is in a directory; what is too deep in it is moved to the top."""
    with os.scandir(opened) as entries:
        listed = [(one.name, one.is_dir(follow_symlinks=False)) for one in entries]
    for name, is_directory in listed:
        if not is_directory:
            os.unlink(name, dir_fd=opened)
        elif depth == _DEEP:
            os.rename(name, uuid.uuid4().hex, src_dir_fd=opened, dst_dir_fd=top)
        else:
            child = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=opened)
            try:
                _empty(child, top, depth + 1)
            finally:
                os.close(child)
            os.rmdir(name, dir_fd=opened)
