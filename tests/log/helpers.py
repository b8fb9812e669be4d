"""What several tests of the log use."""

from __future__ import annotations

import os
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

from penstock.log import Log, LogDamaged, Record


def values(log: Log, topic: str = "t", partition: int = 0, offset: int = 0) -> list[bytes | None]:
    """All values from an offset on."""
    return [r.value for r in log.read(topic, partition, offset)]


def fill(log: Log, batches: int, per_batch: int = 2, topic: str = "t", text: str = "value") -> list[bytes]:
    """Append batches of numbered values; those values."""
    sent: list[bytes] = []
    with log.producer() as producer:
        for number in range(batches):
            batch = [f"{text} {number}.{n}".encode() for n in range(per_batch)]
            producer.send_many(topic, batch)
            sent += batch
    return sent


def segments(path: Path, topic: str = "t", partition: int = 0) -> list[Path]:
    """The segment files of a partition, in order."""
    return sorted((path / "topics" / topic / str(partition)).glob("*.log"))


def read_until_damage(log: Log, topic: str = "t") -> tuple[list[Record], LogDamaged | None]:
    """Records up to the first damage, and the damage."""
    records: list[Record] = []
    cursor = log.consumer(None, topic)
    try:
        while batch := cursor.poll(3):
            records += batch
    except LogDamaged as error:
        return records, error
    finally:
        cursor.close()
    return records, None


def run_python(code: str, *args: object, wait: bool = True) -> subprocess.Popen[str]:
    """Run code in a process of its own."""
    command = [sys.executable, "-c", code, *map(str, args)]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    if wait:
        process.wait(300)
    return process


def forked(action: Callable[[], None]) -> int:
    """Run an action in a forked child without threads of its own; how the child ended (0, or -9 when it was killed)."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            action()
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
