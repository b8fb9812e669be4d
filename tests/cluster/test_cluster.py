"""The same answers on a real cluster of two workers, also when one of them dies in mid-run."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.conftest import BOTH, Cluster

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(400)]

FLOW = """
import os, time
from pathlib import Path
import penstock as ps
from texts.split import Splitter, words_of     # a package of the user's own, beside this file

HERE = Path(__file__).parent

class Numbered(ps.Process):
    nth = ps.value(int, default=0)
    def on_event(self, row):
        self.nth += 1
        yield row.word, self.nth

def who(row):
    import penstock
    time.sleep(0.002)
    return row.word, os.environ.get("SPARK_EXECUTOR_DIRS", "") or os.getcwd(), penstock.__file__

flow = ps.Flow("cluster")
lines = flow.source("lines", ps.files(HERE / "in", "text", files_per_batch=1))
words = lines.flat_map("split", words_of, "word string")
words.key_by("word").process("number", Numbered, "word string, nth bigint").sink("numbered", ps.write_files(HERE / "numbered", "json"))
words.key_by("word").count("n").sink("counts", ps.write_files(HERE / "counts", "json"))
words.repartition("spread", 2).map("look", who, "word string, where string, penstock string").sink("who", ps.write_files(HERE / "who", "json"))
records = flow.source("records", ps.files(HERE / "records", "json", schema="id bigint, name string, at timestamp"))
records.sink("read", ps.write_files(HERE / "read", "json"))
lines.map("cut", Splitter(" "), "first string").sink("firsts", ps.write_files(HERE / "firsts", "json"))
"""
PACKAGE = """
class Splitter:
    def __init__(self, by): self.by = by
    def __call__(self, row): return row.value.split(self.by)[0]

def words_of(row):
    return row.value.split()
"""
RECORDS = (
    *(f'{{"id":{n},"name":"n{n}","at":"2026-05-01 12:30:0{n}.5"}}' for n in range(8)),
    *(
        r'{"id":8,"name":"\u00fc","at":"2026-05-01T12:30:08.5Z"}',
        r' { "at" : null , "other" : [1] , "name" : "a\"b" } ',
    ),
)
"""Most of them plain, the last two not."""
TEXTS = [" ".join("abcdefgh"[(i * j) % 8] for j in range(40)) for i in range(1, 9)]


def prepare(folder: Path) -> None:
    """The user's files."""
    (folder / "texts").mkdir(parents=True)
    (folder / "texts" / "__init__.py").touch()
    (folder / "texts" / "split.py").write_text(PACKAGE)
    (folder / "flow.py").write_text(FLOW)
    (folder / "records").mkdir()
    for half in (0, 1):
        (folder / "records" / f"{half}.json").write_text("\n".join(RECORDS[half::2]) + "\n")
    (folder / "in").mkdir()
    for at, text in enumerate(TEXTS):
        (folder / "in" / f"{at}.txt").write_text(text + "\n")


def start(folder: Path, cluster: Cluster, *more: str) -> subprocess.Popen[str]:
    """`penstock run` against the cluster."""
    penstock = str(Path(sys.executable).with_name("penstock"))
    settings = ["spark.executor.memory=512m", "spark.task.maxFailures=8", *BOTH]
    settings = [word for each in settings for word in ("--conf", each)]
    command = [penstock, "run", str(folder / "flow.py"), "--master", cluster.url, *settings, *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, cwd=folder.parent)


def rows(folder: Path) -> list[dict[str, Any]]:
    """The rows of a folder of JSON files, in the order of the batches."""
    return [json.loads(line) for p in sorted(folder.glob("*.json")) for line in p.read_text().splitlines()]


def check(folder: Path) -> None:
    """The answers, which do not depend on where it ran."""
    expected = Counter(" ".join(TEXTS).split())
    assert {r["word"]: r["n"] for r in rows(folder / "counts")} == expected
    numbered = Counter((r["word"], r["nth"]) for r in rows(folder / "numbered"))
    assert numbered == Counter((w, i) for w, n in expected.items() for i in range(1, n + 1))
    read = {(r.get("id"), r.get("name"), (r.get("at") or "")[:21]) for r in rows(folder / "read")}
    plain = {(n, f"n{n}", f"2026-05-01T12:30:0{n}.5") for n in range(8)}
    assert read == {*plain, (8, "ü", "2026-05-01T12:30:08.5"), (None, 'a"b', "")}
    assert Counter(r["first"] for r in rows(folder / "firsts")) == Counter(t.split()[0] for t in TEXTS)


def test_bounded_on_two_workers_with_the_users_own_modules(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    prepare(folder)
    (tmp_path / "events").mkdir()
    events = (f"spark.eventLog.dir=file:{tmp_path / 'events'}", "spark.eventLog.enabled=true")
    plain = ("spark.eventLog.compress=false", "spark.eventLog.rolling.enabled=false")
    run = start(folder, cluster, "--batch", *(word for each in (*events, *plain) for word in ("--conf", each)))
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output
    check(folder)
    (log,) = (tmp_path / "events").iterdir()
    assert "AS __plain#" in log.read_text(), "executors read JSON from its bytes"
    assert "from_json alone" not in output
    seen = rows(folder / "who")
    assert len({r["where"] for r in seen}) == 2, "both workers took part"
    assert all(".zip" in r["penstock"] for r in seen), "workers ran the penstock that was sent to them"


@pytest.mark.slow  # test_apart.py kills a worker, and more
def test_killing_a_worker_in_mid_run_changes_nothing(cluster: Cluster, tmp_path: Path) -> None:
    folder = tmp_path / "job"
    prepare(folder)
    run = start(folder, cluster, "--once", "--checkpoint", str(folder / "checkpoint"))
    deadline = time.monotonic() + 200
    while not list((folder / "counts").glob("counts-00000001-*")) and time.monotonic() < deadline:
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.1)
    cluster.kill("one")
    output, _ = run.communicate(timeout=300)
    assert run.returncode == 0, output
    check(folder)
