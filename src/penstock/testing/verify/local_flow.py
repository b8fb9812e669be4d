"""The flow of `penstock verify jobs` on the local host: its batches, written as lines."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any

from penstock.graph.endpoints.log import write_topic
from penstock.local.bounded import read_table
from penstock.local.clock import Clock
from penstock.local.run import CommittedState, LocalRun
from penstock.testing.verify.program import flow_of

RECORDS, KEYS = 10, 7
"""How many records a batch has, and how many keys."""
LAST = 1 << 16
"""The last line is in so many bytes."""


class LocalFlow:
    """The flow of `penstock verify` on the local host, from where a file says it was."""

    def __init__(self, path: Path) -> None:
        self.path, self.upto = path, 0
        last = self._cut()
        self.upto = last.get("upto", 0)
        states = {step: base64.b64decode(text) for step, text in last.get("states", {}).items()}
        graph = flow_of(path.parent, write_topic("out", path=path.parent)).graph  # it is this file that is written
        self.run = LocalRun(graph, read_table, Clock(time.time()), CommittedState(states))

    def _cut(self) -> dict[str, Any]:
        """Takes away what was written in part; returns the last line that is whole."""
        if not self.path.exists():
            return {}
        with self.path.open("r+b") as file:
            file.seek(max(0, self.path.stat().st_size - LAST))
            begin, text = file.tell(), file.read()
            whole = text.rfind(b"\n") + 1
            file.truncate(begin + whole)
        lines = text[:whole].splitlines()
        return dict(json.loads(lines[-1])) if lines else {}

    def batch(self) -> bytes:
        """One more batch, as the line that commits it."""
        ids = range(self.upto, self.upto + RECORDS)
        self.run.push("numbers", *({"key": f"k{n % KEYS}", "id": n} for n in ids))
        self.run.barrier(waiting=True)
        kept, self.upto = self.run.committed, ids.stop
        rows = [[row.key, row.nth, row.id] for row in kept.results.pop("out")]
        states = {step: base64.b64encode(state).decode() for step, state in kept.states.items()}
        return json.dumps({"upto": self.upto, "rows": rows, "states": states}).encode() + b"\n"
