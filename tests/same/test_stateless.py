"""map, flat_map, filter, map_batches, side outputs."""

from __future__ import annotations

import datetime
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import pytest

import penstock as ps
from tests.same.conftest import Case

LINES = ["a b a", "", "c a", "b", "a  c"]


def test_map_gives_one_record_for_each(same: Case) -> None:
    flow = ps.Flow("map")
    lines = flow.source("lines", ps.items([], "value string"))
    lines.map("size", lambda r: (r.value, len(r.value)), "value string, size bigint").sink("out", ps.console())
    same.check(flow, {"lines": LINES}, {"out": [(v, len(v)) for v in LINES]})


@pytest.mark.live
def test_map_takes_dicts_tuples_rows_and_bare_values(same: Case) -> None:
    flow = ps.Flow("forms")
    numbers = flow.source("n", ps.items([], "n bigint"))
    numbers.map("dict", lambda r: {"n": r.n + 1}).map("tuple", lambda r: (r["n"] + 1,)).map(
        "bare", lambda r: r[0] + 1
    ).map("row", lambda r: r).sink("out", ps.console())
    same.check(flow, {"n": [1, 2, 3]}, {"out": [4, 5, 6]})


@dataclass
class Reading:
    """A record with a class of its own."""

    sensor: str
    value: float
    tags: list[str]

    def hot(self) -> bool:
        """A method that a later step calls."""
        return self.value > 30


def parse(row: Any) -> Reading:
    """The schema comes from this annotation."""
    sensor, value = row.line.split("=")
    return Reading(sensor, float(value), [sensor, "x"])


@pytest.mark.live
def test_a_dataclass_travels_as_itself(same: Case) -> None:
    flow = ps.Flow("records")
    lines = flow.source("lines", ps.items([], "line string"))
    lines.map("parse", parse).filter("hot", lambda r: r.hot()).sink("out", ps.console())
    same.check(flow, {"lines": ["a=10", "b=31.5", "c=99"]}, {"out": [("b", 31.5, ["b", "x"]), ("c", 99.0, ["c", "x"])]})


def test_flat_map_gives_any_number(same: Case) -> None:
    flow = ps.Flow("flat")
    lines = flow.source("lines", ps.items([], "value string"))
    lines.flat_map("split", lambda r: r.value.split(), "word string").sink("out", ps.console())
    same.check(flow, {"lines": LINES}, {"out": [w for v in LINES for w in v.split()]})


def words(row: Any) -> Iterator[Any]:
    """Short words to the side."""
    for word in row.value.split():
        yield ps.to("short", (word, len(word))) if len(word) < 3 else word


@pytest.mark.live
def test_side_outputs_part_a_stream(same: Case) -> None:
    flow = ps.Flow("sides")
    lines = flow.source("lines", ps.items([], "value string"))
    split = lines.flat_map("split", words, "word string", side={"short": "word string, size int"})
    split.sink("long", ps.console())
    split.side("short").where("pairs", "size = 2").sink("two", ps.console())
    same.check(flow, {"lines": ["aa bbb c", "dddd ee"]}, {"long": ["bbb", "dddd"], "two": [("aa", 2), ("ee", 2)]})


def test_filter_keeps_what_passes(same: Case) -> None:
    flow = ps.Flow("filter")
    flow.source("n", ps.items([], "n bigint")).filter("odd", lambda r: r.n % 2).sink("out", ps.console())
    same.check(flow, {"n": range(10)}, {"out": [1, 3, 5, 7, 9]})


def test_map_batches_works_on_arrow(same: Case) -> None:
    def double(batch: Any) -> Any:
        import pyarrow as pa
        import pyarrow.compute as pc

        return pa.RecordBatch.from_arrays([pc.multiply(batch.column(0), 2)], ["n"])

    flow = ps.Flow("arrow")
    flow.source("n", ps.items([], "n bigint")).map_batches("double", double).sink("out", ps.console())
    same.check(flow, {"n": range(7)}, {"out": [n * 2 for n in range(7)]})


EVERY = (
    "b boolean, t tinyint, s smallint, i int, l bigint, f float, d double, w string, y binary, day date, "
    "at timestamp, local timestamp_ntz, m decimal(10,2), xs array<int>, kv map<string,bigint>, p struct<a:int,b:string>"
)
FULL = (
    True, 1, 2, 3, 4, 0.5, 1.25, "ä", b"\x00\xff", datetime.date(2024, 2, 29),
    datetime.datetime(2024, 2, 29, 12, 30, 1, 5, tzinfo=datetime.UTC), datetime.datetime(1999, 12, 31, 23, 59),
    Decimal("12.50"), [1, None, 3], {"k": 1}, {"a": 1, "b": "x"},
)  # fmt: skip
EMPTY = (None,) * len(FULL)


@pytest.mark.live
def test_every_type_goes_through_python_unchanged(same: Case) -> None:
    flow = ps.Flow("types")
    flow.source("all", ps.items([], EVERY)).map("same", lambda r: r).filter("keep", lambda r: True).sink(
        "out", ps.console()
    )
    same.check(flow, {"all": [FULL, EMPTY]}, {"out": [FULL, EMPTY]})


def test_fused_steps_see_checked_values(same: Case) -> None:
    """A later step of the same pass gets the declared type, not what the function happened to give."""
    flow = ps.Flow("checked")
    numbers = flow.source("n", ps.items([], "n bigint"))
    numbers.map("half", lambda r: r.n, "x double").map("kind", lambda r: type(r.x).__name__, "kind string").sink(
        "out", ps.console()
    )
    same.check(flow, {"n": [1, 2]}, {"out": ["float", "float"]})
