"""`penstock doctor`: what this machine has, what it lacks, and what to do about it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from penstock.cli.options import run_options
from penstock.cli.output.failure import handled
from penstock.errors import OptionError
from penstock.graph.run import RunSpec
from penstock.jobs.doctor import Check, examine, try_spark
from penstock.jobs.machine import look

_COLOURS = {"ok": "green", "warn": "yellow", "fail": "bold red"}


EXAMPLES = "A cluster: penstock doctor --master spark://HOST:7077 --checkpoint s3://bucket/flow"
LOOKED_AT = ("master", "checkpoint", "conf", "py_files", "archives", "properties_file")
"""The options of a run that the doctor takes."""


@run_options("doctor", *LOOKED_AT)
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="Also start Spark and run one Python step.")] = False,
    **options: object,
) -> None:
    """Look at this machine, or at a cluster (--master), and say what stands in the way of a run. Ends with 1 when something fails."""
    with handled(runs=False):
        spec = RunSpec.of(**options)
        if spec.checkpoint is not None and not spec.master:
            raise OptionError(
                "--checkpoint is looked at from the workers of a cluster: expected --master URL with it, got none"
            )
    checks = examine(look())
    if spark:
        checks.append(try_spark())
    if spec.master:
        checks += look_further(spec)
    if as_json:
        typer.echo(json.dumps(report(checks), indent=2))
    else:
        console = Console()
        console.print(table(checks))
        console.print(summary(checks))
    if any(check.ok is False for check in checks):
        raise typer.Exit(1)


def look_further(spec: RunSpec) -> list[Check]:
    """The checks of a cluster; they need pyspark, which those of a machine do not."""
    with handled(runs=False):
        from penstock.jobs.cluster import examine_cluster  # it loads pyspark

        return examine_cluster(spec)


def report(checks: Sequence[Check]) -> dict[str, object]:
    """The checks as plain values."""
    listed = [{"name": c.name, "status": c.status, "found": c.found, "fix": "" if c.ok else c.fix} for c in checks]
    return {"ok": all(check.ok is not False for check in checks), "checks": listed}


def table(checks: Sequence[Check]) -> Table:
    """The checks as rows, each that is not fine with its fix below it."""
    rows = Table(box=None, show_header=False, pad_edge=False)
    rows.add_column(no_wrap=True)
    rows.add_column(no_wrap=True)
    rows.add_column(overflow="fold")
    for check in checks:
        rows.add_row(Text(check.status, _COLOURS[check.status]), Text(check.name), Text(check.found))
        if not check.ok and check.fix:
            rows.add_row("", "", Text(f"fix: {check.fix}", "cyan"))
    return rows


def summary(checks: Sequence[Check]) -> str:
    """One line: how many of each.

    >>> summary([Check("Java", True, "17"), Check("disk", None, "0.2 GiB")])
    '1 ok, 1 warn, 0 fail'
    """
    words = [check.status for check in checks]
    return f"{words.count('ok')} ok, {words.count('warn')} warn, {words.count('fail')} fail"
