"""CPU time and memory of the reference's processes, looked at while they run."""

import time
from collections.abc import Sequence
from typing import NamedTuple

import psutil

MIB = 1024 * 1024


class Sample(NamedTuple):
    """One look."""

    at: float
    """Seconds since 1970."""
    cpu_s: dict[str, float]
    """User and system so far, by process."""
    memory: dict[str, int]
    """Bytes that each has in memory and shares with nobody but its own threads."""


class Sampler:
    """Follows a process and its children, told apart by the names of their programs."""

    def __init__(self, pid: int, names: Sequence[str]) -> None:
        """
        :param pid: the process itself: the first of `names`
        :param names: beside it those of children that are followed
        """
        self._process = psutil.Process(pid)
        self._names = tuple(names)
        self._children: dict[str, psutil.Process] = {}
        self.samples: list[Sample] = []

    def look(self) -> None:
        """One look; a process that has ended is left out."""
        self._find()
        cpu: dict[str, float] = {}
        memory: dict[str, int] = {}
        for name, process in ((self._names[0], self._process), *self._children.items()):
            try:
                times = process.cpu_times()
                memory[name] = process.memory_info().rss
            except psutil.Error:
                continue
            cpu[name] = times.user + times.system
        self.samples.append(Sample(time.time(), cpu, memory))

    def _find(self) -> None:
        missing = [name for name in self._names[1:] if name not in self._children]
        if not missing:
            return
        try:
            for child in self._process.children():
                for name in missing:
                    if name in child.name():
                        self._children[name] = child
        except psutil.Error:
            return


def cpu_between(samples: Sequence[Sample], begin: float, end: float) -> dict[str, float]:
    """CPU seconds of each process between two times, by straight lines between looks. Pure.

    :param begin: seconds since 1970
    """
    names = sorted({name for sample in samples for name in sample.cpu_s})
    return {name: _at(samples, name, end) - _at(samples, name, begin) for name in names}


def most_memory(samples: Sequence[Sample], begin: float, end: float) -> dict[str, float]:
    """MiB that each process had at most between two times. Pure."""
    within = [sample for sample in samples if begin <= sample.at <= end] or list(samples[-1:])
    names = sorted({name for sample in within for name in sample.memory})
    return {name: max(sample.memory.get(name, 0) for sample in within) / MIB for name in names}


def _at(samples: Sequence[Sample], name: str, when: float) -> float:
    before: Sample | None = None
    for sample in samples:
        if name not in sample.cpu_s:
            continue
        if sample.at >= when:
            if before is None:
                return sample.cpu_s[name]
            share = (when - before.at) / (sample.at - before.at)
            return before.cpu_s[name] + share * (sample.cpu_s[name] - before.cpu_s[name])
        before = sample
    return before.cpu_s[name] if before else 0.0
