"""`penstock sql`: a shell for statements, statements from a file or the command line, and questions to a flow that runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.jobs.signals import leaving_on_sigterm

EXAMPLES = 'Examples: penstock sql · penstock sql -e "SELECT 1 AS n" · penstock sql -f tables.sql · penstock sql --flow count.py "select * from counts where word = \'x\'"'


def sql(  # noqa: PLR0913 - a command has this many options
    query: Annotated[str, typer.Argument(help="A query; without one the shell begins.", show_default=False)] = "",
    execute: Annotated[
        list[str] | None,
        option("--execute", "-e", metavar="SQL", help="Statements to run; may be given several times."),
    ] = None,
    file: Annotated[
        list[Path] | None,
        option("--file", "-f", metavar="FILE", help="A file of statements to run before; - is standard input."),
    ] = None,
    flow: Annotated[
        str,
        option(
            "--flow",
            metavar="FLOW",
            help="Ask what a flow keeps: FILE.py[:flow], FILE.sql, a name, or a checkpoint (a directory or a URL).",
        ),
    ] = "",
    checkpoint: Annotated[
        str | None,
        option("--checkpoint", metavar="DIR|URL", help="The checkpoint of that flow.", show_default=".penstock/FLOW"),
    ] = None,
    version: Annotated[int | None, option(help="Which version of its state.", show_default="the newest")] = None,
    as_json: Annotated[bool, option("--json", help="Rows as lines of JSON.")] = False,
    timeout: Annotated[float, option(help="So many seconds a bounded query may take.")] = 60.0,
    max_records: Annotated[int, option(help="So many records a bounded query may read.")] = 5_000_000,
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Run statements of SQL, ask a flow that runs, or begin a shell."""
    with handled(debug=debug, runs=False), leaving_on_sigterm():
        from penstock.cli.sql import work  # here, so that the list of all commands loads no SQL

        limits = work.AskLimits(max_records, timeout)
        if flow or checkpoint:
            queries = [*([query] if query else []), *(execute or ())]
            work.ask_flow(flow, checkpoint, version, queries, limits, as_json=as_json)
            return
        files, texts = file or [], [*(execute or ()), *([query] if query else [])]
        work.run_statements(files, texts, limits, as_json=as_json)
