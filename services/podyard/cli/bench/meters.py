"""What a run costs: CPU seconds of processes, and messages through the NATS server."""

import urllib.request
from collections.abc import Mapping
from typing import Final

import msgspec
import psutil

VARZ_TIMEOUT_S: Final = 5.0


class ServerCounts(msgspec.Struct, frozen=True):
    """Messages since the server started: `in_msgs` it received, `out_msgs` it delivered (replies and
    acknowledgements included)."""

    in_msgs: int = 0
    out_msgs: int = 0


def server_counts(monitor_port: int) -> ServerCounts:
    """The server's message counts, from its monitoring endpoint."""
    url = f"http://127.0.0.1:{monitor_port}/varz"
    with urllib.request.urlopen(url, timeout=VARZ_TIMEOUT_S) as answer:
        return msgspec.json.decode(answer.read(), type=ServerCounts)


def cpu_seconds(pids: Mapping[str, int]) -> dict[str, float]:
    """User and system CPU seconds that each process has used, by name."""
    used: dict[str, float] = {}
    for name, pid in pids.items():
        times = psutil.Process(pid).cpu_times()
        used[name] = times.user + times.system
    return used


def memory_mib(pids: Mapping[str, int]) -> dict[str, float]:
    """Resident memory of each process in MiB, by name."""
    return {name: psutil.Process(pid).memory_info().rss / 1024**2 for name, pid in pids.items()}


def difference(after: Mapping[str, float], before: Mapping[str, float]) -> dict[str, float]:
    """What was used between two readings, by name."""
    return {name: used - before.get(name, 0.0) for name, used in after.items()}
