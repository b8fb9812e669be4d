"""What comes over the wire, as records: bodies, lines, keys."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn

from penstock.log.produce.json_keys import key_in

NDJSON = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/x-jsonlines")
_BLANK = " \t\r\n"


class BadInput(Exception):
    """Something that cannot be a record; the text is for the client."""


@dataclass(frozen=True)
class Submission:
    """What a client hands over at once, and is answered for as a whole.

    `headers` go with every record. `ident` is the name by which it is known when it comes again, and `digest` tells it from
    something else under the same name.
    """

    values: list[bytes]
    keys: list[bytes | None] | None = None
    headers: tuple[tuple[str, bytes], ...] = ()
    ident: bytes = b""
    digest: bytes = b""

    @cached_property
    def size(self) -> int:
        """About the bytes it takes in memory."""
        return sum(map(len, self.values)) + 64 * len(self.values)


@dataclass(frozen=True)
class Keys:
    """Where the key of a record is: in a field of its JSON, or before a text in its line."""

    field: str = ""
    separator: bytes = b""

    @property
    def wanted(self) -> bool:
        """Whether records have keys."""
        return bool(self.field or self.separator)

    def pair(self, raw: bytes, parsed: object = None) -> tuple[bytes | None, bytes]:
        r"""Key and value.

        >>> Keys(separator=b":").pair(b"anna:3 apples"), Keys(field="user.id").pair(b'{"user": {"id": 7}}')
        ((b'anna', b'3 apples'), (b'7', b'{"user": {"id": 7}}'))
        """
        if self.separator:
            key, found, value = raw.partition(self.separator)
            if not found:
                raise BadInput(f"no key: {self.separator.decode(errors='replace')!r} must follow it")
            return key, value
        if self.field:
            made = key_in(parse(raw) if parsed is None else parsed, self.field)
            if made is None:
                raise BadInput(f"no field {self.field!r}, which is the key")
            return made, raw
        return None, raw


def _no_number(text: str) -> NoReturn:
    raise ValueError(f"{text} is no number of JSON")


_DECODER = json.JSONDecoder(parse_constant=_no_number)


def _text(raw: bytes) -> str:
    try:
        return raw.decode()
    except UnicodeDecodeError as error:
        raise BadInput(f"not JSON: byte {error.start} is not UTF-8") from None


def parse(raw: bytes) -> object:
    """The value of JSON; strict."""
    try:
        return _DECODER.decode(_text(raw))
    except (ValueError, RecursionError) as error:
        raise BadInput(f"not JSON: {error}") from None


def pieces(kind: str, body: bytes) -> Iterator[tuple[bytes, Any]]:
    r"""The records in a body of a media type, each as its own bytes and (of JSON) its value.

    >>> [raw for raw, _ in pieces("application/json", b'[1.50, {"a": []}]')]
    [b'1.50', b'{"a": []}']
    >>> [raw for raw, _ in pieces("application/x-ndjson", b'{"a": 1}\n\n{"a": 2}\n')]
    [b'{"a": 1}', b'{"a": 2}']
    """
    if kind in NDJSON:
        yield from _lines(body)
    elif kind == "application/json" or kind.endswith("+json"):
        yield from _json(body)
    elif body:
        yield body, None


def _lines(body: bytes) -> Iterator[tuple[bytes, Any]]:
    for number, line in enumerate(body.split(b"\n"), 1):
        if line := line.strip():
            try:
                yield line, parse(line)
            except BadInput as error:
                raise BadInput(f"line {number}: {error}") from None


def _json(body: bytes) -> Iterator[tuple[bytes, Any]]:
    text = _text(body)
    at = _skip(text, 0)
    if at == len(text):
        return
    if text[at] == "[":
        yield from _elements(text, at + 1)
    else:
        yield body.strip(), parse(body)


def _elements(text: str, at: int) -> Iterator[tuple[bytes, Any]]:
    """The elements of an array as they are written: nothing is lost by writing them again."""
    at = _skip(text, at)
    if text[at : at + 1] == "]":
        _end(text, at + 1)
        return
    while True:
        try:
            value, end = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError) as error:
            raise BadInput(f"not JSON: {error}") from None
        yield text[at:end].encode(), value
        at = _skip(text, end)
        sign = text[at : at + 1]
        if sign == "]":
            _end(text, at + 1)
            return
        if sign != ",":
            raise BadInput(f"not JSON: expected , or ] at character {at}")
        at = _skip(text, at + 1)


def _skip(text: str, at: int) -> int:
    while at < len(text) and text[at] in _BLANK:
        at += 1
    return at


def _end(text: str, at: int) -> None:
    if _skip(text, at) != len(text):
        raise BadInput(f"not JSON: expected nothing after the array, got something at character {at}")
