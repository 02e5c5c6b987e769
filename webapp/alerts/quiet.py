"""Quiet hours: pure functions of a person's settings and the time."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

_UTC = "UTC"


@cache
def zone_names() -> frozenset[str]:
    """The names of the machine's IANA database, which takes a walk over its files; UTC alone where
    it has none."""
    return frozenset({_UTC, *available_timezones()})


def _zone(name: str) -> tzinfo:
    """UTC also for a name that the machine knew once, and knows no more."""
    try:
        return UTC if name == _UTC else ZoneInfo(name)
    except ZoneInfoNotFoundError:
        return UTC


@dataclass(frozen=True, slots=True)
class QuietHours:
    """From `start` until `end` of each day in the time zone; an `end` before `start` is of the next
    day."""

    start: time
    end: time
    zone: str

    def end_after(self, now: datetime) -> datetime | None:
        """The end of the quiet hours that hold at `now`; None if none do."""
        zone = _zone(self.zone)
        local = now.astimezone(zone)
        clock = local.time().replace(tzinfo=None)
        overnight = self.end <= self.start
        if overnight:
            quiet = clock >= self.start or clock < self.end
        else:
            quiet = self.start <= clock < self.end
        if not quiet:
            return None
        day = local.date() + timedelta(days=overnight and clock >= self.start)
        end = datetime.combine(day, self.end, zone).astimezone(UTC)
        # Where clocks go back, the end of the first pass may lie behind: it is over then.
        return end if end > now else None
