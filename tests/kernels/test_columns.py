"""Steps that work on columns answer as the same steps over rows do: joins, upserts and running totals, over random batches."""

from __future__ import annotations

import datetime
import decimal
import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from penstock.graph.aggregates.calls import calls_of
from penstock.graph.nodes import AggregateBy, Output, Parts, Port
from penstock.graph.nodes.base import counted
from penstock.graph.nodes.changes import TableJoin, Upserts
from penstock.graph.schema import Schema, schema_of
from penstock.graph.times import Times
from penstock.kernels.base import Context, Kernel
from penstock.kernels.changes import column_upserts
from penstock.kernels.changes.joins.join import TableJoinKernel
from penstock.kernels.changes.joins.single_join import SingleJoinKernel, table_join_kernel
from penstock.kernels.changes.upserts import UpsertsKernel
from penstock.kernels.hashing.key_hash import key_hashes
from penstock.kernels.keyed import column_kernel
from penstock.kernels.keyed.column_merge import ColumnMergeKernel, aggregate_kernel
from penstock.kernels.keyed.keyed import MergeKernel
from penstock.kernels.records.chunk import Chunk
from penstock.state.memory import MemoryState
from penstock.state.store import StateStore
from penstock.state.values import FileState
from penstock.storage import LocalStorage
from tests.kernels.changing import TwoInputs, plain

LEFT, RIGHT = "k string, d date, n bigint", "k string, amount decimal(9,2), seen timestamp"
DAY, MOMENT = datetime.date(2024, 1, 1), datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)


@pytest.fixture(autouse=True)
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns for few rows too."""
    monkeypatch.setattr(column_kernel, "MANY", 1)


class Host:
    """A kernel over its state: in files for columns, in a dict for rows."""

    def __init__(self, kernel: Kernel, schemas: list[Schema], folder: Path | None) -> None:
        self.kernel, self.schemas = kernel, schemas
        self.state: Any = MemoryState()
        if folder is not None:
            self.state = FileState(StateStore(LocalStorage(folder), run="r").begin(0, {"step": 1}, -1)["step"], 0)
        kernel.open(Context(state=lambda name: self.state))

    def batch(self, *inputs: list[Any]) -> Counter[Any]:
        made: list[Any] = []
        for at, rows in enumerate(inputs):
            for begin in range(0, len(rows), 7):
                made += self.kernel.take(self._chunk(at, rows[begin : begin + 7]), at)
        made += self.kernel.advance(Times())
        return Counter(plain(row) for _, chunk in made for row in chunk.values())

    def _chunk(self, at: int, rows: list[Any]) -> Chunk:
        chunk = Chunk.of(self.schemas[at], rows)
        chunk.key_hashes = key_hashes([pa.array([row[0] for row in rows], pa.string())], len(rows)).tolist()
        return chunk

    def kept(self) -> dict[Any, Any]:
        self.state.restore(self.state.snapshot())
        return dict(self.state.items())


def watched(kernel: Any) -> list[bool]:
    """Notes of each batch whether it was done in columns."""
    made: list[bool] = []
    by_columns = kernel.by_columns

    def watch(*given: Any) -> Any:
        found = by_columns(*given)
        made.append(found is not None)
        return found

    kernel.by_columns = watch
    return made


class Table:
    """A table by `k` that changes at random: one row for each key."""

    def __init__(self, rolled: random.Random, row: Any) -> None:
        self.rolled, self.row, self.rows = rolled, row, dict[str, Any]()

    def changes(self) -> list[Any]:
        """Signed rows; at times a row that goes and comes again, or nothing at all."""
        made: list[Any] = []
        for key in self.rolled.sample("abcdefghij", self.rolled.randint(0, 10)):
            before = self.rows.pop(key, None)
            after = (key, *self.row(self.rolled)) if self.rolled.random() < 0.7 else None
            if after is not None:
                self.rows[key] = after
            made += [(*before, -1)] if before is not None else []
            made += [(*after, 1)] if after is not None else []
            if self.rolled.random() < 0.1:
                made += [("z", *self.row(random.Random(0)), sign) for sign in (1, -1)]
        self.rolled.shuffle(made)
        return made


def left_row(rolled: random.Random) -> tuple[Any, ...]:
    return rolled.choice([None, DAY]), rolled.choice([None, 1, 2])


def right_row(rolled: random.Random) -> tuple[Any, ...]:
    return rolled.choice([None, decimal.Decimal("1.50")]), rolled.choice([None, MOMENT])


def joined(how: str, prefix: str = "") -> tuple[TableJoin, Any, list[Schema]]:
    schemas = [counted(schema_of(text)) for text in (LEFT, RIGHT)]
    node = TableJoin("step", (Port("0"), Port("1")), ("k",), ("k",), how, counted=True, single=(True, True))
    node = node.bound(tuple(map(Output, schemas)))
    return node, TwoInputs(schema_of(LEFT), schema_of(RIGHT)), schemas


@pytest.mark.parametrize("how", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("seed", range(5))
def test_a_join_in_columns(how: str, seed: int, tmp_path: Path) -> None:
    node, graph, schemas = joined(how)
    made = table_join_kernel(node, graph)
    assert isinstance(made, SingleJoinKernel)
    in_columns = watched(made)
    columns, rows = Host(made, schemas, tmp_path), Host(TableJoinKernel(node, graph), schemas, None)
    rolled = random.Random(seed)
    tables = Table(rolled, left_row), Table(rolled, right_row)
    for _ in range(12):
        changes = [table.changes() for table in tables]
        keyless: list[list[Any]] = [[(None, None, 1, 1)], [(None, None, MOMENT, 1)]]
        keyless = keyless if rolled.random() < 0.3 else [[], []]
        given = [[*change, *extra] for change, extra in zip(changes, keyless, strict=True)]
        assert net(columns.batch(*given)) == net(rows.batch(*given))
        assert columns.kept() == rows.kept()
    assert all(in_columns)
    assert len(in_columns) > 8


def net(rows: Counter[Any]) -> Counter[Any]:
    """Signed rows added up."""
    made: Counter[Any] = Counter()
    for (*row, count), many in rows.items():
        made[tuple(row)] += count * many
    return Counter({row: n for row, n in made.items() if n})


def test_a_row_that_was_never_there_is_refused_by_name(tmp_path: Path) -> None:
    node, graph, schemas = joined("inner")
    host = Host(SingleJoinKernel(node, graph), schemas, tmp_path)
    host.batch([("a", DAY, 1, 1)], [])
    with pytest.raises(Exception, match=r"a table cannot hold less than none of a row.*taken back 1 times"):
        host.batch([("a", DAY, 2, -1)], [])


def test_two_rows_of_a_key_are_refused(tmp_path: Path) -> None:
    node, graph, schemas = joined("inner")
    host = Host(SingleJoinKernel(node, graph), schemas, tmp_path)
    with pytest.raises(Exception, match="a key has one row here, got 2"):
        host.batch([("a", DAY, 1, 1), ("a", DAY, 2, 1)], [])


@pytest.mark.parametrize("text", [LEFT, "k string, x double, n bigint"])
@pytest.mark.parametrize("seed", range(5))
def test_upserts_in_columns(text: str, seed: int) -> None:
    schema = counted(schema_of(text))
    node = Upserts("step", (Port("in"),), ("k",)).bound((Output(schema),))
    kernel = column_upserts.upserts_kernel(node, schema)
    assert type(kernel) is (UpsertsKernel if "double" in text else column_upserts.ColumnUpsertsKernel)
    in_columns = watched(kernel) if text == LEFT else [True]
    columns, rows = Host(kernel, [schema], None), Host(UpsertsKernel(node, schema), [schema], None)
    rolled = random.Random(seed)
    table = Table(rolled, left_row if text == LEFT else lambda r: (r.choice([None, 0.5, float("nan")]), 1))
    for _ in range(12):
        changes = table.changes()
        assert columns.batch(changes) == rows.batch(changes)
    assert all(in_columns)


CALLS = {
    "n": "count(*)",
    "known": "count(v)",
    "total": "sum(v)",
    "x": "sum(x)",
    "mean": "avg(v)",
    "low": "min(v)",
    "last": "max(t)",
    "word": "min(w)",
    "first": "min(d)",
}
RECORD = "k string, v bigint, x double, w string, t timestamp, d date"


def totals(counted_: bool, **calls: str) -> tuple[AggregateBy, Schema]:
    given = Output(schema_of(RECORD))
    of = AggregateBy("step", (Port("in"),), ("k",), calls=calls_of(calls)).bound((given,))
    parts = Parts("parts", (Port("in"),), ("k",), of=of).bound((given,)).output()
    node = replace(of, combined="columns", counted=counted_, outputs=(), inputs=(Port("parts"),)).bound((parts,))
    return node, parts.schema


def part_rows(rolled: random.Random, large: bool) -> Iterator[tuple[Any, ...]]:
    """Parts of some keys, as Spark would make them of a batch."""
    for key in rolled.sample([*"abcdefgh", None], rolled.randint(0, 9)):
        v = rolled.choice([None, 1, -5, 2**62 if large else 7])
        x = rolled.choice([None, 0.5, float("nan")])
        known = int(v is not None)
        mean = None if v is None else float(v)
        moment = rolled.choice([None, MOMENT + datetime.timedelta(seconds=rolled.randrange(9))])
        day = rolled.choice([None, DAY + datetime.timedelta(days=rolled.randrange(9))])
        yield (key, 1, known, v, x, mean, known, v, moment, rolled.choice([None, "b", "é", "a"]), day, 1)


@pytest.mark.parametrize("signed", [False, True])
@pytest.mark.parametrize("seed", range(6))
def test_totals_in_columns(signed: bool, seed: int, tmp_path: Path) -> None:
    node, schema = totals(signed, **CALLS)
    kernel = aggregate_kernel(node, schema)
    assert isinstance(kernel, ColumnMergeKernel)
    in_columns = watched(kernel)
    columns, rows = Host(kernel, [schema], tmp_path), Host(MergeKernel(node, schema), [schema], None)
    rolled = random.Random(seed)
    for _ in range(12):
        parts = list(part_rows(rolled, large=False))
        parts += parts[:1] if rolled.random() < 0.2 else []
        assert columns.batch(parts) == rows.batch(parts)
        assert plain_items(columns) == plain_items(rows)
    assert sum(in_columns) > 4, "all but those in which a key comes twice"
    assert columns.kernel.counters.native == rows.kernel.counters.native > 0


def plain_items(host: Host) -> dict[Any, Any]:
    return {key: plain(value) for key, value in host.kept().items()}


def test_a_sum_that_overflows_fails_as_it_does_over_rows(tmp_path: Path) -> None:
    node, schema = totals(False, total="sum(v)")
    columns, rows = (
        Host(aggregate_kernel(node, schema), [schema], tmp_path),
        Host(MergeKernel(node, schema), [schema], None),
    )
    failures = []
    for host in (columns, rows):
        host.batch([("a", 2**62, 1), ("b", 1, 1)])
        with pytest.raises(Exception) as failed:
            host.batch([("a", 2**62, 1), ("b", 1, 1)])
        failures.append(str(failed.value))
    assert failures[0] == failures[1]


def test_a_result_that_does_not_fit_is_added_once(tmp_path: Path) -> None:
    """The rows take over before anything is kept."""
    node, schema = totals(False, total="sum(v)")
    kernel = aggregate_kernel(node, schema)
    assert isinstance(kernel, ColumnMergeKernel)
    host = Host(kernel, [schema], tmp_path)
    host.batch([("a", 200, 1), ("b", 1, 1)])
    kernel.out_schema = pa.schema([pa.field("k", pa.string()), pa.field("total", pa.int8())])
    assert host.batch([("a", 200, 1), ("b", 1, 1)]) == {("a", 400): 1, ("b", 2): 1}
    assert host.kept() == {("a",): (400,), ("b",): (2,)}


def test_a_total_that_does_not_fit_its_column_is_refused_and_not_read_as_null(tmp_path: Path) -> None:
    node, schema = totals(False, low="min(v)")
    host = Host(aggregate_kernel(node, schema), [schema], tmp_path)
    host.state.prefetch([("a",)], [key_hashes([pa.array(["a"])], 1)[0]])
    host.state.put(("a",), (-(2**70),))
    with pytest.raises(Exception, match="field 'low': -1180591620717411303424 is outside the range of bigint"):
        host.batch([("a", 1, 1), ("b", 2, 1)])


@pytest.mark.parametrize(
    "call", ["bool_and(v > 1)", "max(x)", "collect_set(v)", "max_by(v, x)", "sum(cast(v as decimal(9,2)))"]
)
def test_what_arrow_would_answer_otherwise_stays_with_rows(call: str) -> None:
    node, schema = totals(False, made=call)
    assert type(aggregate_kernel(node, schema)) is MergeKernel
