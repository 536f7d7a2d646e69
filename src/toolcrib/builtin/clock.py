"""Time: now, in other zones, shifted, and between two moments. ISO 8601 in and out."""

from __future__ import annotations

import calendar
import re
from collections.abc import Generator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from difflib import get_close_matches
from typing import Annotated
from zoneinfo import ZoneInfo, available_timezones

import pydantic
from typing_extensions import TypedDict

from toolcrib.errors import ToolExecutionError
from toolcrib.tools import tool

__all__ = ["TOOLS", "Moment", "Span", "convert_time", "current_time", "shift_time", "time_between"]

_Zone = Annotated[str, pydantic.Field(max_length=64, examples=["Europe/Berlin", "UTC", "+05:30"])]
_Time = Annotated[str, pydantic.Field(max_length=64, examples=["2026-11-22T14:30:00+01:00"])]
_Count = Annotated[int, pydantic.Field(ge=-1_000_000_000, le=1_000_000_000)]


class Moment(TypedDict):
    """A moment as one place on earth writes it."""

    time: str
    timezone: str
    weekday: str


class Span(TypedDict):
    """How long it is from one moment to another; negative when the second is earlier."""

    days: float
    seconds: float
    text: str


@tool(effect="read")
def current_time(timezone: _Zone = "UTC") -> Moment:
    """Tell the time and date as they are now in a time zone, with the weekday.

    Args:
        timezone: An IANA name such as Europe/Berlin, UTC, or an offset such as +05:30.
    """
    return _moment(datetime.now(_zone(timezone)))


@tool(effect="read")
def convert_time(time: _Time, to_timezone: _Zone, from_timezone: _Zone = "UTC") -> Moment:
    """Tell a moment in the time of another time zone.

    Args:
        time: ISO 8601, such as 2026-11-22T14:30; with its own offset, or without one.
        to_timezone: The zone to tell it in, as an IANA name or an offset such as +05:30.
        from_timezone: The zone that `time` is meant in when it has no offset of its own.
    """
    with _in_range():
        return _moment(_read(time, _zone(from_timezone)).astimezone(_zone(to_timezone)))


@tool(effect="read")
def shift_time(
    time: _Time,
    *,
    years: _Count = 0,
    months: _Count = 0,
    weeks: _Count = 0,
    days: _Count = 0,
    hours: _Count = 0,
    minutes: _Count = 0,
    seconds: _Count = 0,
    timezone: _Zone = "UTC",
) -> Moment:
    """Add a duration to a time, or take it away with negative numbers, and tell the weekday of what comes out.

    Years to days move the date and keep the time of day; hours to seconds are counted as they pass, also when clocks
    change. The 31st moved to a shorter month is its last day.

    Args:
        time: ISO 8601, such as 2026-11-22T14:30, or a date alone.
        years: Years to add.
        months: Months to add.
        weeks: Weeks to add.
        days: Days to add.
        hours: Hours to add.
        minutes: Minutes to add.
        seconds: Seconds to add.
        timezone: The zone that `time` is meant in when it has no offset of its own.
    """
    with _in_range():
        given = _read(time, _zone(timezone))
        moved = _months_later(given, 12 * years + months) + timedelta(weeks=weeks, days=days)
        passed = timedelta(hours=hours, minutes=minutes, seconds=seconds)
        if passed:
            moved = (moved.astimezone(UTC) + passed).astimezone(moved.tzinfo)
        return _moment(moved)


@tool(effect="read")
def time_between(start: _Time, end: _Time, timezone: _Zone = "UTC") -> Span:
    """Tell how much time is between two moments.

    Args:
        start: ISO 8601, such as 2026-11-22T14:30, or a date alone.
        end: The same; before `start` gives negative numbers.
        timezone: The zone that is meant where a time has no offset of its own.
    """
    zone = _zone(timezone)
    with _in_range():
        between = _read(end, zone).astimezone(UTC) - _read(start, zone).astimezone(UTC)
    return {"days": between / timedelta(days=1), "seconds": between.total_seconds(), "text": _words(between)}


TOOLS = [current_time, convert_time, shift_time, time_between]


def _moment(moment: datetime) -> Moment:
    zone = getattr(moment.tzinfo, "key", None) or str(moment.tzinfo)
    return {"time": moment.isoformat(timespec="seconds"), "timezone": zone, "weekday": _WEEKDAYS[moment.weekday()]}


_WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")  # in any locale


def _read(text: str, zone: tzinfo) -> datetime:
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        raise ToolExecutionError(f"{text!r:.70} is no time: write it as 2026-11-22T14:30 or 2026-11-22") from None
    return moment if moment.tzinfo else moment.replace(tzinfo=zone)


def _zone(name: str) -> tzinfo:
    offset = _OFFSET.fullmatch(name.strip())
    if offset:
        sign, hours, minutes = offset.groups()
        shift = timedelta(hours=int(hours), minutes=int(minutes or 0))
        if shift < timedelta(days=1):
            return timezone(-shift if sign == "-" else shift)
    try:
        return ZoneInfo(name.strip())
    except (ValueError, OSError, LookupError):  # names are looked up as files
        raise ToolExecutionError(f"there is no time zone {name!r:.70}{_rather(name)}") from None


_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?([0-5]\d))?", re.IGNORECASE)


def _rather(name: str) -> str:
    names = available_timezones()
    city = name.strip().replace(" ", "_").lower()
    same = sorted(zone for zone in names if zone.lower().rpartition("/")[2] == city)
    near = same or get_close_matches(name, names, n=3)
    return f"; did you mean {' or '.join(near[:3])}?" if near else ": write an IANA name, such as Europe/Berlin"


def _months_later(moment: datetime, months: int) -> datetime:
    year, month = divmod(moment.year * 12 + moment.month - 1 + months, 12)
    if not 1 <= year <= 9999:  # noqa: PLR2004  # what datetime can tell
        raise OverflowError
    day = min(moment.day, calendar.monthrange(year, month + 1)[1])
    return moment.replace(year=year, month=month + 1, day=day)


@contextmanager
def _in_range() -> Generator[None]:
    try:
        yield
    except OverflowError:
        raise ToolExecutionError("the time is outside the years 1 to 9999") from None


def _words(span: timedelta) -> str:
    sign, span = ("-", -span) if span < timedelta(0) else ("", span)
    hours, rest = divmod(span.seconds, 3600)
    parts = ((span.days, "day"), (hours, "hour"), (rest // 60, "minute"), (rest % 60, "second"))
    said = [f"{count} {unit}{'' if count == 1 else 's'}" for count, unit in parts if count]
    return sign + (", ".join(said) or "0 seconds")
