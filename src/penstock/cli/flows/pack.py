"""`penstock pack`: the environment and the flow's own modules as one archive for the workers of a cluster."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.errors import OptionError
from penstock.jobs.load import load_flow
from penstock.jobs.pack.archive import write_archive
from penstock.jobs.pack.contents import Contents, collect

SUFFIXES = (".tar.gz", ".tgz")
EXAMPLES = "Then: penstock run FLOW --master spark://HOST:7077 --archives environment.tar.gz"


def pack(
    target: Annotated[
        str,
        typer.Argument(help="FILE.py[:flow] or package.module[:flow], whose own modules go along", show_default=False),
    ] = "",
    output: Annotated[Path, option("--output", "-o", help="The archive to write.")] = Path("environment.tar.gz"),
    without: Annotated[
        list[str] | None,
        option("--without", metavar="PACKAGE", help="Leave an installed package out; may be given many times."),
    ] = None,
    with_python: Annotated[
        bool, option("--with-python", help="Pack the interpreter too, for workers that have none of this version.")
    ] = False,
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Pack this environment for workers that have only Python: its packages, and the modules of a flow."""
    with handled(debug=debug, runs=False):
        check_output(output)
        contents = collect(load_flow(target) if target else None, without=without or (), with_python=with_python)
        for warning in contents.warnings:
            typer.echo(f"note: {warning}", err=True)
        size = _write(output, contents)
        typer.echo(summary(output, size, contents))


def check_output(path: Path) -> None:
    """Refuses a name by which Spark would not know how to unpack the archive, and a directory that is not there."""
    if not path.name.endswith(SUFFIXES):
        raise OptionError(f"--output: expected a name that ends in {' or '.join(SUFFIXES)}, got {path}")
    if not path.absolute().parent.is_dir():
        raise OptionError(f"--output: there is no directory {path.absolute().parent}")


def _write(path: Path, contents: Contents) -> int:
    columns = (TextColumn("packing"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task("packing", total=contents.size)
        return write_archive(path, contents.members, lambda size: progress.advance(task, size))


def summary(path: Path, size: int, contents: Contents) -> str:
    """What was packed, in three lines: how large it is, what a worker must have, what takes the most."""
    manifest = contents.manifest
    own = f" and the modules {', '.join(manifest.modules)}" if manifest.modules else ""
    largest = ", ".join(f"{name} {_megabytes(bytes_)}" for name, bytes_ in contents.largest)
    return "\n".join(
        (
            f"{path}: {_megabytes(size)} ({_megabytes(contents.size)} unpacked), {len(manifest.packages)} packages{own}",
            f"workers need: {manifest.needs}; Java and Spark are theirs",
            f"largest: {largest}",
        )
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
