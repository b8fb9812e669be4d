"""`penstock dlq`: the records that steps have put aside, and the way back for them."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from penstock.cli.flows.checkpoint import BEGUN, checkpoint_of
from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import show as show_rows
from penstock.cli.output.listing import show_json
from penstock.errors import UnknownName, nearest

app = typer.Typer(name="dlq", help="Dead letters: records that steps have put aside.", no_args_is_help=True)

Target = Annotated[
    str,
    typer.Argument(
        metavar="FLOW", help="FILE.py[:flow], package.module[:flow], or a checkpoint folder", show_default=False
    ),
]
Kept = Annotated[
    Path | None, option("--checkpoint", help="Where the flow keeps its place.", show_default=".penstock/FLOW")
]
Step = Annotated[str, option("--step", help="Only those of a step.", show_default="all steps")]
Debug = Annotated[bool, option("--debug", help="Show whole tracebacks.")]


def _place(target: str, checkpoint: Path | None) -> Path:
    """The folder of a flow; one that ran over bounded data only has nothing but its letters there."""
    from penstock.spark.batch.batch import BOX

    return checkpoint_of(target, checkpoint, holds=(BEGUN, BOX))


def _letters(folder: Path, step: str) -> list[dict[str, Any]]:
    from penstock.spark.batch.batch import BOX
    from penstock.spark.dead_letters.store import LetterBox

    letters = list(LetterBox(folder / BOX).letters())
    steps = {m["step"] for m in letters}
    if step and step not in steps:
        raise UnknownName(f"no dead letters of a step {step!r}; {nearest(step, steps)}")
    return [m for m in letters if step in ("", m["step"])]


@app.command("list")
def list_(
    target: Target,
    checkpoint: Kept = None,
    step: Step = "",
    limit: Annotated[int, option(help="At most so many, the newest.")] = 50,
    as_json: Annotated[bool, option("--json", help="Print JSON, for programs.")] = False,
    debug: Debug = False,
) -> None:
    """List the dead letters of a flow, oldest first."""
    with handled(debug=debug):
        folder = _place(target, checkpoint)
        done = _replayed(folder)
        letters = [m | {"replayed": m["id"] in done} for m in _letters(folder, step)]
        if as_json:
            show_json(letters[-limit:])
            return
        show_rows([_row(m) for m in letters[-limit:]], "no dead letters")
        if len(letters) > limit:
            typer.echo(f"... and {len(letters) - limit} older ones (--limit)")


@app.command()
def show(
    target: Target,
    letter: Annotated[str, typer.Argument(metavar="ID", help="Which one; `penstock dlq list` tells.")],
    checkpoint: Kept = None,
    debug: Debug = False,
) -> None:
    """Show a dead letter whole, with the traceback."""
    with handled(debug=debug):
        found = {m["id"]: m for m in _letters(_place(target, checkpoint), "")}
        if letter not in found:
            raise UnknownName(f"no dead letter {letter!r}; {nearest(letter, found)}")
        for name in ("id", "time", "step", "position", "cause", "record"):
            typer.echo(f"{name:9} {found[letter][name]}")
        typer.echo(found[letter]["traceback"])


@app.command()
def replay(
    target: Target,
    letters: Annotated[
        list[str] | None, typer.Argument(metavar="[ID]...", help="Which ones.", show_default="all")
    ] = None,
    checkpoint: Kept = None,
    step: Step = "",
    again: Annotated[bool, option("--again", help="Also those that have been replayed before.")] = False,
    debug: Debug = False,
) -> None:
    """Send dead letters back to the step that failed on them, with the next batch of the flow."""
    from penstock.spark.dead_letters.replay import Replays

    with handled(debug=debug):
        folder = _place(target, checkpoint)
        found = {m["id"]: m for m in _letters(folder, step)}
        unknown = [i for i in letters or () if i not in found]
        if unknown:
            raise UnknownName(f"no dead letter {unknown[0]!r}; {nearest(unknown[0], found)}")
        done = set() if again else _replayed(folder)
        wanted = [found[i] for i in letters or found if i not in done]
        asked = Replays(folder / "replay").ask(wanted)
        typer.echo(f"{asked} dead letters go back with the next batch of the flow")


def _replayed(folder: Path) -> set[str]:
    from penstock.spark.dead_letters.replay import Replays

    return Replays(folder / "replay").done()


def _cut(text: str, limit: int = 60) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def _row(letter: dict[str, Any]) -> dict[str, Any]:
    told = {"id": letter["id"], "time": letter["time"][:19], "step": letter["step"]}
    replayed = "yes" if letter["replayed"] else ""
    return {**told, "cause": _cut(letter["cause"]), "record": _cut(letter["record"]), "replayed": replayed}
