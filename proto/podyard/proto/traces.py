"""What stands in a traceparent, for those who only look: `00-<32 hex: trace>-<16 hex: span>-<2 hex: flags>`.

The lowest flag, sampled, says that the trace is kept: by the sampler's choice, or because it is to be kept
whole.
"""

from typing import Final

LENGTH: Final = 55
SPAN_AT: Final = 36
FLAGS_AT: Final = 52
SAMPLED: Final = 1

_ODD: Final = frozenset("13579bdf")
_HEX: Final = frozenset("0123456789abcdef")


def is_sampled(text: str) -> bool:
    """Whether a traceparent has the sampled flag, by its outline; any other text has not, or whoever uses its
    ids will find out."""
    return len(text) >= LENGTH and text[LENGTH - 1] in _ODD


def flagged(text: str) -> str:
    """The same span, its trace one that is kept; what is visibly no traceparent stays as it is."""
    if len(text) != LENGTH or text[-1] in _ODD or not _HEX.issuperset(text[FLAGS_AT + 1 :]):
        return text
    return f"{text[: FLAGS_AT + 1]}{int(text[FLAGS_AT + 1 :], 16) | SAMPLED:02x}"
