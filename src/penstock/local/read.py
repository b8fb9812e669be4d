"""Reads bounded endpoints without a JVM."""

from __future__ import annotations

import datetime
import glob
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from penstock.errors import Impossible, RunError, StepError
from penstock.graph.endpoints.basic import matching_files
from penstock.graph.nodes import Endpoint, Output, Source
from penstock.graph.schema import Schema
from penstock.kernels.base import RecordFailed
from penstock.kernels.records.reading import READERS, Unread, Unreadable
from penstock.kernels.topology.spout import SpoutTasks


def read_endpoint(endpoint: Endpoint, schema: Schema | None = None) -> Iterable[Any]:
    """The records of an endpoint, which must be bounded."""
    readers = {"items": _items, "generate": _generated, "rate": _numbers, "files": _files, "spout": _spout}
    if endpoint.kind not in readers or not endpoint.bounded:
        raise Impossible(
            f"a {endpoint.kind} source cannot be read here: it has no end, or needs Spark. Give its records as a list, "
            f"or give it a limit"
        )
    return readers[endpoint.kind](endpoint, schema or endpoint.schema)


def _items(endpoint: Endpoint, schema: Any) -> Iterable[Any]:
    return list(endpoint.options["rows"])


def _generated(endpoint: Endpoint, schema: Any) -> Iterator[Any]:
    return (endpoint.options["function"](i) for i in range(endpoint.options["limit"]))


def _numbers(endpoint: Endpoint, schema: Any) -> Iterator[Any]:
    begin = datetime.datetime.now(datetime.UTC)
    step = datetime.timedelta(seconds=1 / endpoint.options["rows_per_second"])
    return ((begin + i * step, i) for i in range(endpoint.options["limit"]))


def _spout(endpoint: Endpoint, schema: Any) -> Iterator[Any]:
    node = Source(repr(endpoint.options["spout"]), (), (Output(schema),), endpoint)
    try:
        yield from SpoutTasks(node).drained()
    except RecordFailed as failed:
        raise StepError(failed.failure("the spout itself")) from failed.error


def _files(endpoint: Endpoint, schema: Any) -> Iterator[Any]:
    if not glob.glob(endpoint.options["path"]):
        raise RunError(f"there is nothing at {endpoint.options['path']!r} to read")
    for path in matching_files(endpoint.options["path"]):
        if endpoint.options["format"] == "text":
            yield from ((line,) for line in _lines(Path(path).read_bytes().decode()))
        else:
            yield from _table_or_lines(path, endpoint, schema)


def _table_or_lines(path: str, endpoint: Endpoint, schema: Schema) -> Iterator[Any]:
    """The records of a file; where it cannot be read as a whole, line by line, with those that are no records as `Unread`."""
    import pyarrow as pa

    try:
        found = list(_table(path, endpoint, schema))
    except (pa.ArrowInvalid, pa.ArrowKeyError, pa.ArrowNotImplementedError):
        if endpoint.options["format"] not in READERS:
            raise
        found = list(_by_line(path, endpoint, schema))
    yield from found


def _by_line(path: str, endpoint: Endpoint, schema: Schema) -> Iterator[Any]:
    form = endpoint.options["format"]
    first = 1 if form == "csv" and endpoint.options["header"] else 0
    for number, line in enumerate(_lines(Path(path).read_bytes().decode()), 1):
        if number <= first or not line.strip():
            continue
        try:
            yield READERS[form](line, schema)
        except Unreadable as error:
            yield Unread(line.encode(), f"{path}, line {number}", str(error))


def _lines(text: str) -> list[str]:
    """The lines as Spark cuts them: at line feeds and carriage returns, and nowhere else."""
    lines = re.split(r"\r\n|\n|\r", text)
    return lines if lines[-1] else lines[:-1]


def _table(path: str, endpoint: Endpoint, schema: Schema) -> Iterator[Any]:
    from penstock.kernels.records.arrow import arrow_schema, to_columns

    table = _READERS[endpoint.options["format"]](path, endpoint, arrow_schema(schema))
    yield from zip(*to_columns(table.select(list(schema.names)).cast(arrow_schema(schema))), strict=True)


def _parquet(path: str, endpoint: Endpoint, wanted: Any) -> Any:
    import pyarrow.parquet as pq

    return pq.read_table(path)


def _json(path: str, endpoint: Endpoint, wanted: Any) -> Any:
    import pyarrow.json as pj

    return pj.read_json(path, parse_options=pj.ParseOptions(explicit_schema=wanted))


def _csv(path: str, endpoint: Endpoint, wanted: Any) -> Any:
    import pyarrow.csv as pc

    names = None if endpoint.options["header"] else wanted.names
    _check_header(path, names, wanted.names)
    types = {f.name: f.type for f in wanted}
    options = pc.ConvertOptions(column_types=types, strings_can_be_null=True)
    return pc.read_csv(path, read_options=pc.ReadOptions(column_names=names), convert_options=options)


def _check_header(path: str, names: Any, wanted: list[str]) -> None:
    """Spark reads CSV by position, and refuses a header that says otherwise; so does this."""
    import pyarrow.csv as pc

    with pc.open_csv(path) as reader:
        header = reader.schema.names
    if names is None and header != list(wanted):
        raise RunError(
            f"the header of {path} is {', '.join(header)}; the schema says {', '.join(wanted)}, in this order"
        )


_READERS = {"parquet": _parquet, "json": _json, "csv": _csv}
