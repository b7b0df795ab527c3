"""The NATS client protocol, as far as a proxy must understand it: where a message begins and ends, and what
it is about.

Source: docs.nats.io, Reference, NATS Protocols, Client Protocol.
"""

from typing import Final, NamedTuple

_LINE: Final = b"\r\n"
_WITH_BODY: Final = frozenset({"PUB", "HPUB", "MSG", "HMSG"})


class ProtocolError(Exception):
    """What came is no NATS protocol."""


class Frame(NamedTuple):
    """One protocol message; `raw` is how it travels. `subject`, `reply`, `head` and `payload` are those of
    PUB, HPUB, MSG, HMSG."""

    verb: str
    raw: bytes
    subject: str = ""
    reply: str = ""
    head: bytes = b""
    payload: bytes = b""

    @property
    def message(self) -> bool:
        """Whether it carries something to a subject."""
        return self.verb in _WITH_BODY


class Parser:
    """Cuts one direction of a connection into frames, whatever pieces it comes in."""

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, data: bytes) -> list[Frame]:
        """The frames that are complete now.

        :raises ProtocolError: if a line makes no sense
        """
        self._rest += data
        frames: list[Frame] = []
        start = 0
        while (end := self._rest.find(_LINE, start)) >= 0:
            words = self._rest[start:end].decode("utf-8", "replace").split(" ")
            words = [word for word in words if word]
            verb = words[0].upper() if words else ""
            if verb not in _WITH_BODY:
                frames.append(Frame(verb, bytes(self._rest[start : end + 2])))
                start = end + 2
                continue
            head_size, size = _sizes(verb, words)
            body = end + 2
            if len(self._rest) < body + size + 2:
                break
            after = body + size + 2
            subject, reply = _subjects(verb, words)
            frames.append(
                Frame(
                    verb,
                    bytes(self._rest[start:after]),
                    subject,
                    reply,
                    bytes(self._rest[body : body + head_size]),
                    bytes(self._rest[body + head_size : body + size]),
                )
            )
            start = after
        del self._rest[:start]
        return frames


def _sizes(verb: str, words: list[str]) -> tuple[int, int]:
    """Bytes of the header block, and of header block and payload."""
    try:
        return (int(words[-2]) if verb.startswith("H") else 0), int(words[-1])
    except (ValueError, IndexError):
        raise ProtocolError(" ".join(words)) from None


def _subjects(verb: str, words: list[str]) -> tuple[str, str]:
    """Subject and reply subject: `PUB subject [reply] size`, `MSG subject sid [reply] size`, an `H` form has
    a size more."""
    fixed = 2 + verb.endswith("MSG") + 1 + verb.startswith("H")
    return words[1], words[-2 - verb.startswith("H")] if len(words) > fixed else ""
