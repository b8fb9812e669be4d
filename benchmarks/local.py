"""local: word count and keyed state on the local host, which runs the compiled plan with the production kernels.

    penstock bench local

Both flows run over lists in memory: lines of ten words for the word count (a `flat_map` in Python, `key_by`, `count`), and records over
1,000 keys for a `process` step that counts in Python. A record is what the source gives: a line, not a word.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import penstock as ps
from benchmarks.harness import Bar, Result, alternate, best
from penstock.testing import run_local

NAME = "local"
ABOUT = "word count and a process step on the local host: at least 100,000 records/s each"
WORDS, KEYS = 10, 1_000


class Counter(ps.Process):
    """Numbers the records of a key."""

    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        """The next number."""
        self.n += 1
        yield row.key, self.n


def word_count() -> ps.Flow:
    """Splits lines and counts words."""
    flow = ps.Flow("local-word-count")
    lines = flow.source("lines", ps.items([], "line string"))
    words = lines.flat_map("split", lambda row: row.line.split(), schema="word string")
    words.key_by("word").count("n").sink("out", ps.console())
    return flow


def process() -> ps.Flow:
    """Counts in a class of the user's own."""
    flow = ps.Flow("local-process")
    events = flow.source("events", ps.items([], "key string"))
    events.key_by("key").process("count", Counter, "key string, n bigint").sink("out", ps.console())
    return flow


def run(quick: bool = False) -> Result:
    """Measures both."""
    records = 20_000 if quick else 100_000
    lines = [" ".join(f"w{(i * 7 + j * 31) % 5_000}" for j in range(WORDS)) for i in range(records)]
    events = [f"k{i % KEYS}" for i in range(records)]
    runs = {
        "word_count": lambda: run_local(word_count(), {"lines": lines}),
        "process": lambda: run_local(process(), {"events": events}),
    }
    taken = best(alternate(runs, rounds=3))
    speeds = {f"{name}_records_per_second": records / seconds for name, seconds in taken.items()}
    return Result(NAME, speeds, tuple(Bar(name, speed, at_least=100_000) for name, speed in speeds.items()))
