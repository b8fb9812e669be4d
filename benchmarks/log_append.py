"""Appending to the embedded log, on disk before it counts. No peer; the figures of a bare file beside it say what the disk can do."""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.harness import Bar, Result, alternate, best, folder
from penstock.log import Log

NAME = "log-append"
ABOUT = "records of 100 bytes into the log, group commit with fsync, one process"
VALUE = b"x" * 100
GROUP = 10_000


def by_record(directory: Path, records: int) -> None:
    """One `send` for each record; the producer's thread commits what has come together."""
    with _log(directory) as log, log.producer() as producer:
        send = producer.send
        for _ in range(records):
            ack = send("t", VALUE)
        ack.result()


def by_batch(directory: Path, records: int) -> None:
    """`send_many`, which returns when its records are on disk."""
    values = [VALUE] * GROUP
    with _log(directory) as log, log.producer() as producer:
        for _ in range(records // GROUP):
            producer.send_many("t", values)


def bare_file(directory: Path, records: int) -> None:
    """The same bytes in the same groups, appended to a file."""
    data = VALUE * GROUP
    fd = os.open(_fresh(directory) / "bare", os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        for _ in range(records // GROUP):
            os.write(fd, data)
            os.fdatasync(fd)
    finally:
        os.close(fd)


def _fresh(directory: Path) -> Path:
    made = directory / str(len(list(directory.iterdir())))
    made.mkdir()
    return made


def _log(directory: Path) -> Log:
    log = Log(_fresh(directory))
    log.create_topic("t")
    return log


def run(quick: bool) -> Result:
    records, rounds = (200_000, 2) if quick else (1_000_000, 5)
    with folder() as directory:
        runs = {
            "by_record": lambda: by_record(directory, records),
            "by_batch": lambda: by_batch(directory, records),
            "bare_file": lambda: bare_file(directory, records),
        }
        seconds = best(alternate(runs, rounds))
    rates = {f"{name}_records_per_second": records / value for name, value in seconds.items()}
    bars = (
        Bar("records per second, one send each", records / seconds["by_record"], at_least=300_000),
        Bar("records per second, in batches", records / seconds["by_batch"], at_least=300_000),
    )
    return Result(NAME, {"records": records, **rates}, bars)
