"""`penstock describe`: what a flow will do, before it runs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.text import Text

from penstock.cli.options import FlowTarget
from penstock.cli.output.failure import handled
from penstock.compiler.describe import describe as described_flow
from penstock.errors import SetupError
from penstock.flowfiles.substitution import filtered
from penstock.graph.picture.describe import Description
from penstock.graph.picture.draw import as_svg
from penstock.graph.picture.text import as_text
from penstock.jobs.load import load_flow

_COLOURS = (
    (re.compile(r"\A.*"), "bold"),
    (re.compile(r"^! .*", re.MULTILINE), "yellow"),
    (re.compile(r"^ +~~ .* ~~$", re.MULTILINE), "red"),
    (re.compile(r"^ +\d+  source.*", re.MULTILINE), "bold blue"),
    (re.compile(r"^ +\d+  native.*", re.MULTILINE), "bold green"),
    (re.compile(r"^ +\d+  Python.*", re.MULTILINE), "bold yellow"),
    (re.compile(r"^ +\d+  sink.*", re.MULTILINE), "bold magenta"),
    (re.compile(r"^ +-> .*", re.MULTILINE), "cyan"),
    (re.compile(r"\((?:[^()\s]+):\d+\)"), "dim"),
)


def describe(
    target: FlowTarget,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON, for programs.")] = False,
    svg: Annotated[
        str,
        typer.Option("--svg", metavar="FILE", help="Draw it into a file; - is standard output.", show_default=False),
    ] = "",
    batch: Annotated[bool, typer.Option("--batch", help="As it runs over bounded data; without it, live.")] = False,
    place: Annotated[
        list[str] | None,
        typer.Option(
            "--place",
            metavar="RULE",
            help="Where steps run, as for penstock run: together=A,B, apart=A,B, alone=A; may be given again.",
            show_default=False,
        ),
    ] = None,
    properties: Annotated[
        str, typer.Option("--properties", metavar="FILE", help="Properties that stand for ${name} in a Flux file.")
    ] = "",
    debug: Annotated[bool, typer.Option("--debug", help="Show full tracebacks.")] = False,
) -> None:
    """Show what a flow will do: its steps and their schemas, what stays native, what runs in Python, what shuffles."""
    with handled(debug=debug):
        made = described_flow(load_flow(target, filtered(properties)).graph, live=not batch, place=place or ())
        if svg:
            write(svg, as_svg(made))
        if as_json:
            typer.echo(json.dumps(made, indent=2))
        elif not svg:
            show(made)


def write(target: str, picture: str) -> None:
    """Puts a picture into a file, or on standard output."""
    if target == "-":
        typer.echo(picture, nl=False)
        return
    try:
        Path(target).write_text(picture, encoding="utf-8")
    except OSError as error:
        raise SetupError(f"the picture cannot be written to {target} ({error.strerror}); give another file") from None
    typer.echo(f"drawn: {target}", err=True)


def show(made: Description) -> None:
    """Prints the text: coloured and as wide as the terminal where there is one, plain elsewhere."""
    console = Console(highlight=False)
    if not console.is_terminal:
        typer.echo(as_text(made), nl=False)
        return
    console.print(coloured(as_text(made, width=max(60, min(console.width, 120)))), end="", soft_wrap=True)


def coloured(text: str) -> Text:
    """The text with a colour for each kind of line."""
    made = Text(text)
    for pattern, style in _COLOURS:
        made.highlight_regex(pattern, style)
    return made
