"""Commands and programs in this process, on the session that all tests share: what they say and do, without the start of a JVM for each.

`test_run.py` starts them as processes, where the process is the point: signals, exit codes, terminals, what Java says.
"""

from __future__ import annotations

import io
import re
import runpy
import signal
import threading
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from penstock.cli.main import make_app
from tests.e2e.test_run import FAILING, GROWING, ROOT, check_failure, rows
from tests.waiting import wait_until

pytestmark = pytest.mark.spark

EXAMPLES = ROOT / "examples"


@dataclass(frozen=True)
class Done:
    """How a command ended, and what it said."""

    code: int
    stdout: str
    stderr: str


@pytest.fixture
def here(penstock_spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Done]:
    """Runs a command in this process, in an empty folder.

    `meanwhile` runs in a thread beside it; it gets what the command prints, and the event of its end.
    """
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run(*arguments: object, meanwhile: Callable[[io.StringIO, threading.Event], None] | None = None) -> Done:
        out, errors, code, ended = io.StringIO(), io.StringIO(), 0, threading.Event()
        beside = threading.Thread(target=meanwhile, args=(out, ended)) if meanwhile is not None else None
        with redirect_stdout(out), redirect_stderr(errors):
            if beside is not None:
                beside.start()
            try:
                make_app()([*map(str, arguments)])
            except SystemExit as left:
                code = int(left.code or 0)
            finally:
                ended.set()
        if beside is not None:
            beside.join()
        return Done(code, out.getvalue(), errors.getvalue())

    return run


def as_program(path: Path) -> str:
    """What a file prints when Python runs it."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        runpy.run_path(str(path), run_name="__main__")
    return out.getvalue()


def test_once_goes_on_where_it_was(here: Callable[..., Done], tmp_path: Path) -> None:
    """The second run finds nothing new."""
    (tmp_path / "growing.py").write_text(GROWING)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "1.txt").write_text("a b a\n")
    first, second = (here("run", "--once", "growing.py") for _ in range(2))
    assert (first.code, second.code) == (0, 0), first.stderr + second.stderr
    assert "3 rows" in first.stderr
    assert "growing: 0 batches" in second.stderr
    assert sorted(r["word"] for r in rows(tmp_path / "words")) == ["a", "a", "b"]
    assert {r["word"]: r["n"] for r in rows(tmp_path / "counts")} == {"a": 2, "b": 1}


def test_a_failing_step_shows_the_users_traceback_and_nothing_of_java(
    here: Callable[..., Done], tmp_path: Path
) -> None:
    (tmp_path / "failing.py").write_text(FAILING)
    done = here("run", "failing.py")
    assert done.code == 1
    check_failure(done.stderr)


def test_a_file_runs_as_a_program(here: Callable[..., Done]) -> None:
    assert re.search(r"^customer0 +7715\.0 +83$", as_program(EXAMPLES / "fan_out.py"), re.MULTILINE)


def test_the_example_of_calls_asks_a_server_for_each_record(here: Callable[..., Done]) -> None:
    said = as_program(EXAMPLES / "async_lookup.py")
    assert re.search(r"^999 +749230\.5$", said, re.MULTILINE), said
    assert "Lookup failed after 3 attempts: LookupError: 404: no such item" in said


def test_generated_posts_give_the_same_trends_every_time(here: Callable[..., Done]) -> None:
    done = here("run", "--batch", EXAMPLES / "trending_hashtags.py")
    assert done.code == 0, done.stderr
    totals, risen = done.stdout.split("-- risen, batch 0 --")
    assert sorted(re.findall(r"^(\w+) +(\d+)$", totals, re.MULTILINE)) == [
        ("coffee", "2000"),
        ("music", "500"),
        ("python", "2000"),
        ("rain", "1500"),
    ]
    assert len(re.findall(r"^\w+ +\d+ +\d+$", risen, re.MULTILINE)) == 3


def test_the_demo_prints_plain_lines_without_a_terminal(here: Callable[..., Done]) -> None:
    def interrupt(out: io.StringIO, ended: threading.Event) -> None:
        wait_until(lambda: "trending #" in out.getvalue() or ended.is_set(), 180)
        if not ended.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    done = here("demo", "--for", "300s", "--rate", "200", meanwhile=interrupt)
    assert done.code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert "200 posts a second" in lines[0]
    batches = [line for line in lines if line.startswith("trending-hashtags batch")]
    assert batches
    assert "rows in" in batches[-1]
    assert re.search(r"trending #\w+ \d+", batches[-1])
    assert re.fullmatch(r"trending-hashtags: \d+ batch(es)? in .* rows/s on average, .*", lines[-1])
    assert "\x1b" not in done.stdout
