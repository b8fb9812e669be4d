"""Connections to Redis (or Valkey), and rows as the commands that write them."""

from __future__ import annotations

import datetime
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from penstock.connectors.address import ServerAddress
from penstock.connectors.texts import json_text
from penstock.errors import RunError, SetupError
from penstock.graph.nodes.changes import DELETE, OPERATION
from penstock.kernels.records.arrow import to_columns

if TYPE_CHECKING:
    from types import ModuleType

    import redis

TAG = "penstock"
_KEPT: dict[Address, redis.Redis] = {}


def driver() -> ModuleType:
    """The redis module."""
    try:
        import redis
    except ImportError:
        raise SetupError("Redis needs the package redis: pip install 'penstock[redis]'") from None
    return redis


class Address(ServerAddress):
    """Where a Redis is."""

    def client(self) -> redis.Redis:
        """The client this process keeps; it opens connections as they are needed, and sends nothing twice by itself."""
        if self not in _KEPT:
            made: redis.Redis = driver().Redis.from_url(
                self.url,
                password=self.password,
                socket_timeout=60,
                socket_connect_timeout=10,
                health_check_interval=30,
                retry=None,
                retry_on_error=[],
                client_name="penstock",
            )
            _KEPT[self] = made
        return _KEPT[self]

    def clean(self, text: object) -> str:
        """A text without the password."""
        return str(text).replace(self.password, "***") if self.password else str(text)


@dataclass(frozen=True)
class Layout:
    """How a row becomes a command."""

    kind: str
    key: tuple[str, ...]
    name: str
    value: str
    max_length: int | None

    @classmethod
    def of(cls, options: dict[str, Any]) -> Layout:
        """The layout in an endpoint's options."""
        return cls(
            options["kind"],
            tuple(options["key"]),
            options["name"],
            options.get("value") or "",
            options.get("max_length"),
        )

    @property
    def type(self) -> str:
        """What Redis calls such a value."""
        return self.kind

    def commands(self, batch: pa.RecordBatch) -> Iterator[list[bytes]]:
        """The commands that write the rows of a batch."""
        for row in rows_of(batch):
            yield from self.commands_of(row)

    def commands_of(self, row: dict[str, Any]) -> list[list[bytes]]:
        """The commands that write a row.

        Raises:
            RunError: it has no key.
        """
        others = {k: v for k, v in row.items() if k not in self.key and k != OPERATION}
        key = self._key(row)
        return [[b"DEL", key]] if row.get(OPERATION) == DELETE else list(self._command(key, others))

    def _key(self, row: dict[str, Any]) -> bytes:
        parts = [text_of(row[k]) for k in self.key]
        if None in parts:
            raise RunError(f"a row has no key: {', '.join(self.key)} is null in {row!r}")
        return b":".join([*([self.name.encode()] if self.name else []), *(p for p in parts if p is not None)])

    def _command(self, key: bytes, others: dict[str, Any]) -> Iterator[list[bytes]]:
        if self.kind == "hash":
            yield from self._hash(key, others)
        elif self.kind == "string":
            yield [b"SET", key, self._text(others)]
        elif self.kind == "list":
            yield [b"RPUSH", key, self._text(others)]
            if self.max_length is not None:
                yield [b"LTRIM", key, str(-self.max_length).encode(), b"-1"]
        else:
            trim = [b"MAXLEN", b"=", str(self.max_length).encode()] if self.max_length is not None else []
            pairs = _pairs(others) or [b"", b""]
            yield [b"XADD", key, *trim, b"*", *pairs]

    def _hash(self, key: bytes, others: dict[str, Any]) -> Iterator[list[bytes]]:
        gone = [k.encode() for k, v in others.items() if v is None]
        if gone:
            yield [b"HDEL", key, *gone]
        if len(gone) < len(others):
            yield [b"HSET", key, *_pairs(others)]

    def _text(self, others: dict[str, Any]) -> bytes:
        found = text_of(others.get(self.value)) if self.value else json_text(others).encode()
        return found if found is not None else b""


def rows_of(batch: pa.RecordBatch) -> Iterator[dict[str, Any]]:
    """The rows of a batch."""
    names = batch.schema.names
    for values in zip(*to_columns(batch), strict=True):
        yield dict(zip(names, values, strict=True))


def _pairs(row: dict[str, Any]) -> list[bytes]:
    made: list[bytes] = []
    for name, value in row.items():
        text = text_of(value)
        if text is not None:
            made += [name.encode(), text]
    return made


def text_of(value: object) -> bytes | None:
    """A value as Redis keeps it; None for a null.

    >>> text_of(2.5), text_of(True), text_of("hi"), text_of(None), text_of([1, 2])
    (b'2.5', b'true', b'hi', None, b'[1, 2]')
    """
    if value is None or isinstance(value, bytes):
        return value
    if isinstance(value, bool):
        return b"true" if value else b"false"
    if isinstance(value, datetime.datetime):
        return value.isoformat(" ").encode()
    if isinstance(value, list | tuple | dict):
        return json_text(value).encode()
    return str(value).encode()


def packed(commands: Iterable[list[bytes]]) -> bytes:
    """Commands as one value in MessagePack, which Redis's scripts can read.

    >>> packed([[b"SET", b"k", b"v"]]).hex()
    'dd00000001dd00000003db00000003534554db000000016bdb0000000176'
    """
    listed = list(commands)
    parts = [struct.pack(">BI", 0xDD, len(listed))]
    for command in listed:
        parts.append(struct.pack(">BI", 0xDD, len(command)))
        for word in command:
            parts += (struct.pack(">BI", 0xDB, len(word)), word)
    return b"".join(parts)
