"""The contract suite itself: files hold it, and sinks with known bugs do not."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import penstock as ps
from penstock.connectors.base import Batch, StagedBatch
from penstock.connectors.delivery import LedgerSink
from penstock.connectors.files.manifests import committed_files
from penstock.graph.nodes import Endpoint
from penstock.testing.connectors import OpenSink, SinkContract, SourceContract

pytestmark = pytest.mark.spark


class TestFiles(SinkContract):
    @pytest.fixture
    def endpoint(self, tmp_path: Path) -> Endpoint:
        return ps.write_files(tmp_path / "out")

    def shown(self, endpoint: Endpoint) -> list[tuple[Any, ...]]:
        tables = [pq.read_table(f, coerce_int96_timestamp_unit="us") for f in committed_files(endpoint.options["path"])]
        return [tuple(map(_dated, r.values())) for t in tables for r in t.to_pylist(maps_as_pydicts="strict")]


def _dated(value: Any) -> Any:
    """Spark writes points in time without a zone; they are in UTC."""
    return value.replace(tzinfo=datetime.UTC) if isinstance(value, datetime.datetime) else value


class TestFilesSource(SourceContract):
    @pytest.fixture
    def endpoint(self, tmp_path: Path) -> Endpoint:
        (tmp_path / "in").mkdir()
        return ps.files(tmp_path / "in", "json", "id bigint, word string")

    def add(self, endpoint: Endpoint, first: int, many: int) -> list[tuple[Any, ...]]:
        rows = [(i, f"w{i}") for i in range(first, first + many)]
        folder = Path(endpoint.options["path"])
        (folder / ".aside").write_text("".join(f'{{"id": {i}, "word": "{w}"}}\n' for i, w in rows))
        (folder / ".aside").rename(folder / f"{first:06d}.json")
        return rows


class Naive(LedgerSink):
    """Says that it holds exactly_once, and appends whatever comes."""

    def __init__(self, shown: list[tuple[Any, ...]]) -> None:
        self.kept = shown

    def open(self, context: Any) -> None:
        """Takes nothing over."""

    def stage(self, frame: Any, batch: Batch) -> StagedBatch:
        made = StagedBatch()
        made.commit = lambda: self.kept.extend(map(tuple, frame.collect()))  # type: ignore[method-assign]
        return made


@pytest.mark.parametrize(
    "test", ["test_a_batch_that_comes_again_is_shown_once", "test_a_batch_of_other_offsets_is_refused"]
)
def test_a_sink_without_a_ledger_is_caught(test: str, penstock_spark: Any) -> None:
    shown: list[tuple[Any, ...]] = []

    class Contract(SinkContract):
        def shown(self, endpoint: Endpoint) -> list[tuple[Any, ...]]:
            return shown

    contract, endpoint = Contract(), ps.connector(Naive(shown))
    opened = OpenSink(contract, endpoint, penstock_spark, contract.schema)
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        getattr(contract, test)(opened, endpoint)
