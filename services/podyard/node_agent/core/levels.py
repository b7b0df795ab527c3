"""Signals as people give them: `200Mi`, `5%`, `200Mi of 8Gi`."""

import re
from collections.abc import Mapping
from typing import Final

from podyard.node_agent.core.eviction import signals, thresholds
from podyard.node_agent.core.eviction.thresholds import ThresholdError
from podyard.objects.quantity import parse
from podyard.proto.message import INT64_MAX
from podyard.proto.signals import SignalValue

FIELD: Final = "signal"
_LEVEL: Final = re.compile(r"(\S+)(?:\s+of\s+(\S+))?")
_IN_OBJECT: Final = {signals.MEMORY: "memory", signals.EPHEMERAL_STORAGE: "ephemeral-storage"}
"""Where a node's object says what there is of a resource."""


def parse_levels(
    texts: Mapping[str, str], known: Mapping[str, SignalValue], capacity: Mapping[str, str]
) -> dict[str, SignalValue]:
    """The signals, by name.

    :param known: what was observed: its capacity is that of a text that says none
    :param capacity: quantities by resource, as the node's object says, where nothing was observed
    :raises ThresholdError: with all faults, in the reference's words where it has any
    """

    def level(name: str, text: str) -> SignalValue:
        found = _LEVEL.fullmatch(text.strip())
        if found is None:
            raise ValueError(f"{text!r}: expected AVAILABLE or AVAILABLE of CAPACITY, for example 200Mi of 8Gi")
        there_is = _whole(name, found[2]) if found[2] else _capacity(name, known, capacity)
        if not found[1].endswith("%"):
            return SignalValue(available=_whole(name, found[1]), capacity=there_is or 0)
        if there_is is None:
            raise ValueError(f"nobody has said the capacity: write {name}='{found[1]} of CAPACITY'")
        share = thresholds.fraction_of(found[1])
        if not 0 <= share <= 1:
            raise ValueError(f"{found[1]}: expected a percentage from 0% to 100%")
        return SignalValue(available=thresholds.share_of(there_is, share), capacity=there_is)

    faults: list[thresholds.Fault] = []
    found = thresholds.each(FIELD, texts, level, faults)
    if faults:
        raise ThresholdError(*faults)
    return found


def _capacity(name: str, known: Mapping[str, SignalValue], capacity: Mapping[str, str]) -> int | None:
    if name in known:
        return known[name].capacity
    text = capacity.get(_IN_OBJECT.get(signals.ALL[name].resource, ""))
    return None if text is None else _whole(name, text)


def _whole(name: str, text: str) -> int:
    amount = parse(text).value()
    if not 0 <= amount <= INT64_MAX:
        raise ValueError(f"{name}: {text} must be from 0 to {INT64_MAX}")
    return amount
