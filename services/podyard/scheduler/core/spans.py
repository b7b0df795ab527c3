"""Ids of a cycle's spans. A traceparent is `00-<32 hex: trace>-<16 hex: span>-<2 hex: flags>`."""

from random import Random
from typing import Final

LENGTH: Final = 55
SPAN_AT: Final = 36
FLAGS_AT: Final = 52
SAMPLED: Final = 1


def child(trace: str, random: Random) -> str:
    """A new span in the trace of `trace`, with its flags; empty if that is no traceparent."""
    if len(trace) != LENGTH:
        return ""
    return f"{trace[:SPAN_AT]}{random.getrandbits(64) or 1:016x}{trace[FLAGS_AT:]}"


def sampled(trace: str) -> bool:
    """Whether the sampler chose this trace."""
    try:
        return len(trace) == LENGTH and bool(int(trace[-2:], 16) & SAMPLED)
    except ValueError:
        return False
