"""Verifies a sink: records through a flow whose driver is killed again and again, while somebody reads."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from penstock.errors import Impossible, RunError
from penstock.faults import SETTING
from penstock.log import Log
from penstock.log.produce.partitioner import partition_for
from penstock.spark.checkpoint.offsets import OffsetLog
from penstock.temporary import temporary_directory
from penstock.testing.verify.program import NUMBERS, PATTERN, SPACING, STARTED, TOPIC, checkpoint_of
from penstock.testing.verify.tally import Glances, Sent, Tally, merge, tally
from penstock.testing.verify.targets import Reader, SinkRow, Target, target_of
from penstock.testing.verify.windows import Kill, schedule

SOURCES = 3
"""Partitions of the topic that is read."""
PATIENCE = 300.0
"""Seconds that a driver may take for a life."""
FAR = 1_000_000_000
"""The id, and so the time, of records at the end that let the time of all others pass."""
MOST_BATCHES = 90
"""Spark keeps the offsets of a hundred batches; the oracle needs all."""


@dataclass(frozen=True)
class Plan:
    """What a verification does. `say` is called with its progress."""

    sink: str
    """The sink, or several with commas between them: one flow then writes to all of them."""
    records: int = 100_000
    kills: int = 20
    seed: int = 0
    url: str = ""
    windows: tuple[str, ...] = ()
    """The crash windows to hit; all when none is named."""
    flow: str = NUMBERS
    """The flow that they go through: "numbers" or "pattern"."""
    pause: float = 0.05
    """Seconds between two reads of the concurrent reader."""
    say: Callable[[str], None] = field(default=lambda text: None)

    def __post_init__(self) -> None:
        if self.records < 1 or self.kills < 0:
            raise Impossible(f"verify needs at least 1 record and 0 kills, got {self.records} and {self.kills}")
        if self.flow not in (NUMBERS, PATTERN):
            raise Impossible(f"the flow is {NUMBERS!r} or {PATTERN!r}, got {self.flow!r}")
        servers = [target_of(name).server for name in self.sinks]
        if self.url and servers != [True]:
            raise Impossible(f"{self.sink!r} is no server; it takes no url")
        schedule(0, self.seed, self.windows)

    @property
    def sinks(self) -> tuple[str, ...]:
        """The names of the sinks."""
        return tuple(self.sink.split(","))

    @property
    def per_batch(self) -> int:
        """Records of a batch: enough batches for all kills to fall on different ones."""
        return max(1, -(-self.records // min(MOST_BATCHES - SOURCES, 2 * self.kills + 4)))


def verify(plan: Plan) -> Tally:
    """Runs the plan and returns the tally."""
    with temporary_directory("verify") as folder, ExitStack() as running:
        sinks = [VerifiedSink(name, target_of(name)) for name in plan.sinks]
        for at, sink in enumerate(sinks):
            (own := folder / f"sink-{at}").mkdir()
            sink.address = running.enter_context(sink.target.running(own, plan.url))
        return Verification(plan, sinks, folder).run()


@dataclass
class VerifiedSink:
    """A sink of the flow: its name, what it is, where it is, and what its reader has seen."""

    name: str
    target: Target
    address: dict[str, Any] = field(default_factory=dict)
    glances: Glances = field(default_factory=list)


class Verification:
    """A verification at work, in a folder of its own."""

    def __init__(self, plan: Plan, sinks: list[VerifiedSink], folder: Path) -> None:
        self.plan, self.sinks, self.folder = plan, sinks, folder
        named = [{"sink": sink.name, "address": sink.address} for sink in sinks]
        (folder / "spec.json").write_text(json.dumps({"sinks": named, "per_batch": plan.per_batch, "flow": plan.flow}))
        self.sent = self._send()

    def _send(self) -> Sent:
        """Fills the topic; the records of a key are in one partition, in the order of their ids."""
        keys = {i: f"k{i * 7919 % SPACING}" for i in range(self.plan.records)}
        parts: list[list[int]] = [[] for _ in range(SOURCES)]
        for number, key in keys.items():
            parts[partition_for(key.encode(), SOURCES)].append(number)
        with Log(self.folder / "log") as log, log.producer() as producer:
            log.create_topic(TOPIC, SOURCES)
            for part, ids in enumerate(parts):
                values = [_record(keys[i], i, part) for i in ids]
                if self.plan.flow == PATTERN:
                    values += [_record(f"end{part}", FAR + at, part) for at in range(2)]
                if values:
                    producer.send_many(TOPIC, values, partition=part)
        return Sent(parts, keys)

    def run(self) -> Tally:
        """All lives of the driver, and the judgement."""
        kills = schedule(self.plan.kills, self.plan.seed, self.plan.windows)
        with ExitStack() as reading:
            for sink in self.sinks:
                reading.enter_context(self._reading(sink))
            hits = Counter(kill.window for at, kill in enumerate(kills) if self._killed(kill, at))
            self._life("", None)
        return replace(merge([self._judge(sink) for sink in self.sinks]), kills=dict(hits))

    def _judge(self, sink: VerifiedSink) -> Tally:
        reader = sink.target.reader(sink.address)
        try:
            rows, is_numbered = _sent_only(reader.rows()), self.plan.flow == NUMBERS
            ordered = sink.target.ordered and is_numbered
            return tally(self.sent, self._ends(), rows, sink.glances, ordered=ordered, whole=is_numbered)
        finally:
            reader.close()

    def _killed(self, kill: Kill, at: int) -> bool:
        """One life that ends by a kill; false when the flow had ended before it."""
        began = time.monotonic()
        hit = self._life(kill.setting, None if kill.point else kill.seconds)
        outcome = "killed" if hit else "ended before the kill"
        self.plan.say(f"{at + 1:3}/{self.plan.kills} {kill}: {outcome} ({time.monotonic() - began:.1f} s)")
        return hit

    def _life(self, crash: str, seconds: float | None) -> bool:
        """A driver from its start to its end; whether it was killed."""
        with (self.folder / "driver.log").open("w") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "penstock.testing.verify.program", str(self.folder)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                env={**os.environ, SETTING: crash},
            )
        try:
            if seconds is not None:
                self._kill_after(process, seconds)
            process.wait(PATIENCE)
        finally:
            _end_group(process)
        if process.returncode not in (0, -signal.SIGKILL):
            raise RunError(f"the flow failed:\n{self._output()[-4000:]}")
        return process.returncode != 0

    def _kill_after(self, process: subprocess.Popen[bytes], seconds: float) -> None:
        deadline = time.monotonic() + PATIENCE
        while STARTED not in self._output() and process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.02)
        time.sleep(seconds)
        _end_group(process)

    def _output(self) -> str:
        return (self.folder / "driver.log").read_text(errors="replace")

    def _ends(self) -> list[list[int]]:
        """The offsets at which each batch ended, by partition."""
        log = OffsetLog(checkpoint_of(self.folder, [sink.address for sink in self.sinks]) / "spark")
        found = [json.loads(log.offsets(batch)[0]) for batch in range(log.last() + 1)]
        return [[int(each.get(str(p), 0)) for p in range(SOURCES)] for each in found]

    @contextmanager
    def _reading(self, sink: VerifiedSink) -> Iterator[None]:
        """A reader of a sink that looks on in a thread of its own."""
        failures: list[BaseException] = []
        done = threading.Event()

        def look() -> None:
            try:
                _read(sink.target.reader(sink.address), sink.glances, done, self.plan.pause)
            except BaseException as error:
                failures.append(error)

        thread = threading.Thread(target=look, name="penstock-verify-reader")
        thread.start()
        try:
            yield
        finally:
            done.set()
            thread.join()
        if failures:
            raise RunError(f"the concurrent reader failed: {failures[0]!r}") from failures[0]


def _sent_only(rows: Mapping[int, list[SinkRow]]) -> dict[int, list[SinkRow]]:
    """The rows without those of the records that only let time pass."""
    return {part: [row for row in each if row.id < FAR] for part, each in rows.items()}


def _record(key: str, number: int, part: int) -> bytes | None:
    return json.dumps({"key": key, "id": number, "part": part}).encode()


def _read(reader: Reader, glances: Glances, done: threading.Event, pause: float) -> None:
    try:
        while not done.wait(pause):
            glances.append(reader.glance())
    finally:
        reader.close()


def _end_group(process: subprocess.Popen[bytes]) -> None:
    """Ends the driver; its JVM, in a group of its own, ends when it notices."""
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
