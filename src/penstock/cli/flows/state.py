"""`penstock state`: what the steps of a flow keep, while it runs or after."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from penstock import state as opened
from penstock.cli.flows.checkpoint import CheckpointOption, checkpoint_of
from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.output.terminal import on_screen
from penstock.errors import OptionError, SetupError, StateError, nearest
from penstock.location import Address
from penstock.storage.private import open_private

if TYPE_CHECKING:
    import pyarrow as pa

    from penstock.state.reader import Store

group = typer.Typer(name="state", help="Look at what the steps of a flow keep, while it runs.", no_args_is_help=True)

Target = Annotated[
    str,
    typer.Argument(
        metavar="FLOW",
        help="FILE.py[:flow], package.module[:flow], or a checkpoint or savepoint (a directory or a URL)",
        show_default=False,
    ),
]
Version = Annotated[int | None, option(help="Which version; batch N makes version N.", show_default="the newest")]
Step = Annotated[str, option(help="Which step.", show_default="the only one that keeps something")]
Key = Annotated[str, option(help="Only this key; its parts with commas between.")]
Debug = Annotated[bool, option("--debug", help="Show full tracebacks.")]


@group.command("list")
def list_(
    target: Target,
    checkpoint: CheckpointOption = None,
    version: Version = None,
    format: Annotated[str, option(help="table or json.")] = "table",
    debug: Debug = False,
) -> None:
    """List the steps that keep something, and the versions that are kept."""
    with handled(debug=debug, runs=False):
        _known(format, ("table", "json"))
        folder = checkpoint_of(target, checkpoint)
        found, there = opened.stores(folder, version), opened.versions(folder)
        if format == "json":
            typer.echo(json.dumps({"versions": there, "steps": [_described(s) for s in found]}, indent=1))
            return
        number = there[-1] if version is None else version
        typer.echo(f"{folder}: version {number}; {there[0]} to {there[-1]} are kept")
        rows = [[s.name, s.kind, f"{s.entries:,}", f"{s.bytes:,}", str(s.files), str(s.schema or "")] for s in found]
        _print(["step", "keeps", "entries", "bytes", "files", "form"], rows)


def _described(store: Store) -> dict[str, object]:
    schema = None if store.schema is None else store.schema.to_json()
    return {**vars(store), "schema": schema, "form": str(store.schema or "")}


@group.command("show")
def show(
    target: Target,
    step: Step = "",
    key: Key = "",
    limit: Annotated[int, option(min=0, help="So many entries at most; 0 is all.")] = 20,
    format: Annotated[str, option(help="table, json or csv.")] = "table",
    checkpoint: CheckpointOption = None,
    version: Version = None,
    debug: Debug = False,
) -> None:
    """Show the keys and values of a step."""
    with handled(debug=debug, runs=False):
        _known(format, ("table", "json", "csv"))
        found = _read(target, checkpoint, step, version, key)
        some = found.slice(0, limit) if limit else found
        _WRITERS[format](some, sys.stdout)
        if some.num_rows < found.num_rows:
            typer.echo(f"{some.num_rows} of {found.num_rows:,} entries; --limit 0 shows all", err=True)


@group.command("runs")
def runs(
    target: Target,
    checkpoint: CheckpointOption = None,
    version: Version = None,
    format: Annotated[str, option(help="table or json.")] = "table",
    debug: Debug = False,
) -> None:
    """Count the runs of each pattern: how many, what they wait for, since when, and the room they take."""
    with handled(debug=debug, runs=False):
        _known(format, ("table", "json"))
        found = opened.run_summaries(checkpoint_of(target, checkpoint), version)
        if format == "json":
            typer.echo(json.dumps([vars(each) for each in found], default=_plain, indent=1))
            return
        rows = [
            [s.step, f"{s.keys:,}", f"{s.runs:,}", _waiting(s.waiting), _text(s.oldest), f"{s.bytes:,}"] for s in found
        ]
        _print(["step", "keys", "runs", "waiting for", "oldest", "bytes"], rows)


def _waiting(counts: dict[str, int]) -> str:
    return ", ".join(f"{name}: {many:,}" for name, many in sorted(counts.items()))


@group.command("export")
def export(
    target: Target,
    output: Annotated[Path, option("--output", "-o", help="The file to write.", show_default=False)],
    step: Step = "",
    key: Key = "",
    format: Annotated[str, option(help="json (lines), csv or parquet.", show_default="by the file's ending")] = "",
    checkpoint: CheckpointOption = None,
    version: Version = None,
    debug: Debug = False,
) -> None:
    """Write the keys and values of a step to a file."""
    with handled(debug=debug, runs=False):
        kind = _known(format or output.suffix.removeprefix("."), ("json", "csv", "parquet"))
        found = _read(target, checkpoint, step, version, key)
        try:
            _write(found, output, kind)
        except OSError as error:
            raise SetupError(
                f"{output} cannot be written ({error.strerror}); give another file with --output"
            ) from None
        typer.echo(f"{found.num_rows:,} entries: {output}", err=True)


def _known(format: str, known: tuple[str, ...]) -> str:
    if format not in known:
        raise typer.BadParameter(f"--format is {', '.join(known[:-1])} or {known[-1]}, got {format!r}")
    return format


def _read(target: str, checkpoint: str | None, step: str, version: int | None, key: str) -> pa.Table:
    folder = checkpoint_of(target, checkpoint)
    found = opened.read(folder, step or _only(folder, version), version)
    return _of_key(found, key) if key else found


def _only(folder: Address, version: int | None) -> str:
    names = [s.name for s in opened.stores(folder, version)]
    if len(names) != 1:
        what = (
            f"several steps keep something: {', '.join(names)}; say which with --step"
            if names
            else "no step keeps anything"
        )
        raise StateError(f"{folder}: {what}")
    return names[0]


def _of_key(found: pa.Table, key: str) -> pa.Table:
    """The entries whose first columns read like the key."""
    import pyarrow as pa

    parts = [p.strip() for p in key.split(",")]
    if len(parts) > found.num_columns:
        raise typer.BadParameter(f"--key has {len(parts)} parts; the columns are {', '.join(found.column_names)}")
    columns = [[str(v) for v in found.column(at).to_pylist()] for at in range(len(parts))]
    hits = [all(a == b for a, b in zip(each, parts, strict=True)) for each in zip(*columns, strict=True)]
    if not any(hits):
        hint = nearest(key, dict.fromkeys(columns[0][:2000])) if len(parts) == 1 else ""
        raise StateError(f"key {key!r} is not there{f'; {hint}' if hint else ''}")
    return found.filter(pa.array(hits))


def _rows(found: pa.Table) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = found.to_pylist(maps_as_pydicts="lossy")
    return rows


def _as_table(found: pa.Table, to: IO[str]) -> None:
    _print(found.column_names, [[_text(v) for v in row.values()] for row in _rows(found)])


def _as_json(found: pa.Table, to: IO[str]) -> None:
    for row in _rows(found):
        to.write(json.dumps(row, default=_plain) + "\n")


def _as_csv(found: pa.Table, to: IO[str]) -> None:
    import csv

    lines = csv.writer(to, lineterminator="\n")
    lines.writerow(found.column_names)
    lines.writerows([_text(v) for v in row.values()] for row in _rows(found))


_WRITERS: dict[str, Callable[[Any, Any], None]] = {"table": _as_table, "json": _as_json, "csv": _as_csv}


def _write(found: pa.Table, output: Path, kind: str) -> None:
    """Into a file for this user alone, as the state itself is."""
    try:
        file = open_private(output)
    except OSError as error:
        raise OptionError(f"--output {output}: {error.strerror}") from None
    with file:
        if kind == "parquet":
            import pyarrow.parquet as pq

            pq.write_table(found, file)
            return
        with io.TextIOWrapper(file, encoding="utf-8", newline="") as lines:
            _WRITERS[kind](found, lines)


def _text(value: object) -> str:
    if value is None:
        return ""
    return json.dumps(value, default=_plain) if isinstance(value, dict | list) else str(_plain(value))


def _plain(value: object) -> object:
    """A value as JSON can say it."""
    if isinstance(value, bytes):
        return value.hex()
    return value.isoformat() if hasattr(value, "isoformat") else value if isinstance(value, int | float) else str(value)


def _print(names: list[str], rows: list[list[str]]) -> None:
    """Columns side by side; on a terminal a long value is cut."""
    console = Console()
    most = max(20, console.width // 2) if console.is_terminal else None
    lines = [names, *([_cut(on_screen(value), most) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    for line in lines:
        typer.echo("  ".join(value.ljust(width) for value, width in zip(line, widths, strict=True)).rstrip())


def _cut(value: str, most: int | None) -> str:
    return value if most is None or len(value) <= most else f"{value[: most - 1]}…"
