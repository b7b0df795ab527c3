"""The small process that stays with each container: it starts the command, keeps what it prints, and writes
down how it ended, also while no agent lives.

Run as a script by `processes`, by the same Python, without its site packages: it imports nothing but the
standard library. Its argument is a file (`Launch`), which it removes; on descriptor 3 it says in one line
whether the command runs. What happens is in `run.json` of the container's directory, in one block that is
there from the beginning, so that a full disk cannot take it. It takes 5 MB of memory (PSS), outside of the
pod's cgroup.
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import sys
import time
from collections.abc import Iterable
from typing import Any, Final, NoReturn, TypedDict

REPORT: Final = 3
"""Descriptor."""
RECORD: Final = "run.json"
RECORD_BYTES: Final = 1024
START_ERROR: Final = 128
"""Exit code of a command that could not be run. Source: containerd v2, errorStartExitCode."""
BY_SIGNAL: Final = 128
"""Added to the number of the signal that ended a process."""

_SUBREAPER: Final = 36
_NO_NEW_PRIVILEGES: Final = 38
_SPARED: Final = "-999"
"""Of oom_score_adj: who tells how a container ended goes last."""
_AT_ONCE: Final = 64
"""Processes that are opened to be killed."""
_AGAIN_S: Final = 0.01
_CHUNK: Final = 1 << 16


class Launch(TypedDict):
    """What is to be run."""

    directory: str
    """Where the record is."""
    log: str
    log_bytes: int
    """Of each of two files: what was printed last."""
    own_groups: list[str]
    """Directories of the launcher's own cgroup."""
    groups: list[str]
    """Directories of the container's cgroup."""
    boot: str
    attempt: int
    argv: list[str]
    env: dict[str, str]
    working_dir: str
    uid: int
    gid: int
    user_groups: list[int]
    may_gain: bool
    """Whether programs may have more rights than who runs them (set-user-ID)."""
    clock_ahead_s: float
    """By how much the agent's clock is ahead of the machine's monotonic one."""


class Record(TypedDict, total=False):
    """What is known of a run. Times in UTC seconds."""

    boot: str
    attempt: int
    launcher: list[int]
    """A process: its id, and when it began, in ticks since the machine did."""
    main: list[int]
    started_at: float
    ended_at: float
    code: int | None
    signal: int
    oom_killed: bool
    error: str
    """Why the command could not be run."""


# ---- cgroups -----------------------------------------------------------------------------------------------


def processes_of(groups: Iterable[str]) -> set[int]:
    """The processes of cgroups and those below them, by directory."""
    found: set[int] = set()
    for group in groups:
        for directory, _, _ in os.walk(group):
            with contextlib.suppress(OSError), open(f"{directory}/cgroup.procs", "rb") as file:
                found.update(map(int, file.read().split()))
    return found - {0}  # so the kernel calls processes of other PID namespaces


def forbid_new(groups: Iterable[str]) -> None:
    """Let their processes have no children any more, where the kernel can."""
    for group in groups:
        with contextlib.suppress(OSError):
            _write(f"{group}/pids.max", "0")


def kill_all(groups: list[str]) -> bool:
    """Kill all their processes; returns whether there were any. Some may begin meanwhile: ask again."""
    for group in groups:
        with contextlib.suppress(OSError):
            _write(f"{group}/cgroup.kill", "1")
    left = sorted(processes_of(groups))
    for at in range(0, len(left), _AT_ONCE):
        _kill(left[at : at + _AT_ONCE], groups)
    return bool(left)


def _kill(pids: list[int], groups: list[str]) -> None:
    """What is open is the same process when it is killed, whoever has its number then."""
    opened: dict[int, int] = {}
    for pid in pids:
        with contextlib.suppress(OSError):  # it has ended; or no more files may be open: the others go first
            opened[pid] = os.pidfd_open(pid)
    still = processes_of(groups)
    for pid, descriptor in opened.items():
        if pid in still:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, signal.SIGKILL)
        os.close(descriptor)


def oom_kills(groups: Iterable[str]) -> int:
    """How many of their processes the kernel killed for memory."""
    for group in groups:
        for name in ("memory.oom_control", "memory.events"):
            with contextlib.suppress(OSError), open(f"{group}/{name}", encoding="ascii") as file:
                for line in file:
                    word, _, amount = line.partition(" ")
                    if word == "oom_kill":
                        return int(amount)
    return 0


def began(pid: int) -> int:
    """When a process began, in ticks since the machine did.

    :raises ProcessLookupError: if there is none
    """
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return int(file.read().rpartition(b")")[2].split()[19])
    except FileNotFoundError as error:
        raise ProcessLookupError(pid) from error


def _write(path: str, text: str) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(descriptor, text.encode())
    finally:
        os.close(descriptor)


def _join(groups: Iterable[str]) -> None:
    for group in groups:
        _write(f"{group}/cgroup.procs", "0")


# ---- the record --------------------------------------------------------------------------------------------


def write_record(descriptor: int, record: Record) -> None:
    """In place, as long as it always was."""
    error = record.get("error", "")
    text = json.dumps(record).encode()
    while len(text) >= RECORD_BYTES and error:
        error = error[: len(error) // 2]
        text = json.dumps({**record, "error": error}).encode()
    os.pwrite(descriptor, text.ljust(RECORD_BYTES - 1) + b"\n", 0)


class _Log:
    """The last that was printed. On a full disk what is printed is lost, and that is said."""

    def __init__(self, path: str, most: int) -> None:
        self._path = path
        self._most = most
        self._size = self._lost = 0
        self._file: int | None = None

    def write(self, data: bytes) -> None:
        try:
            if self._lost:
                self._put(b"\n[%d bytes could not be stored]\n" % self._lost)
                self._lost = 0
            for at in range(0, len(data), self._most):
                self._put(data[at : at + self._most])
        except OSError:
            self._lost += len(data)

    def _put(self, data: bytes) -> None:
        if self._size + len(data) > self._most and self._file is not None:
            os.close(self._file)
            self._file, self._size = None, 0
            os.replace(self._path, f"{self._path}.1")
        if self._file is None:
            self._file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        rest = memoryview(data)
        while rest:
            written = os.write(self._file, rest)
            self._size += written
            rest = rest[written:]


# ---- the command -------------------------------------------------------------------------------------------


class _NotRun(Exception):
    """Why the command could not be run."""


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def _become(launch: Launch, printed: int, score: str) -> NoReturn:
    """Be the container: in the child, until it is the command.

    :raises _NotRun: if it cannot be
    """
    _doing("its cgroup cannot be joined", _join, launch["groups"])
    os.setsid()
    with open("/dev/null", "rb") as nothing:
        os.dup2(nothing.fileno(), 0)
    os.dup2(printed, 1)
    os.dup2(printed, 2)
    with contextlib.suppress(OSError):
        _write("/proc/self/oom_score_adj", score)
    for one in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
        signal.signal(one, signal.SIG_DFL)
    os.umask(0o022)
    uid, gid = launch["uid"], launch["gid"]
    if not launch["may_gain"]:
        _doing("set-user-ID programs cannot be forbidden", _prctl, _NO_NEW_PRIVILEGES, 1)
    _doing("its groups cannot be had", os.setgroups, launch["user_groups"])
    _doing(f"it cannot have the group {gid}", os.setresgid, gid, gid, gid)
    _doing(f"it cannot be the user {uid}", os.setresuid, uid, uid, uid)
    where, argv, env = launch["working_dir"], launch["argv"], launch["env"]
    _doing(f"its workingDir {where} cannot be entered by user {uid}", os.chdir, where)
    _doing(
        f"its command {argv[0]} cannot be run by user {uid} (PATH={env.get('PATH', '')})",
        os.execvpe,
        argv[0],
        argv,
        env,
    )
    raise AssertionError("it is another program")


def _doing(what: str, do: Any, *arguments: Any) -> None:
    try:
        do(*arguments)
    except (OSError, ValueError) as error:
        raise _NotRun(f"{what}: {getattr(error, 'strerror', None) or error}") from error


def _start(launch: Launch, printed: int, score: str) -> int:
    """The process that is the command now.

    :raises _NotRun: if it could not be run
    """
    told, tell = os.pipe()
    pid = os.fork()
    if not pid:
        try:
            _become(launch, printed, score)
        except BaseException as error:  # the child must end here, whatever it is
            os.write(tell, str(error).encode()[:RECORD_BYTES])
        os._exit(127)
    os.close(tell)
    with open(told, "rb") as pipe:
        why = pipe.read()
    if why:
        os.waitpid(pid, 0)
        raise _NotRun(why.decode("utf-8", "replace"))
    return pid


def _stay(pid: int, printed: int, log: _Log) -> int:
    """Until the command has ended; its status. Reaps what it leaves behind."""
    os.set_blocking(printed, False)
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, _heard)
    poll = select.poll()
    poll.register(printed, select.POLLIN)
    poll.register(woken, select.POLLIN)
    os.write(wake, b"\0")  # it may have ended before anybody listened
    while True:
        for descriptor, _ in poll.poll():
            if descriptor == printed and not _copy(printed, log):
                poll.unregister(printed)
            if descriptor == woken:
                os.read(woken, _CHUNK)
                status = _reap(pid)
                if status is not None:
                    return status


def _heard(number: int, frame: object) -> None:
    """Nothing is done here: the signal's number has been written to the pipe."""


def _copy(printed: int, log: _Log) -> bool:
    """Copy what there is; whether there may be more later."""
    try:
        data = os.read(printed, _CHUNK)
    except BlockingIOError:
        return True
    if data:
        log.write(data)
    return bool(data)


def _reap(pid: int) -> int | None:
    """All that have ended; the status of `pid`, if it is one of them."""
    found: int | None = None
    with contextlib.suppress(ChildProcessError):
        while True:
            ended, status = os.waitpid(-1, os.WNOHANG)
            if not ended:
                break
            if ended == pid:
                found = status
    return found


def _end(groups: list[str], printed: int, log: _Log) -> None:
    """What the command left behind ends with it, as with the first process of a PID namespace."""
    if kill_all(groups):
        forbid_new(groups)
        while kill_all(groups):
            _reap(0)
            time.sleep(_AGAIN_S)
    _reap(0)
    with contextlib.suppress(BlockingIOError):
        while data := os.read(printed, _CHUNK):
            log.write(data)


def _run(launch: Launch) -> None:
    file = os.open(f"{launch['directory']}/{RECORD}", os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    record: Record = {
        "boot": launch["boot"],
        "attempt": launch["attempt"],
        "launcher": [os.getpid(), began(os.getpid())],
    }
    write_record(file, record)
    _join(launch["own_groups"])
    _prctl(_SUBREAPER, 1)
    with open("/proc/self/oom_score_adj", encoding="ascii") as scores:
        score = scores.read().strip()
    with contextlib.suppress(PermissionError):  # a container may not; then it stays as it is
        _write("/proc/self/oom_score_adj", _SPARED)
    for one in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(one, signal.SIG_IGN)
    printed, print_ = os.pipe()
    log = _Log(launch["log"], launch["log_bytes"])
    begun = time.monotonic() + launch["clock_ahead_s"]
    try:
        pid = _start(launch, print_, score)
    except _NotRun as error:
        record.update({"started_at": begun, "ended_at": begun, "code": START_ERROR, "signal": 0, "error": str(error)})
        write_record(file, record)
        os.write(REPORT, json.dumps({"error": str(error)}).encode() + b"\n")
        return
    os.close(print_)
    record.update({"main": [pid, began(pid)], "started_at": begun})
    write_record(file, record)
    os.write(REPORT, json.dumps({"pid": pid, "at": begun}).encode() + b"\n")
    status = _stay(pid, printed, log)
    _end(launch["groups"], printed, log)
    by = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
    record.update(
        {
            "ended_at": time.monotonic() + launch["clock_ahead_s"],
            "code": BY_SIGNAL + by if by else os.WEXITSTATUS(status),
            "signal": by,
            "oom_killed": oom_kills(launch["groups"]) > 0,
        }
    )
    write_record(file, record)


def main(path: str) -> None:
    """Run what the file at `path` says."""
    os.setsid()
    os.set_inheritable(REPORT, False)
    os.closerange(REPORT + 1, 1 << 16)
    try:
        with open(path, encoding="utf-8") as file:
            launch: Launch = json.load(file)
        os.unlink(path)
        _run(launch)
    except Exception as error:
        with contextlib.suppress(OSError):
            os.write(REPORT, json.dumps({"error": f"its launcher failed: {error!r}"}).encode() + b"\n")
        raise


if __name__ == "__main__":
    main(sys.argv[1])
