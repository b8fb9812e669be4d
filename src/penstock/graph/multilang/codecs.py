r"""How messages travel: JSON followed by a line `end`, or msgpack.

>>> codec = JsonCodec()
>>> codec.encoded({"command": "next"})
b'{"command":"next"}\nend\n'
>>> codec.feed(b'{"command": "sync"}\nend\n[1,'), codec.feed(b' 2]\nend\n')
([{'command': 'sync'}], [[1, 2]])
"""

from __future__ import annotations

import base64
import datetime
import json
import math
import re
from collections.abc import Mapping
from typing import Any, Protocol

from penstock.errors import FlowError, nearest

LARGEST = 256 << 20
"""The bytes of one message at most."""
_END = b"\nend\n"
_ENDS = re.compile(rb"\nend\r?\n")
_LOOK = len(b"\nend\r")
_SHOWN = 200


class ProtocolError(Exception):
    """A program that says what the protocol does not have."""


class Codec(Protocol):
    """Turns messages into bytes, and bytes into messages."""

    def encoded(self, message: object) -> bytes:
        """A message as bytes."""

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are complete with these bytes."""


class JsonCodec:
    """UTF-8 JSON: each message is one value, followed by a line that holds `end`."""

    def __init__(self) -> None:
        self._encode = json.JSONEncoder(separators=(",", ":"), default=plain_value, allow_nan=False).encode
        self._pieces: list[bytes] = []
        self._tail = b""
        self._size = 0

    def encoded(self, message: object) -> bytes:
        """A message as bytes. What JSON has no number for, NaN and the infinities, is null."""
        try:
            return self._encode(message).encode() + _END
        except ValueError:
            return self._encode(_finite(message)).encode() + _END

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are complete with these bytes.

        Raises:
            ProtocolError: one of them is no JSON, or is too long.
        """
        self._pieces.append(data)
        tail = self._tail + data
        self._tail, self._size = tail[-_LOOK:], self._size + len(data)
        if _ENDS.search(tail) is None:
            self._check_size()
            return []
        *messages, rest = b"".join(self._pieces).replace(b"\r\n", b"\n").split(_END)
        self._pieces, self._tail, self._size = [rest], rest[-_LOOK:], len(rest)
        try:
            found: list[Any] = json.loads(b"[%b]" % b",".join(messages))
        except (ValueError, RecursionError):
            return [_parsed(each) for each in messages]
        return found if len(found) == len(messages) else [_parsed(each) for each in messages]

    def _check_size(self) -> None:
        if self._size > LARGEST:
            raise ProtocolError(f"expected a line 'end' after at most {LARGEST:,} bytes, got none")


def _finite(value: Any) -> Any:
    """A value without numbers that JSON does not have."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(each) for each in value]
    return value


def _parsed(message: bytes) -> Any:
    try:
        return json.loads(message)
    except (ValueError, RecursionError) as error:
        shown = message[:_SHOWN].decode(errors="replace")
        raise ProtocolError(f"expected one JSON value and a line 'end', got {shown!r} ({error})") from None


class MsgpackCodec:
    """Msgpack, as pystorm speaks it; needs the package `msgpack` here as well."""

    def __init__(self) -> None:
        try:
            import msgpack
        except ImportError:
            raise FlowError("serializer='msgpack' needs the package msgpack: pip install msgpack") from None
        self._pack = msgpack.Packer(default=plain_value).pack
        self._unpacker = msgpack.Unpacker()

    def encoded(self, message: object) -> bytes:
        """A message as bytes."""
        packed: bytes = self._pack(message)
        return packed

    def feed(self, data: bytes) -> list[Any]:
        """The messages that are complete with these bytes.

        Raises:
            ProtocolError: they are no msgpack.
        """
        try:
            self._unpacker.feed(data)
            return list(self._unpacker)
        except Exception as error:
            raise ProtocolError(f"expected msgpack, got something else ({type(error).__name__}: {error})") from None


CODECS: Mapping[str, type[Codec]] = {"json": JsonCodec, "msgpack": MsgpackCodec}


def codec_of(name: str) -> Codec:
    """The codec of a name.

    Raises:
        FlowError: there is none.
    """
    if name not in CODECS:
        raise FlowError(f"expected a serializer, json or msgpack, got {name!r}; {nearest(str(name), CODECS)}")
    return CODECS[name]()


def plain_value(value: object) -> Any:
    """What JSON has no form for: moments in ISO 8601, bytes in base64, numbers of fixed point as text, sets as lists."""
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, bytes | bytearray | memoryview):
        return base64.b64encode(bytes(value)).decode()
    if isinstance(value, set | frozenset):
        return sorted(value, key=repr)
    return str(value)
