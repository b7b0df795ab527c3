"""Following a stream for one command: nothing twice, and gaps are told."""

from podyard.bus.delivery import Delivery
from podyard.shell.stream_reading import _Sink


def message(sequence: int) -> Delivery:
    return Delivery("decisions.a", b"", sequence, 0.0)


class Reader:
    def __init__(self) -> None:
        self.read: list[int] = []
        self.missed: list[str] = []
        self.sink = _Sink(lambda one: self.read.append(one.sequence), live_only=True, missed=self.missed.append)

    def tell(self, *sequences: int) -> None:
        for sequence in sequences:
            self.sink.deliver(message(sequence))


def test_what_is_stored_before_the_start_is_left_out_and_nothing_comes_twice():
    reader = Reader()
    reader.sink.listing(5, "start")
    reader.tell(4, 5)
    reader.sink.synced(5)
    reader.tell(6, 7, 7, 6)
    assert (reader.read, reader.missed) == ([6, 7], [])


def test_an_interruption_is_told():
    reader = Reader()
    reader.sink.listing(5, "start")
    reader.sink.synced(5)
    reader.tell(6)
    reader.sink.listing(9, "a gap")
    assert reader.missed == ["a gap"]


def test_a_stream_that_was_made_again_is_read_from_its_beginning():
    reader = Reader()
    reader.sink.listing(50, "start")
    reader.sink.synced(50)
    reader.tell(51)
    reader.sink.listing(2, "the stream was made again")
    reader.tell(3)
    assert reader.read == [51, 3]
