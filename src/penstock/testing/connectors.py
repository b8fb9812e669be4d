"""Contracts for connectors, as pytest classes: subclass one, say how to reach the outside, and run it against your own.

    @pytest.mark.spark
    class TestMySink(SinkContract):
        @pytest.fixture
        def endpoint(self, tmp_path): return ps.connector(MySink(), path=str(tmp_path))

        def shown(self, endpoint): return [...]      # the rows a reader sees now, as tuples

Every test is a promise that Penstock makes to its users with the connector's name on it.
"""

from __future__ import annotations

import datetime
import decimal
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import pytest

from penstock.connectors.base import Batch, SinkConnector, SinkContext, SourceContext, StagedBatch
from penstock.connectors.delivery import Entry
from penstock.connectors.registry import sink_connector, source_connector
from penstock.errors import DeliveryError
from penstock.frontends.streams.flow import Flow
from penstock.graph.endpoints.basic import callback
from penstock.graph.endpoints.delivery import EXACTLY_ONCE
from penstock.graph.nodes import Endpoint
from penstock.graph.run import RunSpec
from penstock.graph.schema import schema_of
from penstock.spark.run import run_bounded, run_live

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

LINEAGE = "c0ffee000001"
SINK = "contract"
KINDS = (
    "id bigint, flag boolean, small int, number double, word string, raw bytes, day date, at timestamp, money decimal(12,2), "
    "words array<string>, counts map<string,int>, inner struct<a: int, b: string>"
)
VALUES: list[tuple[Any, ...]] = [
    (
        1,
        True,
        -7,
        2.5,
        'a "quoted", two-line\ntext \\ é',
        b"\x00\xff",
        datetime.date(2026, 2, 28),
        datetime.datetime(2026, 2, 28, 23, 59, 59, 123456, tzinfo=datetime.UTC),
        decimal.Decimal("-12345678.90"),
        ["x", None, "y,z"],
        {"one": 1, "two": 2},
        {"a": 1, "b": "in"},
    ),
    (2, *(None,) * 11),
    (
        3,
        False,
        0,
        -0.5,
        "",
        b"",
        datetime.date(1970, 1, 1),
        datetime.datetime(1999, 1, 1, tzinfo=datetime.UTC),
        decimal.Decimal("0.00"),
        [],
        {},
        {"a": None, "b": ""},
    ),
]
"""A row of every kind of value, one of nothing but nulls, and one of empty values."""


class OpenSink:
    """A sink that was opened by a driver, with batches of its own making."""

    def __init__(self, contract: SinkContract, endpoint: Endpoint, spark: SparkSession, schema: str) -> None:
        self.contract, self.spark, self.schema = contract, spark, schema
        self.connector: SinkConnector = sink_connector(SINK, replace(endpoint))
        self.options = dict(endpoint.options)
        self.delivery = endpoint.capabilities.deliveries[0]
        self.entry: Entry | None = self.connector.open(self.context)

    @property
    def context(self) -> SinkContext:
        """What the sink knows before its first batch."""
        return SinkContext(SINK, "contract", self.options, schema_of(self.schema), LINEAGE, self.delivery)

    def batch(self, number: int, fingerprint: str = "") -> Batch:
        """A batch of this life."""
        about = Batch(number, SINK, self.options, LINEAGE, self.delivery)
        return replace(about, fingerprint=fingerprint or f"print of {number}", offsets=f"offsets of {number}")

    def frame(self, rows: list[tuple[Any, ...]], parts: int = 2) -> DataFrame:
        """Rows as a frame of so many partitions."""
        made = self.spark.createDataFrame(rows, self.schema.replace("bytes", "binary"))
        return made.repartition(parts) if rows else made

    def stage(self, number: int, rows: list[tuple[Any, ...]], *, fingerprint: str = "", parts: int = 2) -> StagedBatch:
        """Stages a batch."""
        return self.connector.stage(self.frame(rows, parts), self.batch(number, fingerprint))

    def write(self, number: int, rows: list[tuple[Any, ...]], **about: Any) -> None:
        """Stages and commits a batch."""
        self.stage(number, rows, **about).commit()


class SinkContract:
    """What a sink promises. Those of a ledger are checked when the sink says that it holds exactly_once."""

    schema: ClassVar[str] = "id bigint, word string"
    """Fields of the rows that most tests write; the first must tell rows apart."""
    kinds: ClassVar[str] = KINDS
    """Fields of the test of types; leave out what the sink cannot take."""
    reads: ClassVar[int] = 40
    """How often the concurrent reader reads at most."""

    @pytest.fixture
    def endpoint(self, tmp_path: Path) -> Endpoint:
        """An endpoint with nothing in it yet. To be overridden."""
        raise NotImplementedError("give the contract an `endpoint` fixture")

    def shown(self, endpoint: Endpoint) -> list[tuple[Any, ...]]:
        """The rows that a reader sees now. To be overridden."""
        raise NotImplementedError

    def left_aside(self, endpoint: Endpoint) -> int:
        """How many things wait aside, such as staging tables; override where that can be counted."""
        return 0

    def for_kinds(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint for the test of types, where it is another."""
        return endpoint

    def rows(self, first: int, many: int) -> list[tuple[Any, ...]]:
        """Rows that differ from all others."""
        return [(i, f"word {i}") for i in range(first, first + many)]

    @pytest.fixture
    def opened(self, endpoint: Endpoint, penstock_spark: SparkSession) -> Iterator[OpenSink]:
        """The sink, opened by a first driver."""
        made = OpenSink(self, endpoint, penstock_spark, self.schema)
        yield made
        made.connector.close()

    @contextmanager
    def another(self, opened: OpenSink, endpoint: Endpoint) -> Iterator[OpenSink]:
        """A second driver of the same flow and life."""
        made = OpenSink(self, endpoint, opened.spark, opened.schema)
        try:
            yield made
        finally:
            made.connector.close()

    def same(self, endpoint: Endpoint, rows: list[tuple[Any, ...]]) -> None:
        """Holds when a reader sees these rows and no others, each once."""
        there, wanted = Counter(map(_frozen, self.shown(endpoint))), Counter(map(_frozen, rows))
        missing, extra = list((wanted - there).elements()), list((there - wanted).elements())
        assert not missing, f"{len(missing)} rows are missing, such as {missing[0]}"
        assert not extra, f"{len(extra)} rows are too many, such as {extra[0]}"

    def test_what_is_staged_is_not_shown(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """A reader sees nothing of a batch that is not committed."""
        staged = opened.stage(0, self.rows(0, 20))
        self.same(endpoint, [])
        staged.commit()
        self.same(endpoint, self.rows(0, 20))

    def test_an_aborted_batch_leaves_nothing(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """What is aborted is never shown, and nothing of it stays aside."""
        opened.stage(0, self.rows(0, 20)).abort()
        self.same(endpoint, [])
        assert self.left_aside(endpoint) == 0
        opened.write(0, self.rows(0, 5))
        self.same(endpoint, self.rows(0, 5))

    def test_batches_add_up(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """Every batch is shown, also an empty one in between, and nothing is left aside."""
        opened.write(0, self.rows(0, 7))
        opened.write(1, [])
        opened.write(2, self.rows(7, 5))
        self.same(endpoint, self.rows(0, 12))
        assert self.left_aside(endpoint) == 0

    def test_the_number_of_rows_is_told(self, opened: OpenSink) -> None:
        """A staged batch knows how many rows it has, if the sink can tell."""
        assert opened.stage(0, self.rows(0, 13)).rows in (13, None)

    def test_a_failed_task_leaves_nothing(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """When a batch breaks half-way while it is staged, no part of it is shown."""
        broken = opened.frame(self.rows(0, 50)).where("id < 40 or raise_error('broken') is null")
        with pytest.raises(Exception, match="broken"):
            opened.connector.stage(broken, opened.batch(0)).commit()
        self.same(endpoint, [])

    def test_values_come_back_as_they_went(self, endpoint: Endpoint, penstock_spark: SparkSession) -> None:
        """Every kind of value survives, nulls and empty ones too."""
        names = schema_of(KINDS).names
        wanted = [names.index(n) for n in schema_of(self.kinds).names]
        rows = [tuple(row[i] for i in wanted) for row in VALUES]
        target = self.for_kinds(endpoint)
        made = OpenSink(self, target, penstock_spark, self.kinds)
        made.write(0, rows)
        made.connector.close()
        self.same(target, rows)

    def test_a_batch_that_comes_again_is_shown_once(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """A replay shows nothing twice, whatever its partitions."""
        _needs_ledger(opened)
        opened.write(0, self.rows(0, 20), parts=2)
        opened.write(0, self.rows(0, 20), parts=3)
        opened.write(1, self.rows(20, 5))
        opened.write(1, self.rows(20, 5), parts=1)
        self.same(endpoint, self.rows(0, 25))
        assert self.left_aside(endpoint) == 0

    def test_a_batch_of_other_offsets_is_refused(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """The same number with another fingerprint means that the checkpoint is another: fail closed."""
        _needs_ledger(opened)
        opened.write(0, self.rows(0, 5))
        staged = opened.stage(0, self.rows(5, 5), fingerprint="another")
        with pytest.raises(DeliveryError):
            staged.commit()
        self.same(endpoint, self.rows(0, 5))

    def test_a_batch_going_backwards_is_refused(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """An older batch means that the checkpoint is older than the sink."""
        _needs_ledger(opened)
        for number in range(3):
            opened.write(number, self.rows(5 * number, 5))
        staged = opened.stage(1, self.rows(5, 5))
        with pytest.raises(DeliveryError):
            staged.commit()
        self.same(endpoint, self.rows(0, 15))

    def test_a_gap_is_refused(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """A batch that is not the next means that the sink is older than the checkpoint."""
        _needs_ledger(opened)
        opened.write(0, self.rows(0, 5))
        staged = opened.stage(2, self.rows(10, 5))
        with pytest.raises(DeliveryError):
            staged.commit()
        self.same(endpoint, self.rows(0, 5))

    def test_a_driver_that_was_replaced_is_refused(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """When a second driver opens the sink the first can commit no more, not even what it has staged."""
        _needs_ledger(opened)
        opened.write(0, self.rows(0, 5))
        staged = opened.stage(1, self.rows(5, 5))
        with self.another(opened, endpoint) as second:
            with pytest.raises(DeliveryError, match="taken over"):
                staged.commit()
            second.write(1, self.rows(5, 5))
            with pytest.raises(DeliveryError, match="taken over"):
                opened.stage(2, self.rows(10, 5)).commit()
            second.write(2, self.rows(10, 5))
        self.same(endpoint, self.rows(0, 15))

    def test_a_driver_that_starts_first_is_refused_before_any_batch(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """The fence holds from the moment a sink is opened, not only once something is written."""
        _needs_ledger(opened)
        staged = opened.stage(0, self.rows(0, 5))
        with self.another(opened, endpoint) as second:
            with pytest.raises(DeliveryError, match="taken over"):
                staged.commit()
            second.write(0, self.rows(0, 5))
        self.same(endpoint, self.rows(0, 5))

    def test_a_driver_that_starts_again_finds_the_last_entry(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """The ledger tells the batch, its fingerprint, its rows and the text of its offsets."""
        _needs_ledger(opened)
        assert opened.entry is None
        opened.write(0, self.rows(0, 5))
        opened.write(1, self.rows(5, 3))
        with self.another(opened, endpoint) as second:
            found = second.entry
        assert found is not None
        assert (found.batch, found.fingerprint, found.rows) == (1, "print of 1", 3)
        assert found.offsets == "offsets of 1"

    def test_what_a_dead_driver_staged_is_removed(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """A driver that takes over clears what the one before it has left, and shows none of it."""
        _needs_ledger(opened)
        opened.stage(0, self.rows(0, 5))
        with self.another(opened, endpoint) as second:
            second.write(0, self.rows(0, 5))
            assert self.left_aside(endpoint) == 0
        self.same(endpoint, self.rows(0, 5))

    def test_lives_do_not_meet(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """The ledger of one lineage says nothing of another."""
        _needs_ledger(opened)
        opened.write(0, self.rows(0, 5))
        made = sink_connector(SINK, endpoint)
        found = made.open(replace(opened.context, lineage="another00000"))
        made.close()
        assert found is None

    def test_a_reader_sees_whole_batches_only(self, opened: OpenSink, endpoint: Endpoint) -> None:
        """Whoever reads while batches are written sees each as a whole or not at all, and never less than before."""
        _needs_ledger(opened)
        size, batches = 400, 4
        seen: list[int] = []
        done = threading.Event()

        def read() -> None:
            while not done.is_set() and len(seen) < self.reads:
                seen.append(len(self.shown(endpoint)))

        reader = threading.Thread(target=read)
        reader.start()
        try:
            for number in range(batches):
                opened.write(number, self.rows(size * number, size))
        finally:
            done.set()
            reader.join()
        assert [n for n in seen if n % size] == []
        assert seen == sorted(seen)
        self.same(endpoint, self.rows(0, size * batches))


def _needs_ledger(opened: OpenSink) -> None:
    if opened.delivery != EXACTLY_ONCE:
        pytest.skip("the sink does not hold exactly_once")


def _frozen(value: object) -> object:
    """A value that can be counted."""
    if isinstance(value, dict):
        return tuple(sorted((k, _frozen(v)) for k, v in value.items()))
    if hasattr(value, "asDict"):
        return _frozen(value.asDict())
    if isinstance(value, list | tuple):
        return tuple(map(_frozen, value))
    return bytes(value) if isinstance(value, bytearray | memoryview) else value


class InjectedCrash(Exception):
    """Ends a batch, as a crash would."""


class SourceContract:
    """What a source promises."""

    rows_per_read: ClassVar[int] = 50
    live: ClassVar[bool] = True
    bounded: ClassVar[bool] = True
    """Whether it can be read so."""

    @pytest.fixture
    def endpoint(self, tmp_path: Path) -> Endpoint:
        """An endpoint with nothing in it yet; its first field must tell records apart. To be overridden."""
        raise NotImplementedError("give the contract an `endpoint` fixture")

    def add(self, endpoint: Endpoint, first: int, many: int) -> list[tuple[Any, ...]]:
        """Puts records into the source, numbered from `first`; returns them as the flow will see them. To be overridden."""
        raise NotImplementedError

    def batches(
        self, endpoint: Endpoint, spark: SparkSession, folder: Path, *, broken: int = -1
    ) -> dict[int, list[Any]]:
        """Runs the source until it has read what is there; returns the records by batch. Batch `broken` fails after it was seen."""
        seen: dict[int, list[Any]] = {}

        def keep(rows: list[Any], batch: Batch) -> None:
            seen[batch.id] = [tuple(r) for r in rows]
            if batch.id == broken:
                raise InjectedCrash("as a crash would")

        flow = Flow("contract")
        flow.source("in", endpoint).sink("out", callback(keep))
        run_live(flow.graph, spark, RunSpec(checkpoint=folder, mode="once")).wait(pause=0.02)
        return seen

    def everything(self, endpoint: Endpoint, spark: SparkSession) -> list[Any]:
        """What a bounded run reads."""
        seen: list[Any] = []
        flow = Flow("contract")
        flow.source("in", endpoint).sink("out", callback(lambda rows, batch: seen.extend(tuple(r) for r in rows)))
        run_bounded(flow.graph, spark)
        return seen

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        """The checkpoint."""
        return tmp_path / "checkpoint"

    def test_a_bounded_read_gives_what_is_there(self, endpoint: Endpoint, penstock_spark: SparkSession) -> None:
        """All records, each once; none when there are none."""
        _needs(self.bounded, "bounded")
        assert self.everything(endpoint, penstock_spark) == []
        added = self.add(endpoint, 0, self.rows_per_read)
        assert _counted(self.everything(endpoint, penstock_spark)) == _counted(added)

    def test_a_live_read_gives_what_is_there(
        self, endpoint: Endpoint, penstock_spark: SparkSession, folder: Path
    ) -> None:
        """All records, each once."""
        _needs(self.live, "live")
        self.batches(endpoint, penstock_spark, folder)
        added = self.add(endpoint, 0, self.rows_per_read)
        seen = self.batches(endpoint, penstock_spark, folder)
        assert _counted(_all(seen)) == _counted(added)

    def test_a_restart_goes_on(self, endpoint: Endpoint, penstock_spark: SparkSession, folder: Path) -> None:
        """A run that starts again reads what is new, and nothing that was read before."""
        _needs(self.live, "live")
        self.batches(endpoint, penstock_spark, folder)
        many = self.rows_per_read
        self.add(endpoint, 0, many)
        first = self.batches(endpoint, penstock_spark, folder)
        added = self.add(endpoint, many, many)
        second = self.batches(endpoint, penstock_spark, folder)
        assert _counted(_all(second)) == _counted(added)
        assert min(second) > max(first)
        assert _all(self.batches(endpoint, penstock_spark, folder)) == []

    def test_a_batch_that_runs_again_has_the_same_records(
        self, endpoint: Endpoint, penstock_spark: SparkSession, folder: Path
    ) -> None:
        """A replay reads the same range, although more has come since; what has come follows in a batch of its own."""
        _needs(self.live, "live")
        before = self.batches(endpoint, penstock_spark, folder)
        at = max(before, default=-1) + 1
        first = self.add(endpoint, 0, self.rows_per_read)
        with pytest.raises(Exception, match="as a crash would"):
            self.batches(endpoint, penstock_spark, folder, broken=at)
        more = self.add(endpoint, self.rows_per_read, 7)
        seen = self.batches(endpoint, penstock_spark, folder)
        assert _counted(seen[at]) == _counted(first)
        assert _counted(_all(seen)) == _counted(first) + _counted(more)

    def test_the_schema_holds(self, endpoint: Endpoint, penstock_spark: SparkSession, tmp_path: Path) -> None:
        """Frames have the fields that the endpoint says, in types that cast to them."""
        assert endpoint.schema is not None
        context = SourceContext("in", endpoint, endpoint.schema, tmp_path / "source")
        connector = source_connector("in", endpoint)
        frame = (
            connector.bounded(penstock_spark, context) if self.bounded else connector.stream(penstock_spark, context)
        )
        wanted = penstock_spark.createDataFrame([], str(endpoint.schema)).schema
        assert [(f.name, f.dataType) for f in frame.schema] == [(f.name, f.dataType) for f in wanted]
        connector.close()


def _needs(can: bool, how: str) -> None:
    if not can:
        pytest.skip(f"the source is not read {how}")


def _all(seen: dict[int, list[Any]]) -> list[Any]:
    return [row for number in sorted(seen) for row in seen[number]]


def _counted(rows: list[Any]) -> Counter[Any]:
    return Counter(map(_frozen, rows))
