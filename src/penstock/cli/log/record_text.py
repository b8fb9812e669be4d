"""How `penstock consume` writes records: the value, key and value, or a line of JSON; beside them what is asked for."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from penstock.log import Record

FORMATS = ("value", "key-value", "json")
Formatter = Callable[[Record], bytes]


@dataclass(frozen=True)
class Lines:
    """Writes a record as a line in the manner of Kafka's console consumer: fields with the separator between."""

    key: bool = False
    separator: bytes = b"\t"
    timestamp: bool = False
    partition: bool = False
    offset: bool = False
    headers: bool = False

    def __call__(self, record: Record) -> bytes:
        """The line, with its end."""
        return self.separator.join([*self._beside(record), b"null" if record.value is None else record.value]) + b"\n"

    def _beside(self, record: Record) -> list[bytes]:
        fields = []
        if self.timestamp:
            fields.append(b"CreateTime:%d" % record.timestamp)
        if self.partition:
            fields.append(b"Partition:%d" % record.partition)
        if self.offset:
            fields.append(b"Offset:%d" % record.offset)
        if self.headers:
            pairs = (name.encode() + b":" + (b"null" if raw is None else raw) for name, raw in record.headers)
            fields.append(b",".join(pairs) or b"NO_HEADERS")
        if self.key:
            fields.append(b"null" if record.key is None else record.key)
        return fields


def json_line(record: Record) -> bytes:
    """The record as a line of JSON; a value that is JSON stands in it as it is, other text as text.

    >>> json_line(Record("t", 0, 7, 1000, b"k", b'{"price": 1.10}')).decode()[:-1]
    '{"topic": "t", "partition": 0, "offset": 7, "timestamp": 1000, "key": "k", "headers": [], "value": {"price": 1.10}}'
    """
    headers = [[name, None if raw is None else raw.decode(errors="backslashreplace")] for name, raw in record.headers]
    about: dict[str, Any] = record._asdict()
    fields = {name: json.dumps(about[name]) for name in ("topic", "partition", "offset", "timestamp")}
    fields |= dict([_plain("key", record.key)], headers=json.dumps(headers, ensure_ascii=False))
    fields |= dict([_embedded(record.value)])
    return ("{" + ", ".join(f'"{name}": {text}' for name, text in fields.items()) + "}\n").encode()


def _embedded(value: bytes | None) -> tuple[str, str]:
    try:
        text = (value or b"").decode()
        json.loads(text, parse_constant=_refuse)
        return "value", text.replace("\n", " ").replace("\r", " ").strip()
    except (ValueError, RecursionError):
        return _plain("value", value)


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is not JSON")


def _plain(name: str, raw: bytes | None) -> tuple[str, str]:
    try:
        return name, json.dumps(None if raw is None else raw.decode(), ensure_ascii=False)
    except UnicodeDecodeError:
        return f"{name}_base64", json.dumps(base64.b64encode(raw or b"").decode())
