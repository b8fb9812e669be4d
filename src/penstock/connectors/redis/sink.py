"""Redis as a sink: tasks put commands aside, and one script checks the ledger, runs them all and notes the batch."""

from __future__ import annotations

import time
import uuid
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.base import Batch, Refusal, SinkContext, StagedBatch, refusals_of
from penstock.connectors.delivery import SKIP, Entry, LedgerSink, verdict
from penstock.connectors.redis.refusals import LARGEST, NUMBER, Limits, largest_value, other_kinds
from penstock.connectors.redis.wire import TAG, Address, Layout, driver, packed
from penstock.errors import DeliveryError, RunError
from penstock.faults import passing
from penstock.graph.endpoints.delivery import EXACTLY_ONCE

if TYPE_CHECKING:
    from types import TracebackType

    import redis
    from pyspark.sql import DataFrame

BOUNDED = "bounded"
DAY = 86_400
PATIENCE = 30.0
COMMANDS, BYTES = 200, 16 * 1024 * 1024
"""Commands put aside as one value, and their bytes; the commands of a row stay together."""
REPORT = pa.schema(
    [
        ("key", pa.string()),
        ("rows", pa.int64()),
        ("commands", pa.int64()),
        ("crc", pa.int64()),
        ("refused", pa.map_(pa.int64(), pa.string())),
    ]
)

COMMIT = """
local ledger = KEYS[1]
if ARGV[1] == 'yes' then
  local seen = redis.call('HMGET', ledger, 'fence', 'batch', 'fingerprint')
  for i = 1, 3 do
    if (seen[i] or '') ~= ARGV[1 + i] then return 'changed' end
  end
end
local waiting, checked = {}, {}
for i = 2, #KEYS do
  for _, text in ipairs(redis.call('LRANGE', KEYS[i], 0, -1)) do
    for _, command in ipairs(cmsgpack.unpack(text)) do
      local key = command[2]
      if not checked[key] then
        local kind = redis.call('TYPE', key)['ok']
        if kind ~= 'none' and kind ~= ARGV[5] and not (command[1] == 'SET') then return 'type ' .. kind .. ' ' .. key end
        checked[key] = true
      end
      waiting[#waiting + 1] = command
    end
  end
end
if #waiting ~= tonumber(ARGV[6]) then return 'count ' .. #waiting end
for _, command in ipairs(waiting) do redis.call(unpack(command)) end
for i = 2, #KEYS do redis.call('UNLINK', KEYS[i]) end
if ARGV[1] == 'yes' then
  redis.call('HSET', ledger, 'batch', ARGV[7], 'fingerprint', ARGV[8], 'fence', ARGV[9], 'rows', ARGV[10], 'crc', ARGV[11], 'offsets', ARGV[12],
    'refused', ARGV[13])
end
return 'done'
"""
"""All that can be wrong is found before the first command runs: a script is not undone when it fails half-way."""


class RedisSink(LedgerSink):
    """Hashes, strings, lists or streams. Readers of the primary see complete batches, each once."""

    def __init__(self) -> None:
        self.context: SinkContext | None = None
        self.largest = LARGEST

    def refuses(self, context: SinkContext) -> str:
        """A server that may forget its last second cannot hold exactly_once, unless the user takes that."""
        if context.delivery != EXACTLY_ONCE or context.lineage == BOUNDED or context.options.get("accept_rollback"):
            return ""
        return _forgets(context)

    def open(self, context: SinkContext) -> Entry | None:
        """Takes over from older drivers, and removes what they have left."""
        self.context = context
        client = self.client()
        with _talking(context, "opening"):
            if client.info("cluster").get("cluster_enabled"):
                raise RunError(
                    f"sink {context.sink!r}: this Redis is a cluster; a batch must be written to one server as a whole"
                )
            self.largest = largest_value(client)
            if context.lineage == BOUNDED:
                return None
            self.fence = int(client.hincrby(self.ledger, "fence", 1))
            self.clean()
            return self.entry() if context.delivery == EXACTLY_ONCE else None

    @property
    def ledger(self) -> str:
        """The key of the ledger; the tag keeps all keys of the sink on one server."""
        context = self._opened()
        return f"{TAG}:{{{TAG}}}:ledger:{context.sink}:{context.lineage}"

    @property
    def aside(self) -> str:
        """How the keys begin under which this sink puts things aside."""
        context = self._opened()
        return f"{TAG}:{{{TAG}}}:stage:{context.sink}:{context.lineage}:"

    def entry(self) -> Entry | None:
        """The last entry of the ledger."""
        found: dict[bytes, bytes] = self.client().hgetall(self.ledger)  # type: ignore[assignment]
        if b"batch" not in found:
            return None
        return Entry(
            int(found[b"batch"]),
            found[b"fingerprint"].decode(),
            int(found[b"fence"]),
            int(found[b"rows"]),
            int(found[b"crc"]),
            found[b"offsets"].decode(),
            refused=found.get(b"refused", b"").decode(),
        )

    def clean(self) -> None:
        """Removes what attempts of older drivers have left."""
        client, prefix = self.client(), self.aside
        for key in client.scan_iter(match=_beginning(prefix), count=1000):
            if int(key.decode().removeprefix(prefix).split(":")[0]) < self.fence:
                client.unlink(key)

    def stage(self, frame: DataFrame, batch: Batch) -> StagedBatch:
        """Has every task put its commands aside."""
        return self._staged(frame, batch, Limits(self.largest))[0]

    def stage_rows(self, frame: DataFrame, batch: Batch) -> tuple[StagedBatch, list[Refusal]]:
        """As `stage`, without the rows that cannot be written, which are told."""
        numbered = frame.selectExpr("*", f"monotonically_increasing_id() as {NUMBER}")
        limits = Limits(self.largest, tells=True)
        while True:
            staged, refused = self._staged(numbered, batch, limits)
            staged.look()
            wrong = {} if staged.through else other_kinds(self.client(), staged.keys, staged.layout)
            if not wrong:
                return staged, refusals_of(numbered, refused)
            staged.abort()
            limits.other_kinds.update(wrong)

    def _staged(self, frame: DataFrame, batch: Batch, limits: Limits) -> tuple[StagedCommands, dict[int, str]]:
        """What tasks have put aside, and what is said against the rows that are refused."""
        context = self._opened()
        layout = Layout.of(context.options)
        prefix = f"{self.aside}{self.fence}:{uuid.uuid4().hex[:12]}:"
        staged = StagedCommands(self, layout, prefix, batch)
        try:
            task = StageTask(Address.of(context.options), f"sink {context.sink!r}", layout, prefix, limits)
            shape = "key string, rows bigint, commands bigint, crc bigint, refused map<bigint, string>"
            reports = frame.mapInArrow(task, shape).collect()
        except BaseException:
            staged.abort()
            raise
        staged.keys, staged.rows = [r[0] for r in reports], sum(r[1] for r in reports)
        staged.commands = sum(r[2] for r in reports)
        for report in reports:
            staged.crc ^= report[3]
        return staged, {number: said for report in reports for number, said in dict(report[4]).items()}

    def _opened(self) -> SinkContext:
        assert self.context is not None, "a sink is opened before its first batch"
        return self.context

    def interrupt(self) -> bool:
        """Ends the driver's connections; the ledger tells later what became of a commit."""
        self.client().connection_pool.disconnect(inuse_connections=True)
        return True

    def client(self) -> redis.Redis:
        """The connection to the server."""
        return Address.of(self._opened().options).client()


class _talking:  # noqa: N801 - reads as a verb
    """The server's errors as Penstock's."""

    def __init__(self, context: SinkContext, doing: str) -> None:
        self.context, self.doing = context, doing

    def __enter__(self) -> None:
        """Nothing to do."""

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if isinstance(error, driver().RedisError):
            text = Address.of(self.context.options).clean(error)
            raise RunError(f"sink {self.context.sink!r}: {self.doing} failed: {text}") from None


def _beginning(text: str) -> str:
    """The pattern of keys that begin so.

    >>> _beginning("a[1]:")
    'a?1?:*'
    """
    return "".join("?" if c in "*?[]\\^" else c for c in text) + "*"


def _forgets(context: SinkContext) -> str:
    redis = driver()
    with _talking(context, "asking for its settings"):
        try:
            found: Any = Address.of(context.options).client().config_get("append*")
        except redis.ResponseError:
            found = {}
    if found.get("appendonly") == "yes" and found.get("appendfsync") == "always":
        return ""
    said = (
        f"appendonly {found['appendonly']}, appendfsync {found['appendfsync']}"
        if found
        else "it does not tell its settings"
    )
    return (
        f"the server may forget what it has confirmed ({said}). Set appendonly yes and appendfsync always, or take "
        f"delivery='at_least_once', or say accept_rollback=True: after a crash the flow then goes back to what the server still has"
    )


@dataclass(frozen=True)
class StageTask:
    """Puts the commands of a task aside, under a key of its own. Runs in a worker."""

    address: Address
    who: str
    layout: Layout
    prefix: str
    limits: Limits = field(default_factory=Limits)

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """Takes all batches, and returns one row that tells of them."""
        key, rows, commands, crc = f"{self.prefix}{uuid.uuid4().hex[:12]}", 0, 0, 0
        refused: dict[int, str] = {}
        try:
            for batch in batches:
                texts = list(self._packed(batch, refused))
                with self.address.client().pipeline(transaction=False) as pipe:
                    for many, text in texts:
                        pipe.rpush(key, text)
                        commands, crc = commands + many, zlib.crc32(text, crc)
                    if texts:
                        pipe.expire(key, DAY)
                        pipe.execute()
                rows += batch.num_rows
        except driver().RedisError as error:
            raise RunError(f"{self.who}: staging failed: {self.address.clean(error)}") from None
        if rows:
            yield pa.record_batch(
                [[key], [rows - len(refused)], [commands], [crc], [[*refused.items()]]], schema=REPORT
            )

    def _packed(self, batch: pa.RecordBatch, refused: dict[int, str]) -> Iterator[tuple[int, bytes]]:
        """The commands of a batch as values: as many in one as it holds, and the server takes."""
        some: list[list[bytes]] = []
        filled, most = 0, min(BYTES, self.limits.largest - 5)
        for commands, size in self.limits.commands(self.layout, batch, refused):
            if some and (len(some) >= COMMANDS or filled + size > most):
                yield len(some), packed(some)
                some, filled = [], 0
            some += commands
            filled += size
        if some:
            yield len(some), packed(some)


class StagedCommands(StagedBatch):
    """Commands that wait aside."""

    def __init__(self, sink: RedisSink, layout: Layout, prefix: str, batch: Batch) -> None:
        self.sink, self.layout, self.prefix, self.batch = sink, layout, prefix, batch
        self.keys: list[str] = []
        self.commands = self.crc = 0

    def commit(self) -> None:
        """Runs the commands and notes the batch, at once.

        When the connection is lost meanwhile the ledger is read again, and tells whether it was done.
        """
        deadline, tried = time.monotonic() + PATIENCE, False
        while True:
            try:
                if self._committed(tried):
                    break
            except (driver().ConnectionError, driver().TimeoutError) as error:
                if time.monotonic() > deadline:
                    raise RunError(
                        f"sink {self.batch.sink!r}: batch {self.batch.id} could not be written: {error}"
                    ) from None
                time.sleep(0.2)
            tried = True
        passing("after sink commit", self.batch.id)

    def _committed(self, again: bool) -> bool:
        """Tries once; false when another has changed the ledger in between."""
        client = self.sink.client()
        if not self._exactly:
            if again and self.keys and not client.exists(*self.keys):
                return True
            return self._run(client, ["no", "", "", ""])
        entry = self.sink.entry()
        if self._fence(client) > self.sink.fence:
            verdict(Entry(self.batch.id - 1, "", self._fence(client)), self.batch, self.sink.fence)
        if verdict(entry, self.batch, self.sink.fence) == SKIP:
            self.abort()
            return True
        passing("ledger checked", self.batch.id)
        seen = [str(entry.batch), entry.fingerprint] if entry is not None else ["", ""]
        return self._run(client, ["yes", str(self.sink.fence), *seen])

    def look(self) -> None:
        """Finds out whether the ledger has the batch already, and what it says of refused rows then."""
        entry = self.sink.entry() if self._exactly else None
        self.through = self._exactly and verdict(entry, self.batch, self.sink.fence) == SKIP
        self.refused = entry.refused if entry is not None and self.through else ""

    @property
    def _exactly(self) -> bool:
        return self.batch.delivery == EXACTLY_ONCE and self.batch.lineage != BOUNDED

    def _fence(self, client: redis.Redis) -> int:
        found = client.hget(self.sink.ledger, "fence")
        if found is None:
            raise DeliveryError(
                f"sink {self.batch.sink!r}: its ledger is gone from the server, so nobody knows what was written. Restore the server, or "
                f"start afresh with --fresh"
            )
        return int(found)

    def _run(self, client: redis.Redis, expected: list[str]) -> bool:
        entry = Entry.of(self.batch, self.sink.fence, self.rows or 0, self.crc, self.refused)
        about: list[str | int] = [entry.batch, entry.fingerprint, entry.fence, entry.rows, entry.crc, entry.offsets]
        about.append(entry.refused)
        arguments: list[str | int] = [*expected, self.layout.type, self.commands, *about]
        said: Any = client.register_script(COMMIT)(keys=[self.sink.ledger, *self.keys], args=arguments)
        answer = said.decode()
        if answer.startswith("type"):
            _, kind, key = answer.split(" ", 2)
            raise RunError(
                f"sink {self.batch.sink!r}: the key {key!r} holds a {kind}, not a {self.layout.kind}; nothing of batch {self.batch.id} was written"
            )
        if answer.startswith("count"):
            raise RunError(
                f"sink {self.batch.sink!r}: {self.commands} commands of batch {self.batch.id} were put aside, and {answer[6:]} are there. The "
                f"server may have restarted in between; nothing was written, and the batch can run again"
            )
        return bool(answer == "done")

    def abort(self) -> None:
        """Removes what was put aside, if the server can be reached; else it goes within a day."""
        try:
            client = self.sink.client()
            for key in client.scan_iter(match=_beginning(self.prefix), count=1000):
                client.unlink(key)
        except driver().RedisError:
            return
