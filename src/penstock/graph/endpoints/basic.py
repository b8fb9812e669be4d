"""The endpoints a user can name: descriptions only, so that a flow can be built without Spark."""

from __future__ import annotations

import glob as globs
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from penstock.errors import SchemaError, nearest
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.schema import Schema, schema_of

FORMATS = ("text", "json", "csv", "parquet")
TEXT = schema_of("value string")
ONLY_READ = (
    "files",
    "generate",
    "items",
    "kafka",
    "log",
    "postgres",
    "postgres_changes",
    "rate",
    "redis_stream",
    "socket",
    "spout",
    "stdin",
)
ONLY_WRITTEN = (
    "callback",
    "console",
    "nothing",
    "write_files",
    "write_http",
    "write_kafka",
    "write_log",
    "write_postgres",
    "write_redis",
)


def files(
    path: str | Path, format: str = "", schema: Any = None, *, header: bool = True, files_per_batch: int | None = None
) -> Endpoint:
    """Files of a folder or a glob: text lines, JSON lines, CSV or Parquet.

    Bounded, it is what is there; live, it is what is there and whatever is added later. Text has the one field
    `value`. The schema of other formats is read from the first file when you give none.
    """
    kind = format or _format_of(str(path))
    if kind not in FORMATS:
        raise SchemaError(
            f"files({str(path)!r}): format {format or kind!r} is not one of them; {nearest(kind, FORMATS)}"
        )
    options = {"path": str(path), "format": kind, "header": header, "files_per_batch": files_per_batch}
    return Endpoint("files", options, _file_schema(str(path), kind, schema, header))


def _format_of(path: str) -> str:
    ending = Path(path.rstrip("*")).suffix.lower().lstrip(".")
    return {"txt": "text", "log": "text", "jsonl": "json", "ndjson": "json"}.get(ending, ending or "text")


def _file_schema(path: str, kind: str, schema: Any, header: bool) -> Schema:
    if kind == "text":
        return TEXT
    if schema is not None:
        return schema_of(schema)
    from penstock.graph.endpoints import sniff

    first = next((f for f in matching_files(path)), None)
    if first is None:
        raise SchemaError(
            f"files({path!r}): no file is there to read the schema of; give it: files(..., schema='name type, ...')"
        )
    return sniff.file_schema(first, kind, header)


def matching_files(path: str) -> list[str]:
    """The files a path or glob stands for, in order of name; hidden ones and those with a leading underscore are not."""
    found: list[Path] = []
    for each in sorted(globs.glob(path)):
        place = Path(each)
        found += sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
    return [str(p) for p in found if not p.name.startswith(("_", "."))]


def items(rows: Iterable[Any], schema: Any, *, batches: int = 1) -> Endpoint:
    """Rows from memory: dicts, tuples, dataclasses, or bare values when the schema has one field.

    Live, they come in `batches` parts.
    """
    return Endpoint("items", {"rows": list(rows), "batches": batches}, schema_of(schema))


def rate(rows_per_second: int = 10, *, limit: int | None = None) -> Endpoint:
    """Numbers that count up, so many a second: `timestamp` and `value`. `limit` ends it."""
    options = {"rows_per_second": rows_per_second, "limit": limit}
    return Endpoint("rate", options, schema_of("timestamp timestamp, value bigint"), bounded=limit is not None)


def generate(
    function: Callable[[int], Any], schema: Any, *, rows_per_second: int = 10, limit: int | None = None
) -> Endpoint:
    """Records made by a function of 0, 1, 2, ..., so many a second. `limit` ends it.

    The function should depend on its number alone, so that a replay makes the same records.
    """
    options = {"function": function, "rows_per_second": rows_per_second, "limit": limit}
    return Endpoint("generate", options, schema_of(schema), bounded=limit is not None)


def socket_lines(host: str = "127.0.0.1", port: int = 9999) -> Endpoint:
    """Lines from a TCP socket, for demos: what was in flight at a crash is lost."""
    return Endpoint("socket", {"host": host, "port": port}, TEXT, bounded=False)


def stdin() -> Endpoint:
    """Lines from standard input. They are kept on disk before the flow sees them, so a replay has them."""
    return Endpoint("stdin", {}, TEXT, bounded=False)


def console(rows: int = 20) -> Endpoint:
    """Prints the first rows of each batch."""
    return Endpoint("console", {"rows": rows})


def write_files(path: str | Path, format: str = "") -> Endpoint:
    """Parquet or JSON files (also CSV and text), a set of them for each batch; a batch that runs again replaces its own."""
    kind = format or "parquet"
    if kind not in FORMATS:
        raise SchemaError(f"write_files({str(path)!r}): no format {format!r}; {nearest(format, FORMATS)}")
    return Endpoint("write_files", {"path": str(path), "format": kind})


def callback(function: Callable[..., Any]) -> Endpoint:
    """Calls `function(rows, batch)` on the driver, once for each batch, with all its rows.

    `batch` has `id` and `sink`. After a crash the last batch may come again, with the same id.
    """
    return Endpoint("callback", {"function": function})


def connector(made: Any, schema: Any = None, *, bounded: bool = False, **options: Any) -> Endpoint:
    """A source or sink of your own: an instance of `penstock.connectors.base.SourceConnector` or `SinkConnector`."""
    return Endpoint("own", options, schema_of(schema) if schema is not None else None, bounded, made)


def options_of(endpoint: Endpoint) -> Mapping[str, Any]:
    """The options of an endpoint, without those left at None."""
    return {k: v for k, v in endpoint.options.items() if v is not None}
