"""The endpoints a user can name: descriptions only, so that a flow can be built without Spark."""

from __future__ import annotations

import glob as globs
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from penstock.errors import SchemaError, nearest
from penstock.graph.capabilities import LEDGER_SINK, SINK, SOURCE, WEAKER, Capabilities
from penstock.graph.endpoints import sniff
from penstock.graph.endpoints.hive import fields_of
from penstock.graph.nodes.endpoint import Endpoint
from penstock.graph.schema import Form, Schema, schema_of
from penstock.graph.spelling import spelled

FORMATS = ("text", "json", "csv", "parquet")
TEXT = schema_of("value string")
_LOCAL = replace(SOURCE, runs_locally=True)
_UNKNOWN = Capabilities(reads=True, writes=True, deliveries=WEAKER)
"""What is neither a source nor a sink by its class is refused when it is used."""
_LOCAL_SINK = replace(SINK, runs_locally=True)
_SHOWN = replace(_LOCAL_SINK, table_rows="shown")
_FILES = replace(_LOCAL, parses=("json", "csv"))


@spelled
def files(
    path: str | Path,
    format: str = "",
    schema: Form | None = None,
    *,
    header: bool = True,
    files_per_batch: int | None = None,
) -> Endpoint:
    """Files of a folder or a glob: text lines, JSON lines, CSV or Parquet. A source, or a static table for `join`.

    Bounded, it is what is there; live, it is what is there and whatever is added later. Text has the one field `value`.

    Args:
        path: a file, a folder or a glob, on this machine, in an object store, or wherever Spark can read.
        format: text, json, csv or parquet; else the ending of the path says.
        schema: the fields. All formats but text need it, here or where the endpoint is used; `ps.files_schema(path)` reads it from the
            first file.
        header: whether the first line of a CSV file holds names.
        files_per_batch: how many files a live batch takes at most; None takes all that are there.

    Returns:
        The endpoint, for `Flow.source` and `Stream.join`.

    Raises:
        SchemaError: the format is not one, or the schema cannot be read.

    >>> import penstock as ps
    >>> ps.Flow("demo").source("orders", ps.files("orders/*.csv", schema="id bigint, user string"))
    Stream('orders': id bigint, user string)
    """
    kind = _known_format("files", path, format)
    options = {"path": str(path), "format": kind, "header": header, "files_per_batch": files_per_batch}
    able = replace(_FILES, hides_backlog=files_per_batch is not None, can_watch="://" not in str(path))
    return Endpoint("files", options, _file_schema(kind, schema), capabilities=able)


def _format_of(path: str) -> str:
    ending = Path(path.rstrip("*")).suffix.lower().lstrip(".")
    return {"txt": "text", "log": "text", "jsonl": "json", "ndjson": "json"}.get(ending, ending or "text")


def _file_schema(kind: str, schema: Form | None) -> Schema | None:
    if kind == "text":
        return TEXT
    return None if schema is None else schema_of(schema)


def files_schema(path: str | Path, format: str = "", *, header: bool = True) -> Schema:
    r"""The schema of files as the first of them has it, read now: `ps.files(path, schema=ps.files_schema(path))`.

    Args:
        path: a file, a folder or a glob of this machine.
        format: text, json, csv or parquet; else the ending of the path says.
        header: whether the first line of a CSV file holds names.

    Returns:
        The schema.

    Raises:
        SchemaError: no file is there, it cannot be read, or the format is not one.

    >>> import tempfile
    >>> from pathlib import Path
    >>> import penstock as ps
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "a.csv").write_text("id,user\n7,ada\n")
    >>> str(ps.files_schema(folder / "*.csv"))
    'id bigint, user string'
    """
    kind = _known_format("files_schema", path, format)
    if kind == "text":
        return TEXT
    found = matching_files(str(path))
    if not found:
        raise SchemaError(f"files_schema({str(path)!r}): no file is there to read the schema of")
    return sniff.file_schema(found[0], kind, header).with_fields(fields_of(found))


def _known_format(what: str, path: str | Path, format: str) -> str:
    kind = format or _format_of(str(path))
    if kind not in FORMATS:
        raise SchemaError(
            f"{what}({str(path)!r}): format {format or kind!r} is not one of them; {nearest(kind, FORMATS)}"
        )
    return kind


def matching_files(path: str) -> list[str]:
    """The files a path or glob stands for, in order of name; hidden ones and those with a leading underscore are not."""
    found = [file for each in sorted(globs.glob(path)) for file in _files_in(Path(each))]
    return [str(p) for p in found if not p.name.startswith(("_", "."))]


def _files_in(path: Path) -> Iterator[Path]:
    """A file itself; of a folder its files, and those of folders that name a field and its value, such as `day=2026-05-01`."""
    if not path.is_dir():
        yield path
        return
    for each in sorted(path.iterdir()):
        if each.is_file():
            yield each
        elif "=" in each.name and not each.name.startswith("."):
            yield from _files_in(each)


@spelled
def items(rows: Iterable[Any], schema: Form, *, batches: int = 1) -> Endpoint:
    """Rows from memory. A source, or a static table for `join`.

    Args:
        rows: dicts, tuples, dataclasses, or bare values when the schema has one field.
        schema: the fields.
        batches: in how many batches they come in a live run.

    Returns:
        The endpoint, for `Flow.source` and `Stream.join`.

    Raises:
        SchemaError: the schema cannot be read.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> flow = ps.Flow("demo")
    >>> flow.source("words", ps.items(["a", "b"], "word string")).sink("out", ps.console())
    >>> run_local(flow)["out"]
    [Row(word='a'), Row(word='b')]
    """
    able = replace(_LOCAL, hides_backlog=True)
    return Endpoint("items", {"rows": list(rows), "batches": batches}, schema_of(schema), capabilities=able)


@spelled
def rate(rows_per_second: int = 10, *, limit: int | None = None) -> Endpoint:
    """Numbers that count up, so many a second: the fields are `timestamp` and `value`. A source.

    Args:
        rows_per_second: how many.
        limit: how many in all; None goes on for ever.

    Returns:
        The endpoint, for `Flow.source`.

    >>> import penstock as ps
    >>> ps.Flow("demo").source("ticks", ps.rate(100, limit=1000))
    Stream('ticks': timestamp timestamp, value bigint)
    """
    options = {"rows_per_second": rows_per_second, "limit": limit}
    made = schema_of("timestamp timestamp, value bigint")
    return Endpoint("rate", options, made, bounded=limit is not None, capabilities=_LOCAL)


@spelled
def generate(
    function: Callable[[int], Any], schema: Form, *, rows_per_second: int = 10, limit: int | None = None
) -> Endpoint:
    """Records made by a function of 0, 1, 2, ..., so many a second. A source.

    The function should depend on its number alone, so that a replay makes the same records.

    Args:
        function: `function(number)` returns a record.
        schema: the fields.
        rows_per_second: how many a live run makes.
        limit: how many in all; None goes on for ever.

    Returns:
        The endpoint, for `Flow.source`.

    Raises:
        SchemaError: the schema cannot be read.

    >>> import penstock as ps
    >>> from penstock.testing import run_local
    >>> flow = ps.Flow("demo")
    >>> squares = ps.generate(lambda n: (n, n * n), "n bigint, square bigint", limit=3)
    >>> flow.source("squares", squares).sink("out", ps.console())
    >>> run_local(flow)["out"]
    [Row(n=0, square=0), Row(n=1, square=1), Row(n=2, square=4)]
    """
    options = {"function": function, "rows_per_second": rows_per_second, "limit": limit}
    able = replace(_LOCAL, runs_python=True)
    return Endpoint("generate", options, schema_of(schema), bounded=limit is not None, capabilities=able)


@spelled
def socket_lines(host: str = "127.0.0.1", port: int = 9999) -> Endpoint:
    """Lines from a TCP socket, as `value`. A source for demos: what was in flight at a crash is lost.

    Args:
        host: the server, to which the flow connects.
        port: its port.

    Returns:
        The endpoint, for `Flow.source`.

    >>> import penstock as ps
    >>> ps.Flow("demo").source("lines", ps.socket_lines(port=9999))
    Stream('lines': value string)
    """
    return Endpoint("socket", {"host": host, "port": port}, TEXT, bounded=False, capabilities=SOURCE)


@spelled
def stdin() -> Endpoint:
    """Lines from standard input, as `value`. A source: lines are kept on disk before the flow sees them, so a replay has them.
    A bounded run, and one without Spark, reads up to the end of the input.

    Returns:
        The endpoint, for `Flow.source`.

    >>> import penstock as ps
    >>> ps.Flow("demo").source("lines", ps.stdin())
    Stream('lines': value string)
    """
    return Endpoint("stdin", {}, TEXT, capabilities=_LOCAL)


@spelled
def console(rows: int = 20) -> Endpoint:
    """Prints the first rows of each batch. A sink.

    Args:
        rows: how many.

    Returns:
        The endpoint, for `Stream.sink`.

    >>> import penstock as ps
    >>> flow = ps.Flow("demo")
    >>> flow.source("words", ps.items(["a"], "word string")).sink("out", ps.console(rows=5))
    """
    able = replace(_SHOWN, weakness="a terminal cannot take back what it has shown")
    return Endpoint("console", {"rows": rows}, capabilities=able)


def nothing() -> Endpoint:
    """Takes all records and keeps none, for benchmarks."""
    return Endpoint("nothing", capabilities=replace(_SHOWN, weakness="it keeps nothing", is_bulk=True))


@spelled
def write_files(path: str | Path, format: str = "", *, partition_by: str | Sequence[str] = ()) -> Endpoint:
    """Files of a folder, a set of them for each batch. A sink that holds exactly once: a batch that runs again replaces its own.

    Args:
        path: the folder, on this machine, in an object store, or wherever Spark can write.
        format: parquet, json, csv or text; else it is parquet.
        partition_by: fields by whose values the files are put into folders, `day=2026-05-01/city=Rome`, as Hive and Spark do. They are
            not in the files; `ps.files` reads them back from the names of the folders. Null and the empty text share a folder, and
            are null when they are read.

    Returns:
        The endpoint, for `Stream.sink`.

    Raises:
        SchemaError: the format is not one.

    >>> import penstock as ps
    >>> flow = ps.Flow("demo")
    >>> flow.source("words", ps.items(["a"], "word string")).sink("out", ps.write_files("words", "json"))
    """
    kind = format or "parquet"
    if kind not in FORMATS:
        raise SchemaError(f"write_files({str(path)!r}): no format {format!r}; {nearest(format, FORMATS)}")
    by = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
    options = {"path": str(path), "format": kind, "partition_by": by or None}
    able = replace(LEDGER_SINK, row_errors="bisected" if by else "none", runs_locally=True)
    return Endpoint("write_files", options, capabilities=able)


@spelled
def callback(function: Callable[..., Any]) -> Endpoint:
    """Calls a function of yours in the driver, once for each batch, with all its rows. A sink.

    After a crash the last batch may come again, with the same id.

    Args:
        function: `function(rows, batch)`; `batch` has `id` and `sink`.

    Returns:
        The endpoint, for `Stream.sink`.

    >>> import penstock as ps
    >>> def show(rows, batch):
    ...     print(batch.id, len(rows))
    >>> flow = ps.Flow("demo")
    >>> flow.source("words", ps.items(["a"], "word string")).sink("out", ps.callback(show))
    """
    able = replace(_SHOWN, weakness="a function may be called again for a batch after a crash; it has batch.id to tell")
    return Endpoint("callback", {"function": function}, capabilities=able)


@spelled
def connector(made: object, schema: Form | None = None, *, bounded: bool = False, **options: Any) -> Endpoint:
    """A source or sink of your own. Its class says in `capabilities` what it can do.

    Args:
        made: an instance of `penstock.connectors.base.SourceConnector` or `SinkConnector`.
        schema: the fields of a source.
        bounded: whether a source has an end.
        options: what the connector finds in `context.options`.

    Returns:
        The endpoint, for `Flow.source` or `Stream.sink`.

    Raises:
        SchemaError: the schema cannot be read.

    >>> import penstock as ps
    >>> from penstock.connectors.base import SourceConnector
    >>> class Weather(SourceConnector):
    ...     '''Its methods say how it is read.'''
    >>> ps.Flow("demo").source("weather", ps.connector(Weather(), "city string, degrees double", station=7))
    Stream('weather': city string, degrees double)
    """
    able = getattr(made, "capabilities", _UNKNOWN)
    return Endpoint("own", options, schema_of(schema) if schema is not None else None, bounded, made, able)
