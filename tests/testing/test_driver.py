"""The test kit: drivers, clocks, barriers, crashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import RunError, StepError, UnknownName
from penstock.testing import BARRIER, CRASH, Driver, run_local

pytest_plugins = ["pytester"]


class Numbered(ps.Process):
    """Numbers the records of a key."""

    nth = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.nth += 1
        yield row.word, self.nth


def counting() -> ps.Flow:
    flow = ps.Flow("counting")
    words = flow.source("words", ps.items([], "word string"))
    words.key_by("word").process("number", Numbered, "word string, nth bigint").sink("numbered", ps.console())
    words.key_by("word").count("n").sink("counts", ps.console())
    return flow


WORDS = ["a", "b", "a", "c", "a", "b"]


def results(given: list[Any]) -> tuple[list[Any], dict[Any, Any]]:
    """What came out, whatever the barriers: each numbered record, and the last count of each word."""
    made = run_local(counting(), {"words": given})
    return sorted(made["numbered"]), made.table("counts")


@pytest.mark.parametrize("at", range(len(WORDS) + 1))
def test_a_crash_between_any_two_records_changes_nothing(at: int) -> None:
    assert results([*WORDS[:at], CRASH, *WORDS[at:]]) == results(WORDS)


@settings(deadline=None)
@given(st.lists(st.sampled_from([BARRIER, CRASH]), max_size=6), st.randoms(use_true_random=False))
def test_crashes_and_barriers_anywhere_change_nothing(marks: list[Any], rolled: Any) -> None:
    mixed: list[Any] = list(WORDS)
    for mark in marks:
        mixed.insert(rolled.randint(0, len(mixed)), mark)
    assert results(mixed) == results(WORDS)


def test_results_are_seen_at_the_barrier_and_not_before() -> None:
    driver = Driver(counting())
    driver.push("words", "a", "a")
    assert driver.results()["numbered"] == []
    assert [tuple(r) for r in driver.barrier()["numbered"]] == [("a", 1), ("a", 2)]
    driver.push("words", "a")
    driver.crash()
    assert [tuple(r) for r in driver.barrier()["numbered"]] == [("a", 1), ("a", 2), ("a", 3)]


def test_the_clock_stands_still_until_it_is_moved() -> None:
    driver = Driver(counting())
    began = driver.clock()
    assert driver.clock() == began
    driver.clock.advance(2.5)
    assert driver.clock() == began + 2.5


def test_wrong_names_are_met_with_the_right_ones() -> None:
    with pytest.raises(UnknownName, match="no source 'wrods'; did you mean 'words'"):
        run_local(counting(), {"wrods": []})
    made = run_local(counting(), {"words": []})
    with pytest.raises(UnknownName, match="no sink 'count'; did you mean 'counts'"):
        made["count"]
    with pytest.raises(UnknownName, match="gets records, not running totals"):
        made.table("numbered")


def test_a_bad_record_is_blamed_on_its_source() -> None:
    with pytest.raises(StepError, match=r"step 'words'.*string needs a str, got 3 ") as caught:
        run_local(counting(), {"words": ["a", 3]})
    assert caught.value.failure.position == "record 2 of 'words'"


def test_an_endless_source_needs_a_list() -> None:
    flow = ps.Flow("endless")
    flow.source("ticks", ps.rate(5)).sink("out", ps.console())
    with pytest.raises(Exception, match="Give its records as a list") as caught:
        run_local(flow)
    assert not isinstance(caught.value, RunError)


def test_bounded_sources_are_read_as_the_flow_says() -> None:
    flow = ps.Flow("squares")
    flow.source("n", ps.generate(lambda i: (i, i * i), "n bigint, square bigint", limit=4)).sink("out", ps.console())
    flow.source("ticks", ps.rate(5, limit=3)).select("value", "value").sink("ticked", ps.console())
    made = run_local(flow)
    assert [tuple(r) for r in made["out"]] == [(0, 0), (1, 1), (2, 4), (3, 9)]
    assert [r.value for r in made["ticked"]] == [0, 1, 2]


def test_the_plugin_gives_fixtures_to_any_project(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        import penstock as ps

        def flow():
            made = ps.Flow("up")
            words = made.source("words", ps.items([], "word string"))
            words.map("shout", lambda r: r.word.upper()).sink("out", ps.console())
            return made

        def test_run(run_flow):
            assert run_flow(flow(), {"words": ["a"]})["out"] == [("A",)]

        def test_drive(flow_driver):
            driver = flow_driver(flow())
            driver.push("words", "a", "b")
            driver.crash()
            assert len(driver.barrier()["out"]) == 2

        def test_no_jvm():
            assert "pyspark" not in sys.modules
        """
    )
    done = pytester.runpytest_subprocess("-p", "no:cacheprovider")
    done.assert_outcomes(passed=3)
