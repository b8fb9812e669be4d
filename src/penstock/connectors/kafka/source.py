"""Kafka as a source: Spark's own connector, or one in Python for where its JARs cannot go."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from pyspark.sql import functions as f

from penstock.connectors.base import SourceConnector, SourceContext
from penstock.connectors.kafka.admin import Cluster
from penstock.connectors.kafka.reader import PythonKafka
from penstock.connectors.kafka.settings import LOG, java_settings
from penstock.connectors.kafka.wire import decoded
from penstock.connectors.malformed import (
    beside,
    not_text,
    position_in,
    raw_rows,
    read_texts,
    read_values,
)
from penstock.connectors.parsing import json_reading, outside, reads_plainly
from penstock.errors import PenstockError
from penstock.graph.endpoints.kafka import ABOUT, REGISTERED
from penstock.graph.schema import Schema
from penstock.graph.types import TIMESTAMP, quote

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from penstock.connectors.kafka.reader import PythonKafka


class KafkaSource(SourceConnector):
    """Topics, live or bounded. Live, a consumer group shows how far the flow has come."""

    def __init__(self) -> None:
        self._cluster: Cluster | None = None
        self._shown: dict[str, Any] = {}

    def stream(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """What is there from the start on, then what comes."""
        self._cluster = Cluster(context.options["servers"], context.options["client"])
        self._cluster.check_topics(context, live=True)
        if context.options["via"] == "python":
            return fields(_python(spark, context).stream(), context)
        reader = spark.readStream.format("kafka").options(**_options(context, self._cluster))
        if "rows_per_batch" in context.options:
            reader = reader.option("maxOffsetsPerTrigger", context.options["rows_per_batch"])
        return fields(reader.load(), context)

    def bounded(self, spark: SparkSession, context: SourceContext) -> DataFrame:
        """What is there between the start and the end."""
        cluster = Cluster(context.options["servers"], context.options["client"])
        cluster.check_topics(context)
        if context.options["via"] == "python":
            return fields(_python(spark, context).bounded(), context)
        given = _options(context, cluster) | cluster.spark_position(context, "end")
        return fields(spark.read.format("kafka").options(**given).load(), context)

    def reached(self, context: SourceContext, offset: Any) -> None:
        """Commits the end of a batch to the consumer group, so that Kafka's own tools show the lag."""
        group = group_of(context)
        if not group or self._cluster is None or offset == self._shown:
            return
        self._shown = offset
        found = json.loads(offset) if isinstance(offset, str) else offset
        try:
            self._cluster.commit(group, found)
        except PenstockError as error:  # people look at the group; the flow's own position is in its checkpoint
            LOG.warning("%s", error)

    def reread(self, spark: SparkSession, context: SourceContext, dead_letters: list[dict[str, Any]]) -> DataFrame:
        """Reads the values of dead letters, with what the records carry beside them."""
        names = ("value", *ABOUT.names)
        return fields(spark.createDataFrame(raw_rows(dead_letters, names), f"value binary, {ABOUT}"), context)

    def close(self) -> None:
        """Closes the client."""
        if self._cluster is not None:
            self._cluster.close()
            self._cluster = None


def group_of(context: SourceContext) -> str:
    """The consumer group of a source: the user's, or one named after flow and step."""
    group = context.endpoint.options.get("group")
    return f"penstock-{context.flow}-{context.step}" if group is None else str(group)


def _options(context: SourceContext, cluster: Cluster) -> dict[str, Any]:
    given = context.options
    made: dict[str, Any] = java_settings(given["servers"], given["client"])
    made["subscribePattern" if given.get("pattern") else "subscribe"] = ",".join(given["topics"])
    made["failOnDataLoss"] = str(given["fail_on_data_loss"]).lower()
    made["kafka.isolation.level"] = "read_committed" if given["read_committed"] else "read_uncommitted"
    if "headers" in context.schema and "headers" in (*given["also"],):
        made["includeHeaders"] = "true"
    return made | cluster.spark_position(context, "start")


def _python(spark: SparkSession, context: SourceContext) -> PythonKafka:
    return PythonKafka(spark, context)


def fields(frame: DataFrame, context: SourceContext) -> DataFrame:
    """The fields of the step, from what Kafka returns."""
    kind, also = context.options["format"], context.options["also"]
    if "timestamp" in (*also, *(context.schema.names if kind in ("raw", "text") else ())):
        frame = frame.withColumn("timestamp", f.expr(f"if({outside('timestamp', TIMESTAMP)}, null, timestamp)"))
    if kind == "raw":
        return frame.select(*map(quote, context.schema.names))
    position = position_in("concat('topic ', topic)")
    if kind == "text":
        return read_texts(frame, context, context.schema.names, position)
    value = Schema(tuple(f for f in context.schema.fields if f.name not in also))
    if kind in REGISTERED:
        return decoded(frame, context, value, position)
    plainly = "key" not in also and reads_plainly(frame.sparkSession)
    reading = json_reading("cast(value as string)", value, plainly=plainly)
    return read_values(frame, context, value, reading, position, *beside(also), not_text("value"))
