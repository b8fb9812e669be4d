"""Records on their way into the log: those that wait to be appended together, and the promises made for them."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from penstock.log.produce.partitioner import partition_for
from penstock.log.record import AppendResult
from penstock.log.storage.columns import Columns, columns

HeaderList = Sequence[tuple[str, bytes | None]]


class PendingBatch:
    """Records of one partition that wait to be appended together."""

    def __init__(self, due: float) -> None:
        self.due = due
        self.values: list[bytes | None] = []
        self.keys: list[bytes | None] | None = None
        self.headers: list[HeaderList] | None = None
        self.times: list[int] = []
        self.size = 0
        self.done = threading.Event()
        self.result: AppendResult | None = None
        self.error: BaseException | None = None

    def add(self, value: bytes | None, key: bytes | None, headers: HeaderList, timestamp: int, size: int) -> Ack:
        """Put a record into the batch."""
        number = len(self.values)
        self.values.append(value)
        self.times.append(timestamp)
        if key is not None or self.keys is not None:
            self.keys = self.keys if self.keys is not None else [None] * number
            self.keys.append(key)
        if headers or self.headers is not None:
            self.headers = self.headers if self.headers is not None else [()] * number
            self.headers.append(headers)
        self.size += size
        return Ack(self, number)

    def columns(self) -> Columns:
        """The records as columns."""
        return columns(self.values, self.keys, self.headers, self.times)

    def settle(self, result: AppendResult | None, error: BaseException | None = None) -> None:
        """Answer all acks."""
        self.result, self.error = result, error
        self.done.set()


class Ack:
    """The promise of a sent record; `result` waits until it is on disk."""

    __slots__ = ("_batch", "_number")

    def __init__(self, batch: PendingBatch, number: int) -> None:
        self._batch = batch
        self._number = number

    def done(self) -> bool:
        """Whether the record is on disk, or has failed."""
        return self._batch.done.is_set()

    def result(self, timeout: float | None = None) -> AppendResult:
        """Where the record is; raises what went wrong, or TimeoutError."""
        if not self._batch.done.wait(timeout):
            raise TimeoutError(f"the record was not acknowledged within {timeout} s")
        if self._batch.error is not None:
            raise self._batch.error
        result = self._batch.result
        assert result is not None
        return result._replace(offset=result.offset + self._number, records=1)


def spread(
    partitions: int,
    unkeyed: int,
    values: Sequence[bytes | None],
    keys: Sequence[bytes | None],
    headers: Sequence[HeaderList] | None,
    times: int | Sequence[int],
) -> list[tuple[int, Columns]]:
    """The records by partition: by key, and those without a key all to `unkeyed`."""
    rows: dict[int, list[int]] = {}
    for row, key in enumerate(keys):
        rows.setdefault(unkeyed if key is None else partition_for(key, partitions), []).append(row)
    return [
        (
            number,
            columns(
                [values[r] for r in mine],
                [keys[r] for r in mine],
                None if headers is None else [headers[r] for r in mine],
                times if isinstance(times, int) else [times[r] for r in mine],
            ),
        )
        for number, mine in sorted(rows.items())
    ]
