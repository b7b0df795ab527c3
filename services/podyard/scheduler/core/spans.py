"""Ids of a cycle's spans."""

from random import Random

from podyard.proto.traces import FLAGS_AT, LENGTH, SPAN_AT


def child(trace: str, random: Random) -> str:
    """A new span in the trace of `trace`, with its flags; empty if that is no traceparent."""
    if len(trace) != LENGTH:
        return ""
    return f"{trace[:SPAN_AT]}{random.getrandbits(64) or 1:016x}{trace[FLAGS_AT:]}"
