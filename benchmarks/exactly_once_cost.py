"""What exactly-once costs over at-least-once, on PostgreSQL and on files; and, for the figure, a COPY straight into the table."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.harness import Bar, Result, batch_seconds, folder, spark_session
from penstock.graph.endpoints.servers import write_postgres
from penstock.graph.nodes import Endpoint

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

NAME = "exactly-once-cost"
ABOUT = "a batch delivered exactly once, against the same batch delivered at least once: PostgreSQL and files"
FIELDS = "id bigint, customer string, amount double, at timestamp"
COLUMNS = "id bigint, customer text, amount double precision, at timestamptz"
SKIP = 2


def flow_seconds(spark: SparkSession, source: Path, out: Endpoint, delivery: str, checkpoint: Path) -> float:
    """The middle of a run's batch times."""
    from penstock.graph.run import RunSpec
    from penstock.spark.run import run_live

    flow = ps.Flow("cost")
    flow.source("orders", ps.files(source, "parquet", FIELDS, files_per_batch=1)).sink("out", out, delivery=delivery)
    live = run_live(flow.graph, spark, RunSpec(checkpoint=checkpoint, mode="once"))
    live.wait()
    return statistics.median(batch_seconds(live.query, SKIP))


def by_hand(spark: SparkSession, source: Path, url: str, checkpoint: Path) -> float:
    """A foreachBatch whose tasks copy straight into the table: parts of a batch show early, and again after a failure."""

    def copy(batches: Iterable[Any]) -> Iterator[Any]:
        import psycopg
        import pyarrow as pa

        from penstock.connectors.postgres.types import Encoder

        encoder, done = Encoder([(n, "") for n in ("id", "customer", "amount", "at")]), 0
        with (
            psycopg.connect(url, options="-c timezone=UTC") as db,
            db.cursor().copy("copy by_hand from stdin (format csv)") as out,
        ):
            for batch in batches:
                out.write(encoder.encode(batch, done))
                done += batch.num_rows
        yield pa.RecordBatch.from_pydict({"rows": [done]})

    def write(batch: DataFrame, number: int) -> None:
        batch.mapInArrow(copy, "rows bigint").collect()

    reader = spark.readStream.schema(FIELDS).option("maxFilesPerTrigger", 1).parquet(str(source))
    query = (
        reader.writeStream.foreachBatch(write)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return statistics.median(batch_seconds(query, SKIP))


def run(quick: bool) -> Result:
    from penstock.testing.servers import postgres_server

    batches, rows, rounds = (8, 20_000, 2) if quick else (14, 50_000, 4)
    spark = spark_session()
    with folder() as directory, postgres_server() as server:
        source = _orders(spark, directory, batches, rows)
        sinks: dict[str, Callable[[str], Endpoint]] = {
            "postgres": lambda name: write_postgres(server.url, name, create=True),
            "files": lambda name: ps.write_files(directory / name),
        }
        taken: dict[str, list[float]] = {}
        for at in range(rounds + 1):
            for kind, make in sinks.items():
                for delivery in sorted(("at_least_once", "exactly_once"), reverse=bool(at % 2)):
                    name = f"{kind}_{delivery}_{at}"
                    seconds = flow_seconds(spark, source, make(name), delivery, directory / f"c_{name}")
                    taken.setdefault(f"{kind}_{delivery}", []).append(seconds)
            taken.setdefault("postgres_by_hand", []).append(_copied(spark, source, server.url, directory / f"hand{at}"))
    return _result(taken, {"batches": batches, "rows": rows})


def _copied(spark: SparkSession, source: Path, url: str, checkpoint: Path) -> float:
    import psycopg

    with psycopg.connect(url, autocommit=True) as db:
        db.execute("drop table if exists by_hand")
        db.execute(f"create table by_hand ({COLUMNS}, number bigint)".encode())
    return by_hand(spark, source, url, checkpoint)


def _result(taken: dict[str, list[float]], sizes: dict[str, float]) -> Result:
    warm = {name: seconds[1:] for name, seconds in taken.items()}
    bars = [
        Bar(f"exactly_once over at_least_once, {kind}", _ratio(warm, kind), at_most=1.3)
        for kind in ("postgres", "files")
    ]
    figures = {f"{name}_batch_seconds": statistics.median(seconds) for name, seconds in warm.items()}
    return Result(NAME, {**sizes, **figures}, tuple(bars))


def _ratio(taken: dict[str, list[float]], kind: str) -> float:
    pairs = zip(taken[f"{kind}_exactly_once"], taken[f"{kind}_at_least_once"], strict=True)
    return statistics.median(a / b for a, b in pairs)


def _orders(spark: SparkSession, directory: Path, batches: int, rows: int) -> Path:
    made = spark.range(0, batches * rows, 1, batches).selectExpr(
        "id",
        "concat('customer', id % 997) as customer",
        "cast(id * 0.25 as double) as amount",
        "timestamp_seconds(1700000000 + id) as at",
    )
    made.write.parquet(str(directory / "orders"))
    return directory / "orders"
