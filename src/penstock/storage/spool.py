"""A content that can be sent again: in memory when it is short, in a temporary file as far as it was read when it is long."""

from __future__ import annotations

import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import BinaryIO

from penstock.storage.base import Bytes, Data

PART = 8 << 20
"""How many bytes are sent at once: a content of more is long."""


class SourceFailed(Exception):
    """What gives a content has failed: the content cannot be sent, now or later. The cause is the error."""


@dataclass
class Spool:
    """A long content. Each call of `parts` yields all of it from the beginning; what comes from an iterator is read from it once."""

    beginning: Bytes
    rest: Iterator[Bytes]
    file: BinaryIO
    sizes: list[int] = field(default_factory=list)
    failure: Exception | None = None

    def parts(self) -> Iterator[Bytes]:
        """The content, part by part."""
        yield self.beginning
        yield from self._read_before()
        while (part := self._next()) is not None:
            yield part

    def _next(self) -> Bytes | None:
        """The next part of the iterator, which is kept.

        An iterator that has failed once would seem to be at its end, and a part that could not be kept would be missing the next time.
        """
        if self.failure is not None:
            raise SourceFailed from self.failure
        try:
            part = next(self.rest, None)
            if part is not None:
                self._keep(part)
        except Exception as error:
            self.failure = error
            raise SourceFailed from error
        return part

    def _keep(self, part: Bytes) -> None:
        self.file.seek(0, 2)
        self.file.write(part)
        self.file.flush()
        self.sizes.append(len(part))

    def _read_before(self) -> Iterator[Bytes]:
        begin = 0
        for size in tuple(self.sizes):
            self.file.seek(begin)
            yield self.file.read(size)
            begin += size


@contextmanager
def repeatable(data: Data) -> Iterator[Bytes | Spool]:
    """A content as bytes when it is short, else as a spool, which lasts as long as the context.

    >>> with repeatable(iter([b"a", b"b"])) as content:
    ...     content
    b'ab'
    """
    if isinstance(data, Bytes):
        yield data
        return
    beginning, rest = _taken(data)
    if rest is None:
        yield beginning
        return
    with tempfile.TemporaryFile() as file:
        spool = Spool(beginning, rest, file)
        try:
            yield spool
        except SourceFailed:
            assert spool.failure is not None
            raise spool.failure from None


def _taken(data: Iterable[Bytes]) -> tuple[bytes, Iterator[Bytes] | None]:
    """All of a short content, or the beginning of a long one and what follows."""
    parts, taken = iter(data), bytearray()
    for part in parts:
        taken += part
        if len(taken) > PART:
            return bytes(taken), parts
    return bytes(taken), None
