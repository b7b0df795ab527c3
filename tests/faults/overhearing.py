"""What the proxies hear of CLUSTER: each write that goes to the server, and the sequence that the server
answers.

A reader of the stream misses versions that were overwritten before it came to them, since the stream keeps
one message a subject. The answer to their writer does not: so the history is complete as long as the server
lives to answer, whether or not the writer ever gets that.
"""

import itertools
from collections.abc import Callable, Sequence

import msgspec

from podyard.bus import _heads
from podyard.proto import headers, streams
from tests.faults.frames import Frame
from tests.faults.proxy import Proxy
from tests.memory_nats.stream import Stored

_STATE = tuple(subject.removesuffix(">") for subject in streams.CLUSTER.subjects)
_MOST_UNANSWERED = 5_000


class _PubAck(msgspec.Struct, frozen=True):
    stream: str = ""
    seq: int = 0
    duplicate: bool = False


_read_answer = msgspec.json.Decoder(_PubAck).decode


class Overheard:
    """Puts writes and answers together."""

    def __init__(self, stored: Callable[[Stored], None]) -> None:
        """:param stored: called for each message that the server says it has stored, the members of a batch
        in their order
        """
        self._stored = stored
        self._batches: dict[str, dict[int, Frame]] = {}
        """Messages of batches, by batch id and their number in it."""
        self._unanswered: dict[str, Sequence[Frame]] = {}
        """Reply subject -> what is stored if the answer says so."""

    def listen(self, proxy: Proxy) -> None:
        """Hear what passes there."""
        proxy.sent.append(self._on_sent)
        proxy.said.append(self._on_said)

    def _on_sent(self, frame: Frame) -> None:
        if not frame.subject.startswith(_STATE):
            return
        lines = _heads.parse(frame.head) if frame.head else {}
        batch = lines.get(headers.BATCH_ID)
        if batch is None:
            self._await(frame.reply, [frame])
            return
        members = self._batches.setdefault(batch, {})
        members[int(lines[headers.BATCH_SEQUENCE])] = frame
        if headers.BATCH_COMMIT in lines:
            del self._batches[batch]
            self._await(frame.reply, [members[number] for number in sorted(members)])

    def _await(self, reply: str, frames: Sequence[Frame]) -> None:
        if not reply or reply in self._unanswered:
            return  # the same again: whichever is stored, it is what the first one said
        self._unanswered[reply] = frames
        if len(self._unanswered) > _MOST_UNANSWERED:
            del self._unanswered[next(iter(self._unanswered))]

    def _on_said(self, frame: Frame) -> None:
        frames = self._unanswered.get(frame.subject)
        if frames is None:
            return
        try:
            answer = _read_answer(frame.payload)
        except msgspec.DecodeError:
            return
        if not answer.seq or answer.duplicate or answer.stream != streams.CLUSTER.name:
            return
        del self._unanswered[frame.subject]
        for sequence, one in zip(itertools.count(answer.seq - len(frames) + 1), frames, strict=False):
            self._stored(Stored(one.subject, one.payload, one.head, sequence, 0.0))
