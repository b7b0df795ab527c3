"""What the whole machine has: memory, and processes.

Source: cadvisor v0.56.2, machine/machine.go, GetMachineMemoryCapacity; kubernetes v1.36.2,
pkg/kubelet/stats/pidlimit/pidlimit_linux.go, Stats.
"""

import re
from pathlib import Path
from typing import Final

from podyard.node_agent.host import files
from podyard.node_agent.host.errors import HostError

PROC: Final = Path("/proc")
_TOTAL: Final = re.compile(r"^MemTotal:\s*(\d+) kB$", re.MULTILINE | re.ASCII)
_TASKS: Final = re.compile(r"\S+ \S+ \S+ \d+/(\d+) \d+\s*", re.ASCII)


def memory_capacity(proc: Path) -> int:
    """Bytes.

    :raises HostError: if it cannot be read
    """
    path = proc / "meminfo"
    found = _TOTAL.search(files.read(path))
    if found is None:
        raise HostError(f"{path} has no line MemTotal in kB")
    return int(found[1]) * 1024


def most_tasks(proc: Path) -> int:
    """How many tasks there may be: the smaller limit of the kernel.

    :raises HostError: if neither can be read
    """
    found: list[int] = []
    failures: list[str] = []
    for name in ("pid_max", "threads-max"):
        path = proc / "sys/kernel" / name
        try:
            found.append(files.number(path, files.read(path).strip()))
        except HostError as error:
            failures.append(str(error))
    if not found:
        raise HostError(", and ".join(failures))
    return min(found)


def tasks(proc: Path) -> int:
    """How many tasks there are.

    :raises HostError: if it cannot be read
    """
    path = proc / "loadavg"
    text = files.read(path)
    found = _TASKS.fullmatch(text)
    if found is None:
        raise HostError(f"{path} says {text[:80]!r}: expected five words, the fourth RUNNING/ALL")
    return int(found[1])


def boot(proc: Path) -> str:
    """Names the time since the machine was started.

    :raises HostError: if it cannot be read
    """
    return files.read(proc / "sys/kernel/random/boot_id").strip()
