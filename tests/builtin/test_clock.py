from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from toolcrib import ToolExecutionError
from toolcrib.builtin import convert_time, current_time, shift_time, time_between


def test_now_is_now_with_its_zone_and_weekday():
    told = current_time("Europe/Berlin")
    moment = datetime.fromisoformat(told["time"])
    assert abs(moment - datetime.now(UTC)) < timedelta(seconds=5)
    assert told["timezone"] == "Europe/Berlin"
    assert told["weekday"] == moment.strftime("%A")


@pytest.mark.parametrize(
    ("zone", "offset"),
    [("UTC", 0), ("+05:30", 330), ("-03", -180), ("UTC+2", 120), ("GMT-0930", -570), ("Asia/Kolkata", 330)],
)
def test_a_zone_is_a_name_or_an_offset(zone, offset):
    assert datetime.fromisoformat(current_time(zone)["time"]).utcoffset() == timedelta(minutes=offset)


@pytest.mark.parametrize(
    ("zone", "hint"),
    [
        ("Berlin", "Europe/Berlin"),
        ("new york", "America/New_York"),
        ("Europe/Berln", "Europe/Berlin"),
        ("America", "did you mean"),
        ("../../etc/passwd", "IANA"),
        ("/etc/passwd", "IANA"),
        ("Europe\0Berlin", "no time zone"),
        ("\ud800", "no time zone"),
        ("", "IANA"),
        ("+99:00", "IANA"),
    ],
)
def test_a_zone_that_is_none_is_told_with_the_nearest(zone, hint):
    with pytest.raises(ToolExecutionError, match="no time zone") as raised:
        current_time(zone)
    assert hint in str(raised.value)


def test_a_moment_is_told_in_another_zone():
    told = convert_time("2026-03-29T01:30", "Europe/Berlin")
    assert told == {"time": "2026-03-29T03:30:00+02:00", "timezone": "Europe/Berlin", "weekday": "Sunday"}


def test_a_time_with_an_offset_of_its_own_needs_no_zone():
    told = convert_time("2026-11-22T14:30+01:00", "UTC", from_timezone="Asia/Tokyo")
    assert told["time"] == "2026-11-22T13:30:00+00:00"


@pytest.mark.parametrize(
    ("time", "shift", "told"),
    [
        ("2026-01-31", {"months": 1}, "2026-02-28T00:00:00+00:00"),
        ("2024-02-29", {"years": 1}, "2025-02-28T00:00:00+00:00"),
        ("2026-12-15", {"months": 1}, "2027-01-15T00:00:00+00:00"),
        ("2026-01-15", {"months": -1}, "2025-12-15T00:00:00+00:00"),
        ("2026-11-22T10:00", {"weeks": 1, "days": -1, "hours": 5, "minutes": 30}, "2026-11-28T15:30:00+00:00"),
        ("2026-03-28T12:00", {"days": 1, "timezone": "Europe/Berlin"}, "2026-03-29T12:00:00+02:00"),
        ("2026-03-28T12:00", {"hours": 24, "timezone": "Europe/Berlin"}, "2026-03-29T13:00:00+02:00"),
    ],
)
def test_a_time_is_shifted_as_calendars_and_clocks_go(time, shift, told):
    assert shift_time(time, **shift)["time"] == told


def test_a_span_is_told_in_numbers_and_words():
    assert time_between("2026-01-01", "2026-01-02T12:00:01") == {
        "days": pytest.approx(1.5, abs=1e-4),
        "seconds": 129601.0,
        "text": "1 day, 12 hours, 1 second",
    }
    assert time_between("2026-01-02", "2026-01-01")["text"] == "-1 day"
    assert time_between("2026-01-01", "2026-01-01")["text"] == "0 seconds"


def test_a_span_over_a_change_of_clocks_is_what_passed():
    assert time_between("2026-03-28T12:00", "2026-03-29T12:00", timezone="Europe/Berlin")["seconds"] == 23 * 3600


@pytest.mark.parametrize("time", ["tomorrow", "", "2026-13-01", "14:30", "2026-02-30"])
def test_what_is_no_time_is_told_how_to_write_one(time):
    with pytest.raises(ToolExecutionError, match="2026-11-22T14:30"):
        shift_time(time, days=1)


@pytest.mark.parametrize("shift", [{"years": 10**8}, {"days": 10**9}, {"hours": -(10**9)}, {"months": -(10**6)}])
def test_a_time_beyond_the_calendar_is_refused(shift):
    with pytest.raises(ToolExecutionError, match="years 1 to 9999"):
        shift_time("2026-01-01", **shift)


def test_the_ends_of_the_calendar_are_refused_in_zones_that_leave_it():
    with pytest.raises(ToolExecutionError, match="years 1 to 9999"):
        convert_time("0001-01-01", "America/New_York")
