"""Continuous glucose monitoring: what a patient's sensor will read in half an hour, alerts that wait until somebody has acted, and sensors that fall silent.

penstock run examples/glucose.py --batch
penstock run examples/glucose.py --until-idle 5s
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import penstock as ps

LOW, HIGH, AHEAD = 70.0, 180.0, timedelta(minutes=30)
PATIENTS, START = ("ada", "bob", "eve"), datetime(2026, 3, 2, 6, tzinfo=UTC)


class Alert(NamedTuple):
    """What somebody has to know of a patient."""

    patient: str
    at: datetime
    kind: str
    expected: float | None


def reading(number: int) -> tuple[str, datetime, float] | tuple[str, datetime, None]:
    """A reading of each patient every five minutes: meals at seven and twelve; Bob took too much insulin, and Eve's sensor is off for half an hour."""
    minutes, patient = number // len(PATIENTS) * 5, PATIENTS[number % len(PATIENTS)]
    glucose = 105 + sum(75 * math.exp(-(((minutes - meal) / 35) ** 2)) for meal in (100, 400)) + 3 * math.sin(number)
    if patient == "bob":
        glucose -= 75 * math.exp(-(((minutes - 240) / 60) ** 2))
    is_off = patient == "eve" and 200 <= minutes < 230
    return patient, START + timedelta(minutes=minutes), None if is_off else round(glucose, 1)


class Forecast(ps.Process):
    """The line through the last readings of a patient, AHEAD of now. An alert that still stands when its timer fires is escalated."""

    last = ps.list_of(tuple)
    began = ps.value(datetime)
    ended = ps.map_of(str, datetime)

    def on_event(self, row: Any) -> Iterator[Alert]:
        """One more reading; an episode begins when the forecast leaves the range, and ends when it is back."""
        self.last = [*self.last[-5:], (row.at, row.glucose)]
        if len(self.last) < 6:
            return
        expected = ahead(self.last)
        is_out = not LOW <= expected <= HIGH
        if is_out and self.began is None:
            self.began = row.at
            self.set_timer(row.at + AHEAD, name=str(row.at))
            yield Alert(self.key, row.at, "low ahead" if expected < LOW else "high ahead", expected)
        elif not is_out and self.began is not None:
            self.ended[str(self.began)] = row.at
            self.began = None

    def on_timer(self, timer: Any) -> Iterator[Alert]:
        """Half an hour later: the episode that the timer is named after may have ended meanwhile, or after it."""
        ended = self.ended.pop(timer.name, None)
        if ended is None or ended > timer.at:
            yield Alert(self.key, timer.at, "nobody acted", None)


def ahead(readings: list[tuple[datetime, float]]) -> float:
    """The value AHEAD of the last reading, by least squares."""
    seconds = [(at - readings[-1][0]).total_seconds() for at, _ in readings]
    mean, level = sum(seconds) / len(seconds), sum(value for _, value in readings) / len(readings)
    spread = sum((s - mean) ** 2 for s in seconds)
    slope = sum((s - mean) * value for s, (_, value) in zip(seconds, readings, strict=True)) / spread if spread else 0.0
    return round(level + slope * (AHEAD.total_seconds() - mean), 1)


flow = ps.Flow("glucose")
sensors = ps.generate(reading, "patient string, at timestamp, glucose double", rows_per_second=300, limit=300)
readings = flow.source("readings", sensors, event_time="at", lateness="5m").where("valid", "glucose is not null")
by_patient = readings.key_by("patient").sort("in-order").key_by("patient")
alerts = by_patient.process("forecast", Forecast, schema=Alert)
alerts.sink("alerts", ps.console())

silent = ps.pattern("silent").begin("last", "true").not_followed_by("next", "true").within("15m")
readings.key_by("patient").match("silences", silent, select={"patient": "patient", "since": "last.at"}).sink(
    "silent", ps.console()
)

hours = readings.key_by("patient").window(ps.tumbling("1h"))
hours.aggregate(
    "in-range",
    share="round(count(*) filter (where glucose between 70 and 180) / count(*), 2)",
    mean="round(avg(glucose), 1)",
).sink("report", ps.console())

if __name__ == "__main__":
    ps.run(flow, batch=True)
