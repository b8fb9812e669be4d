"""Lines of standard input go on disk as they come, the last of several too."""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pyarrow.parquet as pq
import pytest

from penstock.connectors.base import SourceContext
from penstock.connectors.process.feed import StdinSource
from penstock.graph.schema import schema_of
from tests.waiting import wait_until


@pytest.fixture
def pipe(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The writing end of what is standard input."""
    reading, writing = os.pipe()
    with io.TextIOWrapper(os.fdopen(reading, "rb")) as given:
        monkeypatch.setattr("sys.stdin", given)
        yield writing
        os.close(writing)


class Session:
    """Where a stream of files would be read; this test looks at the files."""

    def __getattr__(self, name: str) -> Any:
        return self

    def __call__(self, *_: object) -> Session:
        return self


def kept(folder: Path) -> list[str]:
    return [
        line
        for file in sorted((folder / "feed").glob("*.parquet"))
        for line in pq.read_table(file)["value"].to_pylist()
    ]


def test_lines_do_not_wait_for_the_next_one(tmp_path: Path, pipe: int) -> None:
    source = StdinSource()
    context = cast(SourceContext, _Context(tmp_path))
    source.stream(cast(Any, Session()), context)
    os.write(pipe, b"a\nb\nc\n")
    wait_until(lambda: kept(tmp_path) == ["a", "b", "c"])
    os.write(pipe, b"d\n")
    wait_until(lambda: kept(tmp_path) == ["a", "b", "c", "d"])
    source.close()


class _Context:
    step, once, keeps_malformed = "lines", False, False
    schema = schema_of("value string")

    def __init__(self, folder: Path) -> None:
        self.folder = folder
