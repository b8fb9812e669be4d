"""Transients in a sensor array: short bursts that several sensors feel at once, found in their samples with numpy.

penstock run examples/transients.py --batch
penstock run examples/transients.py --until-idle 5s

Each record is a second of one sensor, 200 samples. A sensor is triggered when the energy of a moment (50 ms) is far above that of the second around it; a lorry passes one sensor,
a shock reaches all of them within half a second.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pyarrow as pa

import penstock as ps

SENSORS, SAMPLES, SHORT, RATIO = 6, 200, 10, 12.0
START = datetime(2026, 3, 2, tzinfo=UTC)
SHOCKS, LORRIES = (40, 95), ((20, 2), (60, 4))
"""The seconds of shocks; the seconds of lorries, with the sensor each passes."""
TRIGGER = pa.schema([("sensor", pa.int32()), ("at", pa.timestamp("us", tz="UTC")), ("ratio", pa.float64())])


def second(number: int) -> tuple[int, datetime, list[float]]:
    """A second of one sensor: noise, and what happens in it."""
    at, sensor = divmod(number, SENSORS)
    samples = np.random.default_rng(number).normal(0.0, 1.0, SAMPLES)
    if at in SHOCKS or (at, sensor) in LORRIES:
        first = 40 + 8 * sensor
        samples[first : first + SHORT] += 15.0 * np.sin(np.arange(SHORT))
    return sensor, START + timedelta(seconds=at), samples.round(3).tolist()


def triggers(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The moments of a batch of seconds at which sensors were triggered: all samples at once, as one matrix."""
    samples = batch["samples"].flatten().to_numpy().reshape(-1, SAMPLES)
    energy = np.square(samples - samples.mean(axis=1, keepdims=True))
    moments = energy.reshape(len(samples), -1, SHORT).mean(axis=2)
    ratios = moments / np.median(moments, axis=1, keepdims=True)
    rows = np.flatnonzero(ratios.max(axis=1) > RATIO)
    moment = ratios[rows].argmax(axis=1)
    begin = batch["at"].cast(pa.int64()).to_numpy()[rows]
    at = pa.array(begin + moment * SHORT * 1_000_000 // SAMPLES).cast(TRIGGER.field("at").type)
    ratio = pa.array(ratios[rows, moment].round(1))
    return pa.RecordBatch.from_arrays([batch["sensor"].take(pa.array(rows)), at, ratio], schema=TRIGGER)


flow = ps.Flow("transients")
array = ps.generate(second, "sensor int, at timestamp, samples array<double>", rows_per_second=240, limit=720)
seconds = flow.source("seconds", array, event_time="at", lateness="2s")
triggered = seconds.map_batches("triggers", triggers, schema="sensor int, at timestamp, ratio double")
triggered.key_by("sensor").aggregate("sensors", n="count(*)", strongest="max(ratio)").sink("sensors-seen", ps.console())

bursts = (
    triggered.key_by(array="1")
    .window(ps.session("500ms"))
    .aggregate("bursts", since="min(at)", sensors="collect_set(sensor)", ratio="max(ratio)")
)
bursts.where("shocks", f"size(sensors) >= {SENSORS // 2}").select("found", "since", "sensors", "ratio").sink(
    "transients-found", ps.console()
)

if __name__ == "__main__":
    ps.run(flow, batch=True)
