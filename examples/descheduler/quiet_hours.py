"""QuietHours: between two hours of the day (UTC) no pod is evicted, but those that may be disturbed."""

from typing import Annotated

from msgspec import Meta

from podyard.descheduler.core.arguments import PluginArgs
from podyard.descheduler.core.framework import Verdict

Hour = Annotated[int, Meta(ge=0, le=23)]
DAY_S = 24 * 3600


class Args(PluginArgs, frozen=True, kw_only=True):
    begin: Hour = 22
    end: Hour = 6
    disturb: str = "disturb"
    """Label of pods that may go at any time."""


class QuietHours:
    NAME = "QuietHours"
    ARGS = Args

    def __init__(self, args, handle):
        self._args = args
        self._quiet = _within(int(handle.now % DAY_S) // 3600, args.begin, args.end)

    @classmethod
    def faults(cls, args):
        return ["begin and end are the same hour"] if args.begin == args.end else []

    def filter(self, pod):
        if self._quiet and self._args.disturb not in pod.metadata.labels:
            return Verdict(False, (f"it is quiet from {self._args.begin} to {self._args.end} o'clock",))
        return Verdict(True)


def _within(hour, begin, end):
    return begin <= hour < end if begin < end else hour >= begin or hour < end
