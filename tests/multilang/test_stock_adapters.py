"""Storm's own adapters for Python, JavaScript and Ruby: spouts and bolts on them run unchanged, with acks, replay and task ids."""

from __future__ import annotations

import logging
import shutil
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.connectors.kafka.jars import Jar
from penstock.spark.jvm.jars import get_jars
from penstock.testing import run_local, run_spark

pytestmark = pytest.mark.spark  # the first run fetches the adapters, for which it needs a JVM
PROGRAMS = Path(__file__).parent / "programs" / "stock"
ADAPTERS = {
    "python": ("py", "1175f093ef1576946f09555a13a784bc7f181353cecbd79ad668a5f7dd7ee2c2"),
    "javascript": ("js", "1960fea8a1c6c685cb87b44631a83d0a739453686bd7db8e9329683ae842be08"),
    "ruby": ("rb", "6a8f47101454aec7d599f39f2126abb2b7e32499e5ad232b653d90bd77e6eda3"),
}
SENTENCES = ["a b a", "x b", "c a"]
WORDS = " ".join(SENTENCES).split()


def interpreter(language: str) -> str:
    if language == "python":
        return sys.executable
    name = {"javascript": "node", "ruby": "ruby"}[language]
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"no {name} on this machine")
    return found


def program(language: str, folder: Path) -> list[str]:
    """A program on the adapter of a language, which is taken out of its JAR."""
    ending, sha256 = ADAPTERS[language]
    started = interpreter(language)
    [jar] = get_jars([Jar("org.apache.storm", f"multilang-{language}", "2.8.1", sha256)])
    with zipfile.ZipFile(jar) as archive:
        (folder / f"storm.{ending}").write_bytes(archive.read(f"resources/storm.{ending}"))
    shutil.copy(PROGRAMS / f"words.{ending}", folder)
    return [started, str(folder / f"words.{ending}")]


def topology(command: list[str], spout: Any = None) -> ps.Topology:
    top = ps.Topology("stock", config={"own.sentences": SENTENCES})
    own = ps.ShellSpout([*command, "Sentences"], ["sentence"])
    top.spout("sentences", own if spout is None else spout, limit=len(SENTENCES) + 1 if spout is None else None)
    split = ps.ShellBolt([*command, "Split"], {"default": ["word", "n bigint"], "sent": ["word", "task int"]})
    top.bolt("split", split).shuffle("sentences")
    count = ps.ShellBolt([*command, "Count"], ["word", "n bigint", "task int", "component"])
    top.bolt("count", count, parallelism=3).fields("split", "word")
    top.sink("out", ps.console(), from_="count")
    top.sink("sent", ps.console(), from_="split", stream="sent")
    return top


@pytest.mark.parametrize("language", ADAPTERS)
def test_a_topology_on_a_stock_adapter_runs_unchanged(
    language: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Every message is acked, the one that failed after a replay; the tasks that were told are those that counted."""
    with caplog.at_level(logging.INFO, "penstock.shell"):
        results = run_local(topology(program(language, tmp_path)))
    counted = {(word, n): task for word, n, task, _ in results["out"]}
    assert sorted(counted) == sorted((w, i + 1) for w in set(WORDS) for i in range(WORDS.count(w)))
    assert {component for *_, component in results["out"]} == {"split"}
    told = dict(results["sent"])
    assert {word: task for (word, _), task in counted.items()} == told
    said = [record.getMessage().partition(": ")[2] for record in caplog.records]
    assert [s for s in said if s.startswith("failed")] == ["failed x b"]
    assert sorted(s for s in said if s.startswith("acked")) == sorted(f"acked {s}" for s in SENTENCES)
    assert f"{SENTENCES[0]} goes to 1" in said


def test_a_stock_adapter_runs_in_workers_of_spark(penstock_spark: Any, tmp_path: Path) -> None:
    top = topology(program("javascript", tmp_path), ps.items([s for s in SENTENCES if "x" not in s], "sentence string"))
    results = run_spark(top, penstock_spark, {})
    assert sorted((word, n) for word, n, *_ in results["out"]) == [("a", 1), ("a", 2), ("a", 3), ("b", 1), ("c", 1)]
    assert {word: task for word, _, task, _ in results["out"]} == dict(results["sent"])
