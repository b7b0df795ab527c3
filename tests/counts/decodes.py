"""Counts what is decoded, by hooking in before anything else is imported: the product binds decoders' methods
when it is.

Counted are whole decodings, by the type that they give: an object of Kubernetes, typed or as a plain
document, or a message of ours.
"""

from collections.abc import Callable
from typing import Any

import msgspec

from tests.counts.tally import Tally

OBJECTS = "podyard.objects."
MESSAGES = "podyard.proto."

_Decoder = msgspec.json.Decoder
_decode = msgspec.json.decode
_convert = msgspec.convert


def install(tally: Tally) -> None:
    """For the rest of this process. Call before `podyard` is imported."""

    def note(wanted: Any) -> None:
        topic = _topic(wanted)
        if topic:
            tally.add_here(topic)

    class CountingDecoder:
        """`msgspec.json.Decoder`, which cannot be derived from."""

        def __init__(self, type: Any = Any, **options: Any) -> None:  # noqa: A002 - msgspec's name
            decoder, topic = _Decoder(type, **options), _topic(type)
            self.type = type
            self.decode: Callable[[Any], Any] = decoder.decode
            if topic:
                self.decode = lambda payload: (tally.add_here(topic), decoder.decode(payload))[1]

        def __class_getitem__(cls, item: Any) -> Any:
            return cls

    def decode(payload: Any, *, type: Any = Any, **options: Any) -> Any:  # noqa: A002
        note(type)
        return _decode(payload, type=type, **options)

    def convert(value: Any, type: Any, **options: Any) -> Any:  # noqa: A002
        note(type)
        return _convert(value, type, **options)

    msgspec.json.Decoder = CountingDecoder  # type: ignore[misc,assignment]
    msgspec.json.decode = decode  # type: ignore[assignment]
    msgspec.convert = convert  # type: ignore[assignment]


def _topic(wanted: Any) -> str:
    """Under which topic decoding this type counts; "": under none. Texts, so that nothing of the product is
    imported."""
    if wanted == dict[str, Any]:
        return "objects"
    places = {f"{getattr(one, '__module__', '')}." for one in (wanted, *getattr(wanted, "__args__", ()))}
    if any(place.startswith(OBJECTS) for place in places):
        return "objects"
    return "messages" if any(place.startswith(MESSAGES) for place in places) else ""
