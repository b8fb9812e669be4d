"""The budget of tests: what is counted, who fails, and that the list of the dearest files is true."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.conftest import DEAREST, TIER_BUDGET, TOGETHER, unit_of
from tests.cost import Costs, Meter, left_of, tree_seconds

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[1]
BURN = "import time\nend = time.process_time() + 0.4\nwhile time.process_time() < end: pass\n"


def test_what_a_child_uses_counts_while_it_runs_and_when_it_has_ended() -> None:
    before = tree_seconds()
    with subprocess.Popen(
        [sys.executable, "-c", BURN + "print(1, flush=True); input()"], stdin=-1, stdout=-1, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "1\n"
        assert tree_seconds() - before >= 0.35
        child.communicate("\n")
    assert tree_seconds() - before >= 0.35


def test_looks_in_quick_succession_count_with_the_next() -> None:
    meter = Meter(least=0.2)
    begun = time.process_time()
    while time.process_time() - begun < 0.1:
        pass
    laps = [meter.lap()]
    while not laps[-1]:
        laps.append(meter.lap())
    assert laps[-1] >= 0.08


def test_files_are_listed_by_what_they_took() -> None:
    costs = Costs()
    for test, wall in (("a.py::x", 1.0), ("b.py::y", 1.5), ("a.py::z", 2.0)):
        costs.add(test, wall, wall / 2)
    assert [(name, cost.wall, cost.cpu) for name, cost in costs.by_file()] == [("a.py", 3.0, 1.5), ("b.py", 1.5, 0.75)]


def test_folders_are_listed_with_all_below_them() -> None:
    costs = Costs()
    for test, wall in (("tests/a/b/c.py::x", 1.0), ("tests/a/d.py::y", 1.5), ("tests/e.py::z", 2.0)):
        costs.add(test, wall, wall / 2)
    assert [(name, cost.wall, cost.cpu) for name, cost in costs.by_folder()] == [
        ("tests/a", 2.5, 1.25), ("tests/e.py", 2.0, 1.0),
    ]  # fmt: skip


def test_a_long_run_says_what_is_left_of_the_time_of_its_tier() -> None:
    assert left_of(10.0, 7.0).endswith("may take 10 s, so 3 s are left")
    assert "OVER by 2 s" in left_of(10.0, 12.0)


def test_a_test_above_the_budget_fails_and_says_so(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> None:
    pytester.makeconftest(
        f"import sys; sys.path.insert(0, {str(ROOT)!r})\nimport tests.conftest as rules\nrules.WITHOUT_JVM = 0.2\n"
        "rules.LONG = 0.0\nfrom tests.conftest import *\n"
    )
    pytester.makepyfile(
        f"import time\ndef test_dear():\n    time.sleep(0.6)\n    exec({BURN!r})\ndef test_cheap(): pass\n"
    )
    monkeypatch.setenv(TIER_BUDGET, "0.1")
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    done.assert_outcomes(passed=1, failed=1)
    done.stdout.fnmatch_lines(
        ["*s of processor time and may take 0.2*", "*folders of*", "*dearest files*", "*the tier may take 0 s: OVER*"]
    )


def test_the_dearest_files_are_there() -> None:
    listed = DEAREST.read_text().split()
    assert [name for name in listed if not (ROOT / name).is_file()] == []
    assert len(set(listed)) == len(listed)


def test_a_worker_takes_a_file_or_a_folder_that_shares_a_server() -> None:
    assert unit_of("tests/same/test_window.py::test_a[x/y::z]") == "tests/same/test_window.py"
    assert unit_of("tests/kafka/test_sink.py::test_a") == unit_of("tests/kafka/test_source.py::test_b") == "tests/kafka"
    assert [name for name in TOGETHER if not (ROOT / name).is_dir()] == []
