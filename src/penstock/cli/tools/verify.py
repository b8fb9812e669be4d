"""`penstock verify`: whether a sink delivers exactly once, tried with kills."""

from __future__ import annotations

import json
import platform
import time
from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import count
from penstock.cli.output.progress import batches
from penstock.jobs.exit_codes import FAILED
from penstock.jobs.signals import leaving_on_sigterm
from penstock.version import __version__

JOBS = "jobs"


def verify(  # noqa: PLR0913 - one parameter for each option
    sink: Annotated[
        str,
        typer.Argument(
            help="log, files, s3, hdfs, postgres, redis, kafka, or a target of your own as module:Class; several with commas between them. Or jobs: the server of jobs."
        ),
    ],
    records: Annotated[int, option(min=1, help="How many records go through.")] = 100_000,
    kills: Annotated[int, option(min=0, help="How often the driver is killed; 11 or more hit every window.")] = 20,
    seed: Annotated[int, option(help="Decides the order and the moments of the kills.")] = 0,
    url: Annotated[
        str,
        option(
            help="A server of your own (postgres, redis, s3, hdfs) or its bootstrap servers (kafka); for jobs a PostgreSQL, which two servers share."
        ),
    ] = "",
    window: Annotated[
        list[str] | None, option(help="A crash window, F1 to F11; may be given again. All by default.")
    ] = None,
    flow: Annotated[
        str, option(help="numbers: a numbering per key; pattern: pairs of records, matched or timed out.")
    ] = "numbers",
    spark_jobs: Annotated[
        int, option(min=0, max=5, help="Of five jobs, how many are flows with Spark (only for jobs).")
    ] = 1,
    at_once: Annotated[
        int, option(min=1, help="The most kills of a round, before all jobs are waited for (only for jobs).")
    ] = 3,
    folder: Annotated[
        Path | None,
        option(
            help="Keep everything in this folder, and go on with what was broken off there (only for jobs).",
            metavar="DIR",
        ),
    ] = None,
    as_json: Annotated[bool, option("--json", help="Print the tally as a last line of JSON.")] = False,
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Send records through a flow into a sink, kill its driver again and again, and count what went wrong.

    A reader looks on all the while. Ends with 1 when a record is lost, doubled or out of order, or a batch was seen in part.
    """
    with handled(debug=debug, runs=False), leaving_on_sigterm():
        from penstock.testing import verify as verifying  # so that the list of all commands loads no test kit

        def say(text: str) -> None:
            typer.echo(text, err=True)

        if sink == JOBS:
            asked = verifying.JobsPlan(kills, 5, spark_jobs, seed, url, say, at_once, folder)
            _tell_jobs(verifying.verify_jobs(asked), as_json=as_json)
            return
        plan = verifying.Plan(sink, records, kills, seed, url, tuple(window or ()), flow, say=say)
        began = time.monotonic()
        found = verifying.verify(plan)
        seconds = time.monotonic() - began
        typer.echo(shown(sink, found, seconds), err=as_json)
        if as_json:
            about = {"sink": sink, "seed": seed, "seconds": round(seconds, 1), "penstock": __version__}
            typer.echo(json.dumps({**about, "python": platform.python_version(), **found.as_dict()}))
        if not found.ok:
            raise typer.Exit(FAILED)


def _tell_jobs(found: Any, *, as_json: bool) -> None:
    typer.echo(str(found), err=as_json)
    if as_json:
        typer.echo(json.dumps({"penstock": __version__, "python": platform.python_version(), **found.as_dict()}))
    if not found.ok:
        raise typer.Exit(FAILED)


def shown(sink: str, found: Any, seconds: float) -> str:
    """The tally as text.

    >>> from penstock.testing.verify import Tally
    >>> print(shown("log", Tally(10, 2, 5, kills={"F2": 1, "F1": 2}), 1.0))
    log: 10 records in 2 batches, 3 kills (F1 2, F2 1), 5 reads, 1 s
      0 lost, 0 duplicate, 0 strange, 0 reordered, 0 torn, 0 backward
      exactly once: yes
    """
    windows = ", ".join(f"{name} {found.kills[name]}" for name in sorted(found.kills, key=lambda n: int(n[1:])))
    kills = count(sum(found.kills.values()), "kill") + (f" ({windows})" if windows else "")
    sent = f"{count(found.records, 'record')} in {batches(found.batches)}"
    return (
        f"{sink}: {sent}, {kills}, {count(found.reads, 'read')}, {seconds:.0f} s\n"
        f"  {', '.join(f'{count} {name}' for name, count in found.wrong.items())}\n"
        f"  exactly once: {'yes' if found.ok else 'NO'}"
    )
