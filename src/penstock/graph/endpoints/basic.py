"""The endpoints a user can name: descriptions only, so that a flow can be built without Spark."""

from __future__ import annotations

import glob as globs
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import SchemaError, nearest
from penstock.graph.capabilities import LEDGER_SINK, SINK, SOURCE, WEAKER, Capabilities
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.schema import Form, Schema, schema_of

FORMATS = ("text", "json", "csv", "parquet")
TEXT = schema_of("value string")
_LOCAL = replace(SOURCE, runs_locally=True)
_UNKNOWN = Capabilities(reads=True, writes=True, deliveries=WEAKER)
"""What is neither a source nor a sink by its class is refused when it is used."""
_LOCAL_SINK = replace(SINK, runs_locally=True)
_FILES = replace(_LOCAL, parses=("json", "csv"))


def files(
    path: str | Path,
    format: str = "",
    schema: Form | None = None,
    *,
    header: bool = True,
    files_per_batch: int | None = None,
) -> Endpoint:
    """Files of a folder or a glob: text lines, JSON lines, CSV or Parquet.

    Bounded, it is what is there; live, it is what is there and whatever is added later. Text has the one field
    `value`. Other formats need a schema, here or where the endpoint is used; `ps.files_schema(path)` reads it from the first file.
    """
    kind = _known_format("files", path, format)
    options = {"path": str(path), "format": kind, "header": header, "files_per_batch": files_per_batch}
    return Endpoint("files", options, _file_schema(kind, schema), capabilities=_FILES)


def _format_of(path: str) -> str:
    ending = Path(path.rstrip("*")).suffix.lower().lstrip(".")
    return {"txt": "text", "log": "text", "jsonl": "json", "ndjson": "json"}.get(ending, ending or "text")


def _file_schema(kind: str, schema: Form | None) -> Schema | None:
    if kind == "text":
        return TEXT
    return None if schema is None else schema_of(schema)


def files_schema(path: str | Path, format: str = "", *, header: bool = True) -> Schema:
    """The schema of files as the first of them has it, read now: `ps.files(path, schema=ps.files_schema(path))`.

    Args:
        path: A file, a folder or a glob of this machine.
        format: text, json, csv or parquet; the ending of the path says it otherwise.
        header: Whether the first line of CSV has the names.

    Raises:
        SchemaError: No file is there, or it cannot be read.
    """
    from penstock.graph.endpoints import sniff

    kind = _known_format("files_schema", path, format)
    if kind == "text":
        return TEXT
    first = next(iter(matching_files(str(path))), None)
    if first is None:
        raise SchemaError(f"files_schema({str(path)!r}): no file is there to read the schema of")
    return sniff.file_schema(first, kind, header)


def _known_format(what: str, path: str | Path, format: str) -> str:
    kind = format or _format_of(str(path))
    if kind not in FORMATS:
        raise SchemaError(
            f"{what}({str(path)!r}): format {format or kind!r} is not one of them; {nearest(kind, FORMATS)}"
        )
    return kind


def matching_files(path: str) -> list[str]:
    """The files a path or glob stands for, in order of name; hidden ones and those with a leading underscore are not."""
    found: list[Path] = []
    for each in sorted(globs.glob(path)):
        place = Path(each)
        found += sorted(p for p in place.iterdir() if p.is_file()) if place.is_dir() else [place]
    return [str(p) for p in found if not p.name.startswith(("_", "."))]


def items(rows: Iterable[Any], schema: Form, *, batches: int = 1) -> Endpoint:
    """Rows from memory: dicts, tuples, dataclasses, or bare values when the schema has one field.

    Live, they come in `batches` parts.
    """
    return Endpoint("items", {"rows": list(rows), "batches": batches}, schema_of(schema), capabilities=_LOCAL)


def rate(rows_per_second: int = 10, *, limit: int | None = None) -> Endpoint:
    """Numbers that count up, so many a second: `timestamp` and `value`. `limit` ends it."""
    options = {"rows_per_second": rows_per_second, "limit": limit}
    made = schema_of("timestamp timestamp, value bigint")
    return Endpoint("rate", options, made, bounded=limit is not None, capabilities=_LOCAL)


def generate(
    function: Callable[[int], Any], schema: Form, *, rows_per_second: int = 10, limit: int | None = None
) -> Endpoint:
    """Records made by a function of 0, 1, 2, ..., so many a second. `limit` ends it.

    The function should depend on its number alone, so that a replay makes the same records.
    """
    options = {"function": function, "rows_per_second": rows_per_second, "limit": limit}
    able = replace(_LOCAL, runs_python=True)
    return Endpoint("generate", options, schema_of(schema), bounded=limit is not None, capabilities=able)


def socket_lines(host: str = "127.0.0.1", port: int = 9999) -> Endpoint:
    """Lines from a TCP socket, for demos: what was in flight at a crash is lost."""
    return Endpoint("socket", {"host": host, "port": port}, TEXT, bounded=False, capabilities=SOURCE)


def stdin() -> Endpoint:
    """Lines from standard input. They are kept on disk before the flow sees them, so a replay has them."""
    return Endpoint("stdin", {}, TEXT, bounded=False, capabilities=SOURCE)


def console(rows: int = 20) -> Endpoint:
    """Prints the first rows of each batch."""
    able = replace(_LOCAL_SINK, weakness="a terminal cannot take back what it has shown")
    return Endpoint("console", {"rows": rows}, capabilities=able)


def nothing() -> Endpoint:
    """Takes all records and keeps none, for benchmarks."""
    return Endpoint("nothing", capabilities=replace(_LOCAL_SINK, weakness="it keeps nothing"))


def write_files(path: str | Path, format: str = "") -> Endpoint:
    """Parquet or JSON files (also CSV and text), a set of them for each batch; a batch that runs again replaces its own."""
    kind = format or "parquet"
    if kind not in FORMATS:
        raise SchemaError(f"write_files({str(path)!r}): no format {format!r}; {nearest(format, FORMATS)}")
    return Endpoint(
        "write_files", {"path": str(path), "format": kind}, capabilities=replace(LEDGER_SINK, runs_locally=True)
    )


def callback(function: Callable[..., Any]) -> Endpoint:
    """Calls `function(rows, batch)` on the driver, once for each batch, with all its rows.

    `batch` has `id` and `sink`. After a crash the last batch may come again, with the same id.
    """
    able = replace(
        _LOCAL_SINK, weakness="a function may be called again for a batch after a crash; it has batch.id to tell"
    )
    return Endpoint("callback", {"function": function}, capabilities=able)


def connector(made: object, schema: Form | None = None, *, bounded: bool = False, **options: Any) -> Endpoint:
    """A source or sink of your own: an instance of `penstock.connectors.base.SourceConnector` or `SinkConnector`.

    Its class says in `capabilities` what it can do.
    """
    able = getattr(made, "capabilities", _UNKNOWN)
    return Endpoint("own", options, schema_of(schema) if schema is not None else None, bounded, made, able)


def options_of(endpoint: Endpoint) -> Mapping[str, Any]:
    """The options of an endpoint, without those left at None."""
    return {k: v for k, v in endpoint.options.items() if v is not None}
