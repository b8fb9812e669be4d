"""Several streams of one step, by name."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from penstock.errors import UnknownName, nearest

if TYPE_CHECKING:
    from penstock.frontends.streams.stream import Stream


class Branches(Mapping[str, "Stream"]):
    """The streams of a branch, by name: `parts["errors"]`, `parts.errors`, or `errors, rest = parts.values()`.

    >>> import penstock as ps
    >>> numbers = ps.Flow("demo").source("numbers", ps.items([], "n int"))
    >>> numbers.branch("size", large="n > 10").large
    Stream('size.large': n int)
    """

    def __init__(self, streams: dict[str, Stream]) -> None:
        self._streams = streams

    def __getitem__(self, name: str) -> Stream:
        if name not in self._streams:
            raise UnknownName(f"no branch {name!r}; {nearest(name, self._streams)}")
        return self._streams[name]

    def __getattr__(self, name: str) -> Stream:
        if name.startswith("_"):
            raise AttributeError(name)
        return self[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._streams)

    def __len__(self) -> int:
        return len(self._streams)
