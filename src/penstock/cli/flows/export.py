"""`penstock export`: a flow as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.errors import SetupError
from penstock.flowfiles.writing import write_flow
from penstock.jobs.load import load_flow

EXAMPLES = "Then: penstock run flow.yaml"


def export(
    target: Annotated[
        str,
        typer.Argument(metavar="TARGET", help="FILE.py[:flow], package.module[:flow] or FILE.yaml", show_default=False),
    ],
    output: Annotated[
        str, option("--output", "-o", metavar="FILE", help="The file to write; - is standard output.")
    ] = "-",
    debug: Annotated[bool, option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Write a flow as a flow file. It must hold no lambdas: functions and classes are named as module:name."""
    with handled(debug=debug, runs=False):
        text = write_flow(load_flow(target).flow)
        if output == "-":
            typer.echo(text, nl=False)
            return
        try:
            Path(output).write_text(text, encoding="utf-8")
        except OSError as error:
            raise SetupError(f"{output} cannot be written ({error.strerror}); give another file") from None
        typer.echo(f"written: {output}", err=True)
