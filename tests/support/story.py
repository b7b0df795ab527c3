"""What `podyard demo` must say: in a clone, and where a release is installed."""

import re
from typing import Final

PROMISES: Final = (
    "8 nodes Ready in zone-a, zone-b, zone-c",
    "running on five different nodes: cache-1 on node-",
    "30 pods running on ",
    "A: 0/8 nodes are available: 1 node(s) had untolerated taint",
    "B: 0/8 nodes are available: ",
    "B stays parked, NodeResourcesFit's hint says: ",
    "B moved by NodeResourcesFit's hint (",
    "A moved by TaintToleration's hint (",
    "A runs on node-6",
    " evicted on node-",
    " moved away from node-",
    "Pod default/trainer bound to node-6, Running",
    "attempt 1: unschedulable",
    "NodeUpdateNodeTaint",
    "scheduled on node-6",
)
"""What the story says it saw, step by step, and pod A explained."""

STEP_NOT_SEEN: Final = "✗"


def untold(told: str) -> list[str]:
    """What is missing of the story, and each step that the demo did not see; empty if it is whole.

    :param told: all that the demo printed
    """
    text = in_one_line(told)
    failed = [line.strip() for line in told.splitlines() if STEP_NOT_SEEN in line]
    return [promise for promise in PROMISES if promise not in text] + failed


def in_one_line(text: str) -> str:
    """Line breaks and indentation, which depend on the width, as single spaces."""
    return re.sub(r"\s+", " ", text)
