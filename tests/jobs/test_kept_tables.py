"""What steps keep, as tables that a query reads: results in place of parts, keys looked up. No JVM."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

import penstock as ps
from penstock.errors import StateError
from penstock.graph.state.schema import StateField, StateSchema
from penstock.jobs.sql.asking import asked_flow
from penstock.jobs.sql.kept_tables import KeptTables, _columns
from penstock.state.one_version import ReadLimits, Snapshot
from tests.state.kept import KeptStep, keep

COUNTS = KeptStep("counts.group", ("word string", "day int"), ("n bigint count(*)",))


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    keep(tmp_path, 0, {COUNTS: {("a", 1): (1,), ("b", 2): (2,), ("a", 2): (3,)}})
    return tmp_path


@pytest.mark.parametrize(
    "query, rows",
    [
        ("select n from counts where word = 'a' and day = 1", {(1,)}),
        ("select n from counts where (day in (1, 2)) and 'a' = word", {(1,), (3,)}),
        ("select word from counts where day = 1 or word = 'b'", {("a",), ("b",)}),
        ("select c.n from counts c where c.word = 'a' and c.day = 2 and c.n > 9", set()),
        ("select c.word, d.n from counts c join counts d on c.n = d.n where c.day = 1", {("a", 1)}),
        ("select sum(n) as n from counts_group", {(6,)}),
        ("select n from counts where word = 'nobody' and day = 1", set()),
    ],
)
def test_a_query_answers_alike_whether_keys_are_looked_up_or_not(
    kept: Path, query: str, rows: set[tuple[object]]
) -> None:
    assert set(ps.ask(str(kept), query)) == rows
    assert set(ps.ask(f"file://{kept}", query)) == rows


def test_only_the_keys_that_are_asked_for_are_read(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(self: Snapshot, step: str, limits: ReadLimits | None = None) -> pa.Table:
        raise AssertionError("the whole table was read")

    monkeypatch.setattr(Snapshot, "read", refused)
    assert ps.ask(str(kept), "select n from counts where word = 'a' and day = 1") == [(1,)]
    with pytest.raises(AssertionError, match="whole table"):
        ps.ask(str(kept), "select n from counts where word = 'a'")


def test_more_than_may_be_read_is_refused(kept: Path) -> None:
    import penstock.state

    tables = KeptTables(penstock.state.snapshot(kept), ReadLimits(entries=2))
    with pytest.raises(StateError, match="keeps 3 entries"):
        tables.endpoint("counts", {})
    assert tables.endpoint("counts", {"word": ["a"], "day": [1]}) is not None


def test_parts_of_aggregates_are_shown_as_results() -> None:
    fields = [
        ("m", "double", "avg(x)"),
        ("s", "bigint", "sum(y)"),
        ("c", "bigint", "count(y)"),
        ("f", "double", "avg(z)"),
    ]
    schema = StateSchema(
        "t", "aggregate", "values", (StateField("k", "string"),), tuple(StateField(*f) for f in fields)
    )
    table = pa.table(
        {"k": ["a"], "m.0": [6.0], "m.1": [4], "s.sum": [7], "s.n": [2], "c.n": [3], "f.sum": [4.0], "f.rest": [0.5], "f.n": [2], "f.inf": [0]}
    )  # fmt: skip
    found = {name: values for name, _, values in _columns(table, schema)}
    assert found == {"k": ["a"], "m": [1.5], "s": [7], "c": [3], "f": [2.25]}


def test_tables_are_listed_by_names_that_a_query_can_write(tmp_path: Path) -> None:
    count = ("n bigint count(*)",)
    steps = [
        KeptStep(name, ("word string",), count)
        for name in ("Totals", "per_user.group", "best.window", "best.top@final")
    ]
    keep(tmp_path, 0, {step: {("a",): (1,)} for step in steps})
    names = asked_flow(str(tmp_path)).names()
    assert names == ["Totals", "best_top_final", "best_window", "per_user"]
    assert [list(ps.ask(str(tmp_path), f"select n from {name}")) for name in names] == [[(1,)]] * 4
    with pytest.raises(
        StateError, match=r"'peruser'; did you mean 'per_user'\? \(there are: 'Totals', 'best_top_final'"
    ):
        ps.ask(str(tmp_path), "select n from peruser")
