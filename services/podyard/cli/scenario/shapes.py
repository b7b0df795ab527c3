"""How an amount goes on from where it stands: points of a course, in seconds and whole amounts."""

from collections.abc import Sequence

from podyard.proto.signals import Point

Points = tuple[Point, ...]


def constant(amount: int) -> Points:
    """At once, and from then on."""
    return (Point(after_s=0, amount=amount),)


def ramp(amount: int, over_s: float) -> Points:
    """From where it stands, evenly within this time, and then there."""
    return (Point(after_s=over_s, amount=amount),)


def leak(begin: int, each_s: int, end: int) -> Points:
    """So much more every second (less, if the end is below the beginning), until the end.

    :param each_s: at least 1
    """
    return (Point(after_s=0, amount=begin), Point(after_s=abs(end - begin) / each_s, amount=end))


def spike(amount: int, for_s: float) -> Points:
    """At once for this time, and then back to where it stood."""
    there = (Point(after_s=0, amount=amount), Point(after_s=for_s, amount=amount))
    return (*there, Point(after_s=for_s))


def replayed(series: Sequence[tuple[float, int]]) -> Points:
    """A recorded series: seconds and amounts, in order of time, evenly from one to the next."""
    return tuple(Point(after_s=after_s, amount=amount) for after_s, amount in series)
