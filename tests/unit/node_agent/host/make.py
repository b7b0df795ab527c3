"""Recorded hosts: the kernel's files, unpacked below a directory."""

import json
from pathlib import Path

from podyard.node_agent.host import hierarchies
from podyard.node_agent.host.hierarchies import Hierarchy
from podyard.node_agent.host.records import ContainerPlace, PodPlace

RECORDED = Path(__file__).parent / "recorded"
NODE = "leak"
"""A cgroup with a limit of 256 MiB and 100 processes. Below it pods may use 200 MiB: one runs, with a Python
that holds 30 MiB and has written a file of 8 MiB, and its child."""
POD = "podyard-pods/pod-u1"


class Host:
    """One host. Version 1 was recorded on a machine; version 2 was written by hand from the same amounts, as
    the kernel's Documentation/admin-guide/cgroup-v2.rst shows its files."""

    def __init__(self, directory: Path, version: int) -> None:
        files: dict[str, str] = json.loads((RECORDED / f"v{version}.json").read_text(encoding="utf-8"))
        for name, text in files.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        self.version = version
        self.root, self.proc = directory / "cgroup", directory / "proc"
        self.disk = directory / "disk"
        self.disk.mkdir()

    def hierarchy(self) -> Hierarchy:
        found = hierarchies.find(self.root)
        assert found.version == self.version
        return found

    def file(self, controller: str, name: str, group: str = NODE) -> Path:
        return self.hierarchy().directory(controller, group) / name

    def memory(self, group: str = NODE) -> Path:
        """Where it says how much memory a cgroup uses."""
        return self.file("memory", "memory.usage_in_bytes" if self.version == 1 else "memory.current", group)

    def limit(self, group: str = NODE) -> Path:
        return self.file("memory", "memory.limit_in_bytes" if self.version == 1 else "memory.max", group)

    def work(self, group: str, seconds: float) -> None:
        """CPUs work for a cgroup."""
        if self.version == 1:
            path = self.file("cpuacct", "cpuacct.usage", group)
            path.write_text(f"{int(path.read_text()) + round(seconds * 1e9)}\n")
            return
        path = self.file("cpu", "cpu.stat", group)
        first, *rest = path.read_text().splitlines()
        worked = int(first.removeprefix("usage_usec ")) + round(seconds * 1e6)
        path.write_text("\n".join((f"usage_usec {worked}", *rest)) + "\n")

    def pods(self) -> dict[str, PodPlace]:
        place = ContainerPlace(f"{NODE}/{POD}/container-web", self.disk / "files", self.disk / "logs")
        return {"u1": PodPlace(f"{NODE}/{POD}", self.disk, {"web": place})}
