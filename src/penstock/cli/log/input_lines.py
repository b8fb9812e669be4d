"""Input for `penstock produce`: lines as they come, and what stands in them."""

from __future__ import annotations

import json
import os
import select
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from penstock.log import BadRecord
from penstock.log.produce.json_keys import key_in

_CHUNK = 1 << 20
_WAIT = 0.2

Pair = tuple[bytes | None, bytes | None]


def chunks(descriptor: int, stopped: Callable[[], bool]) -> Iterator[bytes]:
    """What can be read, as soon as it can be read, to the end of the input; stopped before it, `KeyboardInterrupt`."""
    while True:
        if stopped():
            raise KeyboardInterrupt
        if select.select([descriptor], [], [], _WAIT)[0]:
            data = os.read(descriptor, _CHUNK)
            if not data:
                return
            yield data


def lines(parts: Iterator[bytes]) -> Iterator[list[bytes]]:
    r"""The complete lines that were read together, without their ends; the last one need not have an end.

    >>> list(lines(iter([b"a\nb", b"c", b"\r\nd"])))
    [[b'a'], [b'bc'], [b'd']]
    """
    begun: list[bytes] = []
    for part in parts:
        head, found, rest = part.rpartition(b"\n")
        if not found:
            begun.append(part)
            continue
        whole = b"".join([*begun, head])
        begun = [rest] if rest else []
        yield [line.removesuffix(b"\r") for line in whole.split(b"\n")]
    if begun:
        yield [b"".join(begun).removesuffix(b"\r")]


@dataclass(frozen=True)
class LineReader:
    """Makes keys and values of lines."""

    as_json: bool = False
    key_separator: bytes = b""
    key_field: str = ""
    null_marker: bytes | None = None

    @property
    def keyed(self) -> bool:
        """Whether records have keys."""
        return bool(self.key_separator or self.key_field)

    def wanted(self, line: bytes) -> bool:
        """Whether a line is a record; between JSON values empty lines may stand."""
        return not self.as_json or bool(line.strip())

    def read(self, line: bytes, number: int) -> Pair:
        """Key and value of a line."""
        key: bytes | None = None
        value: bytes | None = line
        if self.key_separator:
            key, found, value = line.partition(self.key_separator)
            if not found:
                raise BadRecord(
                    f"line {number} has no key: {_text(self.key_separator)!r} must stand in {_text(line)!r:.80}"
                )
        key, value = (None if part == self.null_marker else part for part in (key, value))
        if self.as_json and value is not None:
            value = value.strip()
            parsed = _parsed(value, number)
            key = _field(parsed, self.key_field, number) if self.key_field else key
        return key, value


def _text(raw: bytes) -> str:
    return raw.decode(errors="replace")


def _parsed(raw: bytes, number: int) -> object:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError) as error:
        raise BadRecord(f"line {number} is not JSON: {error} in {_text(raw)!r:.80}") from None


def _field(value: object, name: str, number: int) -> bytes:
    found = key_in(value, name)
    if found is None:
        has = f"it has {', '.join(map(repr, value))}" if isinstance(value, dict) else f"it is {value!r:.60}"
        raise BadRecord(f"line {number} has no field {name!r} for the key; {has}")
    return found
