"""What a batch asks of a shared storage: each request costs money, and as long as the way there and back."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from penstock.compiler.times import Timeline
from penstock.frontends.streams.flow import Flow
from penstock.graph.endpoints.basic import files, write_files
from penstock.graph.graph import Graph
from penstock.graph.state.key_groups import HASH_BITS, SLOTS
from penstock.live.dead_letters.replay import Replays
from penstock.live.timekeeper import RunTime
from penstock.spark.checkpoint.mirror import LogMirror
from penstock.state.store import StateStore, is_state_file
from penstock.state.values import FileState
from penstock.storage import CachedStorage, mounted, open_storage
from tests.spark.checkpoints import COUNT
from tests.storage.objects import ObjectStorage


class SharedRun:
    """A run without Spark: what the driver and the tasks of a keyed step ask of the storage, batch by batch."""

    def __init__(self, folder: Path, work: Path, tasks: int) -> None:
        self.tasks, self.work = tasks, work
        self.mirror = LogMirror(folder, work, epoch=1)
        cached = CachedStorage(open_storage(folder / "state"), is_state_file, work / "copies")
        self.store = StateStore(cached, run="r", epoch=1)
        self.replays = Replays(folder / "replay")
        self.time = RunTime(Timeline(_graph()), self.store if tasks else None)
        self.mirror.build()
        _write(work / "spark" / "metadata", b'{"id":"x"}')

    def run(self, batch: int, *, has_words: bool) -> None:
        """A batch that counts words."""
        _write(self.work / "spark" / "offsets" / str(batch), f'v1\n{{}}\n{{"t":{{"0":{batch}}}}}'.encode())
        self.mirror.begin(batch)
        self.time.begin(batch, batch - 1)
        self.replays.claim(batch, again=batch == 0)
        if self.tasks:
            self._count(batch, has_words=has_words)
        self.mirror.finish(batch)
        _write(self.work / "spark" / "commits" / str(batch), b"v1\n{}")

    def _count(self, batch: int, *, has_words: bool) -> None:
        """What the tasks do, and the driver after them; each task has a key of its own."""
        files = self.store.begin(batch, {"count": self.tasks}, batch - 1)["count"]
        for task in range(self.tasks):
            state = FileState(files, task)
            state.describe(COUNT)
            if has_words:
                key, (slot, _) = (f"word {task}",), files.ranges(task).spans[0]
                state.prefetch([key], [(slot - SLOTS // 2) << HASH_BITS])
                state.put(key, (batch,))
            state.save()
        self.store.publish(batch, self.time.finish(batch, {}))


def _graph() -> Graph:
    flow = Flow("f")
    flow.source("in", files("in", "json", "a string")).sink("out", write_files("out", "json"))
    return flow.graph


def _write(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)


CASES = {
    "no state": (0, False, {"put": 2, "list": 1}),
    "one task, no records": (1, False, {"put": 3, "list": 1}),
    "8 tasks, no records": (8, False, {"put": 3, "list": 1}),
    "8 tasks, each with a key": (8, True, {"put": 11, "list": 1}),
}
"""Tasks, whether they change something, and what is asked for."""


@pytest.mark.parametrize("case", CASES)
def test_requests_of_a_batch(tmp_path: Path, case: str) -> None:
    """Offsets, commit, a look for dead letters to replay; with state the manifest. What tasks note comes by Spark.

    A task that changes something puts a file; that of the batch before is on the disk of the worker that wrote it.
    """
    storage, (tasks, has_words, expected) = ObjectStorage(), CASES[case]
    with mounted(tmp_path / "bucket", storage) as there:
        run = SharedRun(there, tmp_path / "work", tasks)
        for batch in range(3):
            run.run(batch, has_words=has_words)
        before = Counter(storage.requests)
        run.run(3, has_words=has_words)
        assert dict(Counter(storage.requests) - before) == expected
