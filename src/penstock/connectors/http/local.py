"""HTTP requests without a JVM."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing

from penstock.connectors.http.sink import HttpSink
from penstock.connectors.local import LocalSink
from penstock.graph.row import Row


def send_rows(sink: LocalSink, rows: Sequence[Row]) -> None:
    """Sends all rows, and waits until every request is answered."""
    with closing(HttpSink()) as made:
        made.open(sink.context())
        made.write(list(rows), sink.batch())
