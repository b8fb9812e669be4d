"""The jobs of a verification: flows on the local host, without a JVM, and flows with Spark."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from penstock.client import Client
from penstock.jobs.manager.bundle import pack
from penstock.log import Log
from penstock.testing.verify.job_driver import LOCAL, WRITTEN, read_lines
from penstock.testing.verify.program import TOPIC
from penstock.testing.verify.targets import PARTITIONS, LogTarget

FED = 5
"""Records that a flow with Spark gets at a time, four times a second."""
FLOW = """\
from pathlib import Path
from penstock.testing.verify.job_driver import claim_here
from penstock.testing.verify.program import flow_of
from penstock.testing.verify.targets import target_of

claim_here()
folder = Path({folder!r})
flow = flow_of(folder, target_of("log").endpoint({address!r}))
"""
OPTIONS = {
    "interval": "1s",
    "master": "local[1,4]",
    "conf": {
        "spark.driver.memory": "512m",
        "spark.driver.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
    },
}
"""One core, a small heap, and a compiler that is quick rather than thorough: drivers here live for a minute."""


class VerifiedJob(Protocol):
    """A job, and what it has written."""

    name: str

    def submit(self, client: Client) -> None:
        """Has it run."""

    def written(self) -> int:
        """How much is there; it only grows."""

    def is_through(self) -> bool:
        """Whether all that was sent has been written."""

    def found(self) -> tuple[list[int], list[list[int]]]:
        """What was sent, and what is there, by part, in its order."""


@dataclass
class LocalJob:
    """A flow with state on the local host: its driver commits records, state and position in one line of a file."""

    name: str
    directory: Path

    def submit(self, client: Client) -> None:
        """Has it run."""
        client.submit(self.name, client.bundle(pack([])), LOCAL)

    def written(self) -> int:
        """The bytes that are there."""
        path = self.directory / WRITTEN
        return path.stat().st_size if path.exists() else 0

    def is_through(self) -> bool:
        """It is never behind."""
        return True

    def found(self) -> tuple[list[int], list[list[int]]]:
        """The ids by key, in their order; one whose number in its key is wrong stands as -1, which nobody sent."""
        keys: dict[str, list[int]] = {}
        upto = 0
        for line in read_lines(self.directory / WRITTEN):
            upto = line["upto"]
            for key, nth, number in line["rows"]:
                ids = keys.setdefault(key, [])
                ids.append(number if nth == len(ids) + 1 else -1)
        return list(range(upto)), list(keys.values())


class SparkJob:
    """A flow with state that reads a topic and writes another one exactly once; it is fed as long as it is verified."""

    def __init__(self, name: str, folder: Path, stack: ExitStack) -> None:
        self.name, self.folder = name, folder
        folder.mkdir(exist_ok=True)
        with Log(folder / "log") as log, Log(folder / "out") as out:
            if TOPIC not in log.topics():
                log.create_topic(TOPIC, 1)
            if "out" not in out.topics():
                out.create_topic("out", PARTITIONS)
            self.sent = log.offsets(TOPIC)[0][1]
        self.address = {"path": str(folder / "out")}
        self.reader = LogTarget().reader(self.address)
        stack.callback(self.reader.close)
        stack.enter_context(self._fed())

    @contextmanager
    def _fed(self) -> Iterator[None]:
        self.ended = threading.Event()
        self.feeder = threading.Thread(target=self._feed, name="penstock-verify-feed", daemon=True)
        self.feeder.start()
        try:
            yield
        finally:
            self.ended.set()
            self.feeder.join()

    def _feed(self) -> None:
        with Log(self.folder / "log") as log, log.producer() as producer:
            while not self.ended.wait(0.25):
                ids = range(self.sent, self.sent + FED)
                values = [json.dumps({"key": f"k{i % 7}", "id": i, "part": 0}).encode() for i in ids]
                producer.send_many(TOPIC, values, partition=0)
                self.sent += FED

    def submit(self, client: Client) -> None:
        """Has it run."""
        file = self.folder / "flow.py"
        file.write_text(FLOW.format(folder=str(self.folder), address=self.address))
        bundle = client.bundle(pack([(file.name, file)]))
        client.submit(self.name, bundle, file.name, OPTIONS)

    def written(self) -> int:
        """How many records are there."""
        return sum(glance.rows for glance in self.reader.glance().values())

    def is_through(self) -> bool:
        """Whether all that was sent has been written."""
        self.ended.set()
        self.feeder.join()
        return self.written() >= self.sent

    def found(self) -> tuple[list[int], list[list[int]]]:
        """What was sent, and what is there: the ids of each key in their order."""
        rows = [row for part in self.reader.rows().values() for row in part]
        keys = sorted({row.key for row in rows})
        return list(range(self.sent)), [[row.id for row in rows if row.key == key] for key in keys]
