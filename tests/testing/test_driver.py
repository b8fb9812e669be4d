"""The test kit: drivers, clocks, barriers, crashes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import penstock as ps
from penstock.errors import CaptureError, RunError, SchemaError, StepError, UnknownName
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


def test_a_table_of_numbers_has_the_columns_that_it_declares() -> None:
    table = "CREATE TABLE t (`value` BIGINT) WITH ('connector' = 'rate', 'number-of-rows' = '3'); SELECT `value` FROM t"
    assert run_local(ps.sql_flow(table))["result"] == [(0,), (1,), (2,)]
    with pytest.raises(SchemaError, match="expected the fields timestamp and value, got n"):
        run_local(
            ps.sql_flow("CREATE TABLE t (n INT) WITH ('connector' = 'rate', 'number-of-rows' = '3'); SELECT n FROM t")
        )


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


def test_a_function_that_spark_could_not_send_to_a_worker_is_refused() -> None:
    class Stuck:
        """Holds something that cannot be pickled."""

        def __init__(self) -> None:
            self.letters = (letter for letter in "abc")

        def __call__(self, row: Any) -> Any:
            return row.word

    flow = ps.Flow("stuck")
    flow.source("words", ps.items(["a"], "word string")).map("up", Stuck()).sink("out", ps.console())
    for oracle in (False, True):
        with pytest.raises(CaptureError, match=r"step 'up' \(.*test_driver.py:\d+\): its function cannot travel"):
            run_local(flow, oracle=oracle)


def test_lambdas_and_local_classes_travel_without_pyspark() -> None:
    by = 3

    class Times:
        def __call__(self, row: Any) -> int:
            return int(row.n) * by

    flow = ps.Flow("travels")
    numbers = flow.source("n", ps.items([1, 2], "n bigint"))
    numbers.map("times", Times()).map("more", lambda row: row.n + by).sink("out", ps.console())
    assert [r.n for r in run_local(flow)["out"]] == [6, 9]


@pytest.mark.parametrize("many", [3, 25_000])
def test_the_record_that_fails_is_named_however_many_go_in_at_once(many: int) -> None:
    flow = ps.Flow("fails")
    numbers = flow.source("n", ps.items([], "n bigint"))
    halves = numbers.map("half", lambda row: row.n // (row.n - (many - 1)))
    halves.key_by("n").count("count").sink("out", ps.console())
    with pytest.raises(StepError) as caught:
        run_local(flow, {"n": range(many)})
    assert caught.value.failure.position == f"record {many} of 'n'"
    assert caught.value.failure.record == f"Row(n={many - 1})"


def test_totals_are_the_same_past_every_limit_of_the_native_half() -> None:
    """More records than are grouped at once, in more than one chunk."""
    flow = ps.Flow("many")
    rows = flow.source("rows", ps.items([], "k string, v bigint"))
    rows.key_by("k").aggregate("sums", s="sum(v)", n="count(*)", hi="max(v)", few="count_if(v % 2 = 0)").sink(
        "out", ps.console()
    )
    given = [(f"k{i % 7}", i) for i in range(230_001)]
    table = run_local(flow, {"rows": given}).table("out")
    for key in {k for k, _ in given}:
        mine = [v for k, v in given if k == key]
        assert tuple(table[key]) == (key, sum(mine), len(mine), max(mine), sum(v % 2 == 0 for v in mine))


def test_a_sum_that_leaves_its_type_is_an_error_as_on_spark() -> None:
    flow = ps.Flow("overflow")
    rows = flow.source("rows", ps.items([], "k string, v bigint"))
    rows.key_by("k").aggregate("sums", s="sum(v)").sink("out", ps.console())
    with pytest.raises(StepError, match="step 'sums'"):
        run_local(flow, {"rows": [("a", 2**62), ("a", 2**62), ("a", 1)]})


class Fussy(ps.Aggregator):
    """Fails on one record."""

    schema = "bigint"

    def init(self) -> int:
        return 0

    def add(self, so_far: int, row: Any) -> int:
        return so_far + 6 // (int(row.n) - 3)

    def merge(self, one: int, other: int) -> int:
        return one + other


@pytest.mark.parametrize("fields", ["n bigint", "n bigint, k string"])
def test_a_record_that_fails_at_the_end_of_a_batch_is_named_too(fields: str) -> None:
    """Records that are nothing but their key are counted first, and added when the batch ends."""
    flow = ps.Flow("fussy")
    rows = flow.source("rows", ps.items([], fields))
    rows.key_by("n").aggregate("own", x=Fussy).sink("out", ps.console())
    given: list[Any] = [(i,) if fields == "n bigint" else (i, "k") for i in (1, 2, 4, 3, 5)]
    with pytest.raises(StepError, match=r"step 'own'.*ZeroDivisionError") as caught:
        run_local(flow, {"rows": [given[0], BARRIER, *given[1:]]})
    assert caught.value.failure.position == "record 4 of 'rows'"
