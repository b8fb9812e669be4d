"""A driver that stands by takes over when the leader falls silent; the leader that wakes stops, and nothing is lost or doubled."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.waiting import wait_until

pytestmark = [pytest.mark.spark, pytest.mark.slow]

MAIN = "from penstock.cli.main import main; main()"
FLOW = """
from collections.abc import Iterator
from pathlib import Path
from typing import Any
import penstock as ps

HERE = Path(__file__).parent

class Numbered(ps.Process):
    nth = ps.value(int, default=0)
    def on_event(self, row: Any) -> Iterator[Any]:
        self.nth += 1
        yield row.word, self.nth

flow = ps.Flow("relay")
words = flow.source("words", ps.files(HERE / "in", "json", "word string"))
numbered = words.key_by("word").process("number", Numbered, "word string, nth bigint")
numbered.sink("out", ps.write_files(HERE / "out", "json"))
"""


class Relay:
    """A flow in a folder, and its drivers, which share a checkpoint by its URL."""

    def __init__(self, folder: Path, lease: str) -> None:
        self.folder, self.lease, self.files = folder, lease, 0
        (folder / "in").mkdir()
        (folder / "flow.py").write_text(FLOW)

    @contextmanager
    def driver(self, name: str, *options: str) -> Iterator[subprocess.Popen[str]]:
        """A driver in a process group of its own, with its output in a file."""
        command = [sys.executable, "-c", MAIN, "run", str(self.folder / "flow.py"), "--progress", "plain"]
        shared = ["--checkpoint", (self.folder / "shared").as_uri(), "--lease", self.lease, "--master", "local[2,4]"]
        with (self.folder / f"{name}.txt").open("w") as output:
            made = subprocess.Popen(
                [*command, *shared, *options],
                stdout=output,
                stderr=subprocess.STDOUT,
                text=True,
                start_new_session=True,
            )
        try:
            yield made
        finally:
            for each in (signal.SIGCONT, signal.SIGKILL):
                end_group(made.pid, each)
            made.wait()

    def said(self, name: str) -> str:
        """What a driver has said."""
        return (self.folder / f"{name}.txt").read_text()

    def put(self, words: str) -> None:
        """One more file of input."""
        self.files += 1
        beside = self.folder / f"{self.files}.json"
        beside.write_text("".join(json.dumps({"word": word}) + "\n" for word in words))
        beside.rename(self.folder / "in" / beside.name)

    def rows(self) -> Counter[tuple[str, int]]:
        """What came out."""
        files = (self.folder / "out").glob("*.json")  # not below: what waits aside comes and goes
        found = [json.loads(line) for p in files for line in p.read_text().splitlines()]
        return Counter((row["word"], row["nth"]) for row in found)

    def has(self, words: str) -> bool:
        """Whether exactly these words came out, each numbered once."""
        return self.rows() == Counter((w, n) for w, many in Counter(words).items() for n in range(1, many + 1))


def end_group(group: int, sent: signal.Signals) -> None:
    try:
        os.killpg(group, sent)
    except ProcessLookupError:
        return


@pytest.mark.timeout(900)
def test_a_standby_takes_over_from_a_driver_that_is_paused_and_that_stops_when_it_wakes(tmp_path: Path) -> None:
    relay = Relay(tmp_path, "2s")
    with relay.driver("leader") as leader:
        relay.put("aab")
        wait_until(lambda: relay.has("aab"), 200)
        with relay.driver("standby", "--standby") as standby:
            wait_until(lambda: f"standing by: process {leader.pid} on" in relay.said("standby"), 200)
            relay.put("ab")
            wait_until(lambda: relay.has("aabab"), 200)
            end_group(leader.pid, signal.SIGSTOP)
            relay.put("abc")
            wait_until(lambda: relay.has("aabababc"), 200)
            assert "taking over, epoch 2" in relay.said("standby")
            end_group(leader.pid, signal.SIGCONT)
            assert leader.wait(300) == 1
            assert "no longer has the checkpoint" in relay.said("leader")
            relay.put("c")
            wait_until(lambda: relay.has("aabababcc"), 200)
            standby.send_signal(signal.SIGTERM)
            assert standby.wait(300) == 0, relay.said("standby")
    with relay.driver("refused") as refused:
        relay.put("d")
        wait_until(lambda: relay.has("aabababccd"), 200)
        with relay.driver("second") as second:
            assert second.wait(300) == 1
            assert f"flow 'relay' runs already: process {refused.pid} on" in relay.said("second")
