"""shell-bolt: tuples through a bolt that is a Python program, by Storm's multilang protocol.

    penstock bench shell-bolt

The program reads and writes in large pieces, emits each tuple anchored and acks it. The bolt runs in this process, without the host of a topology around it, so
that the figure is that of the protocol.
"""

from __future__ import annotations

import sys
import time
from copy import deepcopy
from typing import Any

import penstock as ps
from benchmarks.harness import Bar, Result
from penstock.graph.logic.topology.collector import Collector
from penstock.graph.logic.topology.task_context import TaskContext
from penstock.graph.logic.topology.tuples import DEFAULT, tuple_class

NAME = "shell-bolt"
ABOUT = "tuples through a Python multilang process: at least 50,000 a second"
PROGRAM = r"""
import json, os
rest, end, first = b"", b"\nend\n", True
while data := os.read(0, 1 << 20):
    *messages, rest = (rest + data).split(end)
    out = []
    for message in json.loads(b"[" + b",".join(messages) + b"]") if messages else ():
        if first:
            first = False
            open(f"{message['pidDir']}/{os.getpid()}", "w").close()
            out.append(f'{{"pid":{os.getpid()}}}\nend\n')
        elif message["stream"] == "__heartbeat":
            out.append('{"command":"sync"}\nend\n')
        else:
            number, values = message["id"], json.dumps(message["tuple"])
            out.append(f'{{"command":"emit","anchors":["{number}"],"tuple":{values},"need_task_ids":false}}\nend\n')
            out.append(f'{{"command":"ack","id":"{number}"}}\nend\n')
    view = memoryview("".join(out).encode())
    while view:
        view = view[os.write(1, view):]
"""


def opened() -> Any:
    """The bolt as a task has it."""
    bolt: Any = deepcopy(ps.ShellBolt([sys.executable, "-c", PROGRAM], "word string, n bigint"))
    bolt._collector, bolt._context = Collector([DEFAULT]), TaskContext("bolt")
    bolt.prepare(bolt._context)
    return bolt


def seconds(bolt: Any, tuples: list[Any]) -> float:
    """How long a batch takes."""
    before = len(bolt._collector.records[DEFAULT])
    began = time.perf_counter()
    for tup in tuples:
        bolt.process(tup)
    bolt.end_batch(1)
    taken = time.perf_counter() - began
    assert len(bolt._collector.records[DEFAULT]) - before == len(tuples)
    return taken


def run(quick: bool = False) -> Result:
    """Measures batches after a short one that only warms up."""
    many = 50_000 if quick else 200_000
    cls = tuple_class(("word", "n"), "words", DEFAULT, False)
    tuples: list[Any] = [tuple.__new__(cls, (f"word{i % 1000}", i)) for i in range(many)]
    bolt = opened()
    try:
        seconds(bolt, tuples[:1000])
        best = min(seconds(bolt, tuples) for _ in range(1 if quick else 3))
    finally:
        bolt.close()
    rate = many / best
    return Result(NAME, {"tuples_per_second": rate}, (Bar("tuples_per_second", rate, at_least=50_000),))
