"""Sources that make their records: the clock, a function, a socket, standard input, a growing folder."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import Impossible
from penstock.graph.nodes import Endpoint
from penstock.graph.run import RunSpec
from penstock.spark.run import run_bounded, run_live

pytestmark = pytest.mark.spark


def live(
    endpoint: Endpoint, spark: Any, folder: Path, enough: int, more: Callable[[int], None] = lambda seen: None
) -> list[Any]:
    """Runs a source live until enough rows have come; `more` gets how many there are after each batch of those before."""
    rows: list[Any] = []

    def take(batch: list[Any], number: int) -> None:
        rows.extend(batch)
        if batch and len(rows) < enough:
            more(len(rows))

    flow = ps.Flow("source")
    flow.source("in", endpoint).sink("out", ps.callback(take))
    spec = RunSpec(checkpoint=folder / "checkpoint", duration=300)
    run_live(flow.graph, spark, spec, until=lambda report: len(rows) >= enough).wait(0.02)
    return rows


def bounded(endpoint: Endpoint, spark: Any) -> list[Any]:
    rows: list[Any] = []
    flow = ps.Flow("source")
    flow.source("in", endpoint).sink("out", ps.callback(lambda more, batch: rows.extend(more)))
    run_bounded(flow.graph, spark)
    return rows


def test_generated_records_do_not_depend_on_the_runtime(penstock_spark: Any, tmp_path: Path) -> None:
    made = ps.generate(lambda i: (i, f"user{i % 3}"), "id bigint, user string", rows_per_second=200, limit=50)
    expected = [(i, f"user{i % 3}") for i in range(50)]
    assert sorted(map(tuple, bounded(made, penstock_spark))) == expected
    assert sorted(map(tuple, live(made, penstock_spark, tmp_path, 50))) == expected


def test_rate_counts_up_live_and_has_no_end(penstock_spark: Any, tmp_path: Path) -> None:
    values = [r.value for r in live(ps.rate(50), penstock_spark, tmp_path, 60)]
    assert sorted(values) == list(range(len(values)))
    with pytest.raises(Impossible, match="has no end"):
        bounded(ps.rate(50), penstock_spark)


@pytest.mark.parametrize("how", [{"until_idle": 1.0}, {"mode": "once"}])
def test_numbers_up_to_a_limit_are_over_when_they_have_come(how: Any, penstock_spark: Any, tmp_path: Path) -> None:
    """A live run finds the source quiet, and one that takes what is there takes them all; nothing beyond the limit is read."""
    rows: list[Any] = []
    read: list[int] = []
    flow = ps.Flow("numbers")
    numbers = flow.source("in", ps.rate(200, limit=50))
    numbers.sink("out", ps.callback(lambda more, batch: rows.extend(more)))
    spec = RunSpec(checkpoint=tmp_path / "checkpoint", **how)
    run_live(flow.graph, penstock_spark, spec, observers=(lambda report: read.append(report.rows_in),)).wait(0.02)
    assert sorted(r.value for r in rows) == list(range(50))
    assert (max(r.timestamp for r in rows) - min(r.timestamp for r in rows)).total_seconds() == 49 / 200
    assert sum(read) == 50


@pytest.mark.parametrize("name", ["some words.csv", "words.json", "words"])
def test_a_single_file_is_read_live(name: str, penstock_spark: Any, tmp_path: Path) -> None:
    (tmp_path / name).write_text(
        {".csv": "word\na\nb\n", ".json": '{"word": "a"}\n{"word": "b"}\n'}.get(Path(name).suffix, "a\nb\n")
    )
    (tmp_path / f"{name}2").write_text("other\n")
    files = ps.files(tmp_path / name, schema="word string") if "." in name else ps.files(tmp_path / name)
    assert sorted(row[0] for row in live(files, penstock_spark, tmp_path / "run", 2)) == ["a", "b"]


def test_lines_from_a_socket(penstock_spark: Any, tmp_path: Path) -> None:
    server = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"one\ntwo\nthree\n")
            read.wait(300)

    read = threading.Event()
    serving = threading.Thread(target=serve)
    serving.start()
    rows = live(ps.socket_lines(port=server.getsockname()[1]), penstock_spark, tmp_path, 3)
    read.set()
    serving.join()
    server.close()
    assert sorted(r.value for r in rows) == ["one", "three", "two"]


def test_a_growing_folder_is_followed(penstock_spark: Any, tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "0.txt").write_text("first\n")

    def grow(seen: int) -> None:
        (folder / ".more.tmp").write_text(f"more {seen}\n")
        (folder / ".more.tmp").rename(folder / f"{seen}.txt")

    rows = live(ps.files(folder, "text"), penstock_spark, tmp_path, 4, more=grow)
    assert sorted(r.value for r in rows) == ["first", "more 1", "more 2", "more 3"]


STDIN = """
import penstock as ps
flow = ps.Flow("stdin")
flow.source("lines", ps.stdin()).map("up", lambda r: r.value.upper(), "value string").sink("out", ps.console())
"""


@pytest.mark.slow  # the shared suite reads it in the session of all tests
def test_lines_from_standard_input(tmp_path: Path) -> None:
    (tmp_path / "flow.py").write_text(STDIN)
    command = [str(Path(sys.executable).with_name("penstock")), "run", "flow.py", "--batch", "--master", "local[2]"]
    done = subprocess.run(
        command, input="a\nb c\n", cwd=tmp_path, capture_output=True, text=True, timeout=300, check=True
    )
    assert "B C" in done.stdout
