"""Schedules of CronJobs: minute, hour, day of month, month, day of week; or `@daily` and the like, and
`@every 90s`.

Read here, since no library in Python keeps to what Kubernetes' own takes: names, `?`, `*/15` as a star or
not, both days at once, and what becomes of an hour that summer time skips or doubles.

Source: github.com/robfig/cron v3.0.1, parser.go (ParseStandard, getField, getRange), spec.go (Next,
dayMatches), constantdelay.go.
"""

from calendar import timegm
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from podyard.objects import go_syntax
from podyard.objects.faults import cut
from podyard.objects.selectors import whole_number

MOST_YEARS: Final = 5
"""Within which a time must be found."""
_MINUTE: Final = 60
_HOUR: Final = 3600
_LONGEST: Final = 1024
"""Characters of a schedule; each field may list every value it can have many times over."""
_DECEMBER: Final = 12


class ScheduleError(ValueError):
    """A text is no schedule, or a name no time zone."""


class _Bounds(NamedTuple):
    least: int
    most: int
    names: Mapping[str, int] = {}


_MONTHS: Final = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS: Final = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS: Final = (
    _Bounds(0, 59),
    _Bounds(0, 23),
    _Bounds(1, 31),
    _Bounds(1, 12, {name: at for at, name in enumerate(_MONTHS, 1)}),
    _Bounds(0, 6, {name: at for at, name in enumerate(_DAYS)}),
)
_NAMED: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EVERY: Final = "@every "


class _Field(NamedTuple):
    """Which values a field takes, and whether a star is among what it was written as."""

    values: frozenset[int]
    star: bool


class Every(NamedTuple):
    """One time after another, so many seconds apart."""

    delay_s: int

    def next(self, after: float) -> int | None:
        """The next time, whole seconds since 1970."""
        return int(after) + self.delay_s


class Calendar(NamedTuple):
    """Times of the clock on a wall."""

    minutes: _Field
    hours: _Field
    days: _Field
    months: _Field
    weekdays: _Field
    zone: tzinfo

    def next(self, after: float) -> int | None:
        """The first time after `after`, seconds since 1970; None: none within five years."""
        return _Search(self, (int(after) // _MINUTE + 1) * _MINUTE).found()

    def takes_day(self, local: datetime) -> bool:
        """Both days if one of them is a star, else either."""
        day = local.day in self.days.values
        weekday = (local.weekday() + 1) % 7 in self.weekdays.values
        return day and weekday if self.days.star or self.weekdays.star else day or weekday


Schedule: TypeAlias = Every | Calendar


class _Search:
    """One search, field by field; a field that starts anew sets the smaller ones back. As the source does it,
    step by step, so that it does the same where an hour is skipped."""

    def __init__(self, calendar: Calendar, start: int) -> None:
        """
        :param start: the first time that will do: a whole minute, in seconds since 1970
        """
        self._calendar = calendar
        self._at = start
        self._moved = False
        """Whether a field was moved on: the smaller ones are at their beginnings from then on."""

    def found(self) -> int | None:
        """The time; None: none within five years."""
        if not all(field.values for field in (self._calendar.minutes, self._calendar.hours, self._calendar.months)):
            return None
        last = self._local().year + MOST_YEARS
        while self._local().year <= last:
            if self._month() and self._day() and self._hour() and self._minute():
                return self._at
        return None

    def _local(self) -> datetime:
        return datetime.fromtimestamp(self._at, self._calendar.zone)

    def _go_to(self, wall: datetime) -> None:
        """To a time of the clock on the wall, written as if in UTC; one that is skipped is taken by one of
        the two clocks around it. Source: Go's time.Date."""
        seconds = timegm(wall.timetuple())
        self._at = seconds - self._offset(seconds - self._offset(seconds))

    def _offset(self, at: int) -> int:
        found = datetime.fromtimestamp(at, self._calendar.zone).utcoffset()
        return 0 if found is None else int(found.total_seconds())

    def _month(self) -> bool:
        while (local := self._local()).month not in self._calendar.months.values:
            self._moved = True
            self._go_to(datetime(local.year + local.month // 12, local.month % 12 + 1, 1, tzinfo=UTC))
            if local.month == _DECEMBER:
                return False
        return True

    def _day(self) -> bool:
        while not self._calendar.takes_day(local := self._local()):
            if not self._moved:
                self._moved = True
                self._go_to(datetime(local.year, local.month, local.day, tzinfo=UTC))
                local = self._local()
            self._go_to(local.replace(tzinfo=UTC) + timedelta(days=1))
            hour = self._local().hour
            if hour:  # midnight is skipped on that day
                self._at += (24 - hour if hour > 12 else -hour) * _HOUR
            if self._local().day == 1:
                return False
        return True

    def _hour(self) -> bool:
        while (local := self._local()).hour not in self._calendar.hours.values:
            if not self._moved:
                self._moved = True
                self._go_to(datetime(local.year, local.month, local.day, local.hour, tzinfo=UTC))
            self._at += _HOUR
            if self._local().hour == 0:
                return False
        return True

    def _minute(self) -> bool:
        while self._local().minute not in self._calendar.minutes.values:
            self._moved = True
            self._at += _MINUTE
            if self._local().minute == 0:
                return False
        return True


# ---- reading -----------------------------------------------------------------------------------------------


@lru_cache(maxsize=16)
def parse(text: str, zone: str = "") -> Schedule:
    """A schedule.

    :param zone: a name such as `Europe/Paris`; empty: UTC
    :raises ScheduleError: what is wrong with either, in the reference's words
    """
    if not text:
        raise ScheduleError("empty spec string")
    if len(text) > _LONGEST:
        raise ScheduleError(f"may not be more than {_LONGEST} characters")
    if text.startswith(_EVERY):
        return Every(_delay(text))
    if text.startswith("@") and text not in _NAMED:
        raise ScheduleError(f"unrecognized descriptor: {cut(text)}")
    written = _NAMED.get(text, text).split()
    if len(written) != len(_FIELDS):
        raise ScheduleError(f"expected exactly {len(_FIELDS)} fields, found {len(written)}: [{cut(' '.join(written))}]")
    fields = [_field(one, bounds) for one, bounds in zip(written, _FIELDS, strict=True)]
    return Calendar(*fields, zone=zone_of(zone))


def zone_of(name: str) -> tzinfo:
    """The time zone of that name; UTC for an empty one.

    :raises ScheduleError: there is none
    """
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(f"unknown time zone {cut(name)}") from error


def _delay(text: str) -> int:
    try:
        return max(1, int(go_syntax.parse_duration(text.removeprefix(_EVERY))))
    except ValueError as error:
        raise ScheduleError(f"failed to parse duration {cut(text)}: {error}") from error


def _field(text: str, bounds: _Bounds) -> _Field:
    values: set[int] = set()
    star = False
    for part in filter(None, text.split(",")):
        found = _range(part, bounds)
        values |= found.values
        star |= found.star
    return _Field(frozenset(values), star)


def _range(text: str, bounds: _Bounds) -> _Field:
    """`*`, `3`, `mon-fri`, `*/15`, `8-18/2`, `5/10` (from 5 on)."""
    written, *steps = text.split("/")
    low, *highs = written.split("-")
    star = low in ("*", "?")
    if star:
        start, end = bounds.least, bounds.most
    else:
        start = _number(low, bounds.names)
        if len(highs) > 1:
            raise ScheduleError(f"too many hyphens: {cut(text)}")
        end = _number(highs[0], bounds.names) if highs else start
    if len(steps) > 1:
        raise ScheduleError(f"too many slashes: {cut(text)}")
    step = 1
    if steps:
        step = _number(steps[0], {})
        end = end if highs else bounds.most
        star = star and step <= 1
    _check_range(text, start, end, step, bounds)
    return _Field(frozenset(range(start, end + 1, step)), star)


def _check_range(text: str, start: int, end: int, step: int, bounds: _Bounds) -> None:
    if start < bounds.least:
        raise ScheduleError(f"beginning of range ({start}) below minimum ({bounds.least}): {cut(text)}")
    if end > bounds.most:
        raise ScheduleError(f"end of range ({end}) above maximum ({bounds.most}): {cut(text)}")
    if start > end:
        raise ScheduleError(f"beginning of range ({start}) beyond end of range ({end}): {cut(text)}")
    if step == 0:
        raise ScheduleError(f"step of range should be a positive number: {cut(text)}")


def _number(text: str, names: Mapping[str, int]) -> int:
    if (named := names.get(text.lower())) is not None:
        return named
    found = whole_number(text)
    if found is None:
        raise ScheduleError(
            f'failed to parse int from {cut(text)}: strconv.Atoi: parsing "{cut(text)}": invalid syntax'
        )
    if found < 0:
        raise ScheduleError(f"negative number ({found}) not allowed: {cut(text)}")
    return found
