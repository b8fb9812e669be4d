"""The embedded log as a sink: one append for each partition and batch, and a ledger beside the topics.

A named producer stands for the sink and its lineage: a new driver takes the name over, which fences the old one in the log itself, and
raises the fence in the ledger, which no older driver can write from then on.
Before a batch is appended the sink notes at which record numbers it begins; the log knows a number that was written already, so a
batch that runs again adds only what is missing. A driver that finds such a note, and records of that batch, goes on with its offsets.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from penstock.connectors.base import REFUSED, Batch, Refusal, SinkContext, StagedBatch
from penstock.connectors.delivery import SKIP, Entry, LedgerSink, verdict
from penstock.connectors.file_ledger import FileLedger, Intent, LedgerState
from penstock.connectors.rows import all_refused
from penstock.errors import DeliveryError, RunError, SchemaError, nearest
from penstock.faults import passing
from penstock.graph.endpoints.delivery import EXACTLY_ONCE
from penstock.graph.nodes.changes import DELETE, OPERATION
from penstock.graph.types import quote
from penstock.log import Log, LogError, ProducerFenced, TopicExists
from penstock.log.produce.partitioner import partition_for
from penstock.storage import LocalStorage, object_name

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_NUMBER = "__number"
Shares = dict[int, tuple[list[bytes | None], list[bytes | None]]]


class LogSink(LedgerSink):
    """A topic, made if it is not there."""

    needs_keys = False
    """Whether the topic is compacted, which it is for good."""

    def refuses(self, context: SinkContext) -> str:
        """Refuses a key or a value that is no field, before anything is written."""
        names = tuple(n for n in context.schema.names if n != OPERATION)
        for key in _key(context.options):
            if key not in names:
                raise SchemaError(f"sink {context.sink!r}: no field {key!r} for the key; {nearest(key, names)}")
        if OPERATION in context.schema and not _key(context.options):
            raise SchemaError(
                f"sink {context.sink!r}: its table has one row and no key, so a record cannot say that the row is gone; give key='a field'"
            )
        if context.options["format"] != "json" and "value" not in names and len(names) != 1:
            raise SchemaError(
                f"sink {context.sink!r}: {context.options['format']} values are the field 'value', or the only field; there are "
                f"{', '.join(map(repr, names))}. Map to one field first, or take format='json'"
            )
        return ""

    def open(self, context: SinkContext) -> Entry | None:
        """Takes over from older drivers, and returns the last entry of this lineage."""
        self.log = Log(context.options["path"])
        with contextlib.suppress(TopicExists):
            self.log.create_topic(context.options["topic"], context.options["partitions"])
        self.needs_keys = self.log.describe(context.options["topic"]).config.cleanup == "compact"
        self.producer = self.log.producer(_producer_name(context))
        self.fence = self.producer.epoch + 1
        storage = LocalStorage(Path(context.options["path"]) / "sinks")
        self.ledger = FileLedger(storage, object_name(context.flow, context.sink, f"{context.lineage}.json"))
        return self._take_over(context.options["topic"])

    def _take_over(self, topic: str) -> Entry | None:
        state = self.ledger.take_over(self.fence, lambda intent: self.appended(topic, intent))
        under_way = state.intent
        if under_way is None:
            return state.entry
        return Entry(under_way.batch, under_way.fingerprint, self.fence, offsets=under_way.offsets, is_complete=False)

    def appended(self, topic: str, intent: Intent) -> bool:
        """Whether any record of a batch that was under way is in the topic. From now on no older driver can add one."""
        return any(self.producer.last_sequence(topic, p) >= begin for p, begin in intent.begins.items())

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Brings the records here, as keys and values."""
        columns = frame.selectExpr(*_columns(frame.columns, batch.options)).toArrow().to_pydict()
        if self.needs_keys and None in columns["key"]:
            raise RunError(
                f"sink {batch.sink!r} {REFUSED} {_keyless(batch)}. To go on without such rows: .sink({batch.sink!r}, ..., on_error='dead_letter')"
            )
        return StagedRecords(self, columns["key"], columns["value"], batch)

    def stage_rows(self, frame: DataFrame, batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
        """As `stage`, without the records that have no key where the topic is compacted, which are told."""
        if not self.needs_keys:
            return self.stage(frame, batch), []
        numbered = frame.selectExpr("*", f"monotonically_increasing_id() as {_NUMBER}")
        keyless = f"{_key_text(_key(batch.options))} is null"
        staged = self.stage(numbered.where(f"not ({keyless})").drop(_NUMBER), batch)
        return staged, all_refused(numbered.where(keyless), lambda number: _keyless(batch))

    def close(self) -> None:
        """Closes the log."""
        if hasattr(self, "log"):
            self.log.close()


def _keyless(batch: Batch) -> str:
    """What is said against a record without a key."""
    fields = _key(batch.options)
    why = f"{' and '.join(fields)} is null" if fields else "the sink has no key='a field'"
    return f"the topic {batch.options['topic']!r} is compacted, so every record needs a key, and {why}"


def _producer_name(context: SinkContext) -> str:
    """A name as producers may have it. The lineage makes it unique; a long one is cut."""
    parts = (re.sub(r"[^A-Za-z0-9._-]", "_", text)[:60] for text in (context.flow, context.sink, context.lineage))
    return ".".join(parts)


def _columns(names: list[str], options: dict[str, Any]) -> list[str]:
    """The key and the value of a record, as SQL; a row that is gone from a table has no value."""
    body = [n for n in names if n != OPERATION]
    if options["format"] == "json":
        value = f"to_json(struct({', '.join(map(quote, body))}), map('ignoreNullFields', 'false'))"
    else:
        value = quote("value" if "value" in body else body[0])
    value = f"if({OPERATION} = '{DELETE}', null, {value})" if OPERATION in names else value
    return [f"{_key_text(_key(options))} as key", f"cast({value} as binary) as value"]


def _key(options: dict[str, Any]) -> tuple[str, ...]:
    """The fields of the key."""
    given = options.get("key") or ()
    return (given,) if isinstance(given, str) else tuple(given)


def _key_text(names: tuple[str, ...]) -> str:
    """The key of a record, as SQL: one field as text, several as JSON."""
    if not names:
        return "cast(null as binary)"
    if len(names) == 1:
        return f"cast(cast({quote(names[0])} as string) as binary)"
    return f"cast(to_json(struct({', '.join(map(quote, names))}), map('ignoreNullFields', 'false')) as binary)"


class StagedRecords(StagedBatch):
    """Records that wait to be appended."""

    def __init__(self, sink: LogSink, keys: list[bytes | None], values: list[bytes | None], batch: Batch) -> None:
        self.sink, self.keys, self.values, self.batch = sink, keys, values, batch
        self.rows = len(values)

    def commit(self) -> None:
        """Appends them."""
        try:
            if self.batch.delivery == EXACTLY_ONCE and self.batch.fingerprint:
                self._commit_once()
            else:
                self._append({})
        except ProducerFenced as error:
            raise DeliveryError(
                f"sink {self.batch.sink!r}: another driver of this flow has taken over ({error})"
            ) from None
        except LogError as error:
            raise RunError(
                f"sink {self.batch.sink!r}: batch {self.batch.id} was not written as a whole: {error}. When that is mended, start again: the flow goes "
                f"on with this batch"
            ) from None

    def _commit_once(self) -> None:
        ledger = self.sink.ledger
        state = ledger.read_as(self.batch, self.sink.fence)
        if verdict(state.entry, self.batch, self.sink.fence) == SKIP:
            return
        begins = self._begins(state)
        self._append(begins)
        passing("after sink commit", self.batch.id)
        ledger.write(
            LedgerState(self.sink.fence, Entry.of(self.batch, self.sink.fence, self.rows or 0)),
            self.batch,
        )

    def _begins(self, state: LedgerState) -> Mapping[int, int]:
        """At which record numbers the batch begins; noted before the first append, and found again on a replay."""
        topic = self.batch.options["topic"]
        if state.intent is not None and state.intent.is_of(self.batch):
            return state.intent.begins
        if state.intent is not None and self.sink.appended(topic, state.intent):
            raise DeliveryError(
                f"sink {self.batch.sink!r} holds records of batch {state.intent.batch}, made of other offsets than batch {self.batch.id} "
                f"now. The checkpoint is not the one it was written with; restore that one, or start afresh with --fresh and an empty sink"
            )
        begins = {p: self.sink.producer.last_sequence(topic, p) + 1 for p in self._shares}
        intent = Intent(self.batch.id, self.batch.fingerprint, begins, self.batch.offsets)
        self.sink.ledger.write(replace(state, fence=self.sink.fence, intent=intent), self.batch)
        passing("intent written", self.batch.id)
        return begins

    def _append(self, begins: Mapping[int, int]) -> None:
        for partition, (keys, values) in sorted(self._shares.items()):
            given = keys if any(k is not None for k in keys) else None
            self.sink.producer.send_many(
                self.batch.options["topic"], values, given, partition=partition, sequence=begins.get(partition)
            )

    @cached_property
    def _shares(self) -> Shares:
        """The records of each partition: by key as Kafka spreads them, those without a key by turns of batches."""
        partitions = len(self.sink.log.offsets(self.batch.options["topic"]))
        shares: Shares = {}
        for key, value in zip(self.keys, self.values, strict=True):
            number = self.batch.id % partitions if key is None else partition_for(key, partitions)
            mine = shares.setdefault(number, ([], []))
            mine[0].append(key)
            mine[1].append(value)
        return shares
