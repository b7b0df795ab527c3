"""When two views may be compared: neither has read anything that the other has not got to."""

import anyio

from podyard.cluster.comparing import Contents, Held
from podyard.cluster.view import ClusterView
from podyard.shell import comparison
from podyard.shell.informer import EVERYTHING
from tests.unit.cluster.stream import WrittenStream, listing_of, node_document


def written(number: int = 3) -> WrittenStream:
    stream = WrittenStream()
    for at in range(number):
        stream.write("nodes", node_document(f"n{at}", f"uid-{at}"))
    return stream


def test_two_listings_of_one_position_have_read_the_same() -> None:
    stream = written()
    assert comparison.have_read_the_same(listing_of(stream), listing_of(stream))


def test_who_has_read_more_has_not_read_the_same_until_the_other_has_it_too() -> None:
    stream = written()
    one, other = listing_of(stream), listing_of(stream)
    delivery = stream.write("nodes", node_document("n9", "uid-9"))
    one.apply(delivery)
    assert not comparison.have_read_the_same(one, other)
    assert not comparison.have_read_the_same(other, one)
    other.apply(delivery)
    assert comparison.have_read_the_same(one, other)


def test_messages_for_others_are_no_difference() -> None:
    stream = written()
    one, other = listing_of(stream), listing_of(stream)
    one.advance(stream.last + 100)
    assert comparison.have_read_the_same(one, other)


def test_a_later_listing_has_not_read_the_same() -> None:
    """It may hold anything of what came up to its position."""
    stream = written()
    one = listing_of(stream)
    stream.write("nodes", node_document("n9", "uid-9"))
    assert not comparison.have_read_the_same(one, listing_of(stream))


class Holding:
    """A service in the middle of something for its first two looks."""

    followed = EVERYTHING

    def __init__(self, view: ClusterView) -> None:
        self.view = view
        self.looks = 0

    def held(self, view: Contents) -> Held | None:
        self.looks += 1
        return Held(view) if self.looks > 2 else None


async def test_both_are_taken_when_they_meet_and_the_service_is_not_in_the_middle_of_something() -> None:
    stream = written()
    fresh, holder = listing_of(stream), Holding(listing_of(stream))
    delivery = stream.write("nodes", node_document("n9", "uid-9"))
    fresh.apply(delivery)
    async with anyio.create_task_group() as tasks:
        found: list[object] = []

        async def meet() -> None:
            found.append(await comparison._met(fresh, holder))  # pyright: ignore[reportPrivateUsage]

        tasks.start_soon(meet)
        await anyio.sleep(3 * comparison.LOOK_EVERY_S)
        assert holder.looks == 0
        assert found == []
        holder.view.apply(delivery)
    [both] = found
    listed, held = both
    assert (listed.position, held.view.position) == (stream.last, stream.last)
    assert holder.looks == 3
