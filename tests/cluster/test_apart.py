"""Workers and drivers that share nothing: each worker in a mount namespace of its own, the checkpoint only under its URL."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from penstock.faults import SETTING
from penstock.storage import storage_at
from penstock.testing.stores import StoreServer, s3_environment, s3_server
from tests.cluster.conftest import BOTH, WORKERS, Cluster, running_cluster, why_not_apart
from tests.command_line import make_app
from tests.storage.proxy import FAULTS, at_random, fault_proxy

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(500)]

FLOW = """
import datetime, os, time
from pathlib import Path
import penstock as ps
from penstock.graph.graph import Graph

HERE = Path(__file__).parent
OUT = "s3://penstock/out"
WORDS, SENTENCES, BATCHES = {words}, {sentences}, {batches}
START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)

def out(name):
    return ps.write_files(f"{{OUT}}/{{name}}", "json")

class Numbered(ps.Process):
    nth = ps.value(int, default=0)
    def on_event(self, row):
        self.nth += 1
        yield row.word, self.nth

def look(row):
    time.sleep(0.2)  # while one worker is at it, the other takes the next task
    return row.word, os.environ.get("TMPDIR", ""), sorted(p.name for p in HERE.glob("*"))

def number(row):
    n = int(row.value)
    return n, n, 0

def halve(row):
    return row.start, row.n // 2 if row.n % 2 == 0 else 3 * row.n + 1, row.steps + 1

streams = ps.Flow("apart")
rows = [("abcdefgh"[i * i % 8], START + datetime.timedelta(seconds=i)) for i in range(WORDS)]
words = streams.source("words", ps.items(rows, "word string, ts timestamp", batches=BATCHES), event_time="ts", lateness="0s")
words.key_by("word").process("number", Numbered, "word string, nth bigint").sink("numbered", out("numbered"), delivery="exactly_once")
windows = words.key_by("word").window(ps.tumbling("10s")).count("n").select("plain", "word", "n")
windows.sink("windows", out("windows"), delivery="exactly_once")
words.repartition("spread", 2).map("look", look, "word string, worker string, seen array<string>").sink("looked", out("looked"))

lines = streams.source("lines", ps.stdin())
starts = lines.map("parse", number, "start bigint, n bigint, steps bigint").on_error("dead_letter")
again = streams.feedback("again", "start bigint, n bigint, steps bigint")
both = starts.union("both", again)
streams.feed(again, both.where("going", "n > 1").map("halve", halve, "start bigint, n bigint, steps bigint"))
both.where("done", "n = 1").select("steps", "start", "steps").sink("collatz", out("collatz"), delivery="exactly_once")

class Sentences(ps.Spout):
    outputs = "sentence string"
    def __init__(self):
        self.at = 0
    def next_tuple(self):
        if self.at == SENTENCES:
            return ps.END
        self.emit((f"a b{{self.at % 3}} c{{self.at % 5}}",))
        self.at += 1

class Split(ps.Bolt):
    outputs = "word string"
    stateful = False
    def process(self, tup):
        for word in tup.sentence.split():
            self.emit((word,))

class Count(ps.Bolt):
    outputs = "word string, n bigint"
    def prepare(self, context):
        self.counts = {{}}
    def process(self, tup):
        self.counts[tup.word] = self.counts.get(tup.word, 0) + 1
        self.emit((tup.word, self.counts[tup.word]))

topology = ps.Topology("words")
topology.spout("sentences", Sentences())
topology.bolt("split", Split(), parallelism=2).shuffle("sentences")
topology.bolt("tally", Count(), parallelism=2).fields("split", "word")
topology.sink("tallied", out("tallied"), from_="tally")

flow = Graph("apart", (*streams.graph.nodes, *topology.graph.nodes))
del streams, topology
"""
URL = "s3://penstock/flows/apart"
NOWHERE = "hdfs://127.0.0.1:9"
"""The file system of choice of the cluster, as YARN has one; nothing of the flow is there."""
OUT = "s3://penstock/out"
NUMBERS = (8, 5, 1, 4)
LINES = "".join(f"{n}\n" for n in (*NUMBERS, "seven"))


@dataclass(frozen=True)
class Size:
    """How much a run has to do."""

    words: int = 40
    sentences: int = 40
    batches: int = 4

    @property
    def flow(self) -> str:
        return FLOW.format(words=self.words, sentences=self.sentences, batches=self.batches)

    def answers(self) -> dict[str, Counter[tuple[Any, ...]]]:
        """What an uninterrupted run writes."""
        words = ["abcdefgh"[i * i % 8] for i in range(self.words)]
        tokens = [t for i in range(self.sentences) for t in ("a", f"b{i % 3}", f"c{i % 5}")]
        return {
            "numbered": _numbered(words),
            "windows": Counter((w, n) for (_, w), n in Counter((i // 10, w) for i, w in enumerate(words)).items()),
            "collatz": Counter((n, _steps(n)) for n in NUMBERS),
            "tallied": _numbered(tokens),
        }


def _numbered(words: list[str]) -> Counter[tuple[Any, ...]]:
    return Counter((w, n) for w, many in Counter(words).items() for n in range(1, many + 1))


def _steps(n: int) -> int:
    return 0 if n == 1 else 1 + _steps(n // 2 if n % 2 == 0 else 3 * n + 1)


def rows(name: str) -> list[dict[str, Any]]:
    """What a sink has written to the store."""
    storage = storage_at(f"{OUT}/{name}")
    names = [entry.name for entry in storage.list() if not entry.name.startswith("_penstock/")]
    return [json.loads(line) for each in names for line in storage.read(each).decode().splitlines()]


def batches_of(name: str) -> int:
    """How many batches a sink has shown rows of."""
    return len({each.split("-")[1] for each in storage_at(f"{OUT}/{name}").children() if each.startswith(f"{name}-")})


def workers_seen() -> set[str]:
    """The workers whose rows have reached the store."""
    return {Path(row["worker"]).name for row in rows("looked")}


@dataclass
class Machines:
    """A cluster, and drivers on machines of their own: directories that no worker sees."""

    folder: Path
    cluster: Cluster
    size: Size
    environment: Mapping[str, str]
    made: list[Path] = field(default_factory=list)

    def start(self, lines: str = "", more: Sequence[str] = (), **environment: str) -> subprocess.Popen[bytes]:
        """A driver that has nothing but the file of the flow and the URL."""
        own = self.folder / f"driver-{len(self.made)}"
        (own / "tmp").mkdir(parents=True)
        self.made.append(own)
        (own / "flow.py").write_text(self.size.flow)
        (own / "lines").write_text(lines)
        penstock = str(Path(sys.executable).with_name("penstock"))
        settings = ["spark.executor.memory=512m", "spark.task.maxFailures=8", f"spark.hadoop.fs.defaultFS={NOWHERE}"]
        settings += more
        command = [penstock, "run", "flow.py", "--master", self.cluster.url, "--checkpoint", URL, "--lease", "3s"]
        command += ["--until-idle", "3s", "--drain", *(part for each in settings for part in ("--conf", each))]
        with (own / "lines").open("rb") as given, (self.folder / f"{own.name}.log").open("wb") as output:
            return subprocess.Popen(
                command,
                stdin=given,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=own,
                env={**os.environ, **self.environment, **environment, "TMPDIR": str(own / "tmp")},
            )

    def said(self) -> str:
        """What the last driver has said."""
        return (self.folder / f"{self.made[-1].name}.log").read_text(errors="replace")

    def lose(self, driver: subprocess.Popen[bytes]) -> None:
        """Kills what is left of a driver, and deletes all that its machine had."""
        with_group(driver, signal.SIGKILL)
        shutil.rmtree(self.made[-1])
        self.made[-1].mkdir()

    def wait_until(self, is_so: Callable[[], bool], driver: subprocess.Popen[bytes], seconds: float = 200) -> None:
        """Waits for something that a driver brings about."""
        deadline = time.monotonic() + seconds
        while not is_so():
            assert driver.poll() is None, self.said()
            assert time.monotonic() < deadline, self.said()
            time.sleep(0.2)


def with_group(driver: subprocess.Popen[bytes], number: int) -> None:
    """Sends a signal to a driver and all that it has started."""
    with suppress(ProcessLookupError):
        os.killpg(driver.pid, number)
    driver.wait()


@pytest.fixture(scope="module")
def store() -> Iterator[StoreServer]:
    with s3_server() as made, made.as_environment():
        yield made


@contextmanager
def machines(folder: Path, size: Size, environment: Mapping[str, str]) -> Iterator[Machines]:
    """A cluster whose workers see neither each other's directories nor those of drivers."""
    reason = why_not_apart(folder / "probe")
    if reason:
        pytest.skip(
            f"workers that share no directory need mount namespaces, which this machine does not allow: {reason}"
        )
    for url in (URL, OUT):
        storage = storage_at(url)
        storage.delete(*(entry.name for entry in storage.list()))
    cluster = folder / "cluster"
    (folder / "drivers").mkdir()
    hidden = {n: [folder / "drivers", *(cluster / other for other in WORKERS if other != n)] for n in WORKERS}
    with running_cluster(cluster, environment, hidden) as made:
        yield Machines(folder / "drivers", made, size, environment)


def check(size: Size) -> None:
    """Nothing is lost and nothing doubled."""
    for name, expected in size.answers().items():
        found = Counter(tuple(row.values()) for row in rows(name))
        assert found == expected, f"{name}: lost {expected - found}, doubled {found - expected}"
    told = CliRunner().invoke(make_app(), ["dlq", "list", URL, "--json"])
    assert [letter["step"] for letter in json.loads(told.output)] == ["parse"], told.output


def survive(made: Machines, points: Sequence[str]) -> None:
    """A worker that took part is killed, then a driver at each of some points; all that a driver had is deleted, and another goes on."""
    driver = made.start(LINES, BOTH, **{SETTING: points[0]})
    made.wait_until(lambda: batches_of("numbered") >= 2 and bool(workers_seen()), driver)
    made.cluster.kill(min(workers_seen()))
    for point in (*points[1:], ""):
        assert driver.wait(timeout=300) == -signal.SIGKILL, made.said()
        made.lose(driver)
        driver = made.start(**({SETTING: point} if point else {}))
    assert driver.wait(timeout=300) == 0, made.said()
    check(made.size)
    looked = rows("looked")
    assert not [row for row in looked if row["seen"]], "no task sees the directory of its driver"
    assert workers_seen() == set(WORKERS), "the other worker went on"


def test_a_flow_survives_its_workers_and_drivers_though_nothing_is_shared(tmp_path: Path, store: StoreServer) -> None:
    with machines(tmp_path, Size(), store.environment) as made:
        survive(made, ["after sink commit@3"])


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_a_longer_flow_survives_them_while_the_network_to_the_store_fails(tmp_path: Path, store: StoreServer) -> None:
    """One request in thirty is lost, cut, delayed or refused, of drivers and workers alike; two drivers die."""
    with fault_proxy(store.server.port) as proxy:
        proxy.choose = at_random(1 / 30, 13, FAULTS)
        with machines(tmp_path, Size(120, 200, 8), s3_environment(proxy.url)) as made:
            survive(made, ["manifest published@4", "sinks written@6"])
        assert {fault for _, _, fault in proxy.requests} == {"", *FAULTS}, "every fault was met"
        assert {method for method, _, fault in proxy.requests if fault} >= {"GET", "PUT"}
