"""`penstock dlq`: the records that steps have put aside: to look at, to mend, to drop, and to send back."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any

import click
import typer

from penstock.cli.flows.checkpoint import BEGUN, CheckpointOption, checkpoint_of
from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.cli.output.listing import count, show_json
from penstock.cli.output.listing import show as show_rows
from penstock.cli.output.terminal import block, on_screen
from penstock.errors import OptionError, nearest
from penstock.graph.schema import schema_of
from penstock.graph.types import STRING
from penstock.kernels.errors.payload import RAW, RAW_BASE64, RECORD, SCHEMA, BadPayload, read_payload
from penstock.live.dead_letters.replay import Replays
from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore
from penstock.location import Address
from penstock.storage.private import write_private

group = typer.Typer(name="dlq", help="Dead letters: records that steps have put aside.", no_args_is_help=True)

Target = Annotated[
    str,
    typer.Argument(
        metavar="FLOW",
        help="FILE.py[:flow], package.module[:flow], or a checkpoint (a directory or a URL)",
        show_default=False,
    ),
]
Step = Annotated[str, option("--step", help="Only those of a step.", show_default="all steps")]
Debug = Annotated[bool, option("--debug", help="Show full tracebacks.")]
Id = Annotated[str, typer.Argument(metavar="ID", help="Which one; `penstock dlq list` shows the ids.")]
Ids = Annotated[list[str] | None, typer.Argument(metavar="[ID]...", help="Which ones.", show_default="all")]
AsJson = Annotated[bool, option("--json", help="Print JSON, for programs.")]
DeadLetter = dict[str, Any]


@group.command("list")
def list_(
    target: Target,
    checkpoint: CheckpointOption = None,
    step: Step = "",
    limit: Annotated[int, option(help="At most so many, the newest.")] = 50,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the dead letters of a flow, oldest first."""
    with handled(debug=debug, runs=False):
        folder = _folder(target, checkpoint)
        replays = Replays(folder / "replay")
        waiting, done = replays.waiting(), replays.done()
        dead_letters = [
            m | {"replayed": m["id"] in done, "waits": m["id"] in waiting} for m in _dead_letters(folder, step)
        ]
        if as_json:
            show_json(dead_letters[-limit:])
            return
        show_rows([_row(m) for m in dead_letters[-limit:]], "no dead letters")
        if len(dead_letters) > limit:
            typer.echo(f"... and {count(len(dead_letters) - limit, 'older one')} (--limit)")


@group.command()
def show(
    target: Target, dead_letter: Id, checkpoint: CheckpointOption = None, as_json: AsJson = False, debug: Debug = False
) -> None:
    """Show a dead letter in full, with its payload and the traceback."""
    with handled(debug=debug, runs=False):
        (found,) = _chosen(_folder(target, checkpoint), [dead_letter])
        if as_json:
            show_json(found)
            return
        for name in ("id", "time", "step", "position", "cause", "record", "edited"):
            if name in found:
                typer.echo(f"{name:9} {on_screen(str(found[name]))}")
        typer.echo(f"{'payload':9} {on_screen(json.dumps(found['payload'], ensure_ascii=False))}")
        typer.echo(block(found["traceback"]))


@group.command()
def edit(
    target: Target,
    dead_letter: Id,
    fields: Annotated[
        list[str] | None,
        option(
            "--set",
            envvar="PENSTOCK_DLQ_EDIT_SET",
            metavar="FIELD=VALUE",
            help="Another value for a field, as JSON or text; null is none.",
        ),
    ] = None,
    raw: Annotated[str | None, option("--raw", help="Other text for a record that could not be read.")] = None,
    file: Annotated[str, option("--file", help="A file with the whole payload; - is standard input.")] = "",
    checkpoint: CheckpointOption = None,
    debug: Debug = False,
) -> None:
    """Change the record of a dead letter before it is replayed; without options, in your editor."""
    with handled(debug=debug, runs=False):
        folder = _folder(target, checkpoint)
        (found,) = _chosen(folder, [dead_letter])
        try:
            DeadLetterStore(folder / DEAD_LETTERS).edit(dead_letter, _edited(found["payload"], fields or [], raw, file))
        except BadPayload as error:
            raise OptionError(f"dead letter {dead_letter!r} stays as it was: {error}") from None
        Replays(folder / "replay").withdraw({dead_letter})
        typer.echo(f"changed: {dead_letter}; send it back with: penstock dlq replay {target} {dead_letter}")


@group.command()
def drop(
    target: Target,
    dead_letters: Ids = None,
    checkpoint: CheckpointOption = None,
    step: Step = "",
    everything: Annotated[bool, option("--all", envvar="PENSTOCK_DLQ_DROP_ALL", help="All of them.")] = False,
    debug: Debug = False,
) -> None:
    """Remove dead letters for good: those named, those of --step, or --all."""
    with handled(debug=debug, runs=False):
        if not (dead_letters or step or everything):
            raise OptionError("say which dead letters go: their ids, --step STEP, or --all")
        folder = _folder(target, checkpoint)
        chosen = _chosen(folder, dead_letters, step)
        gone = {m["id"] for m in chosen}
        Replays(folder / "replay").withdraw(gone)
        many = DeadLetterStore(folder / DEAD_LETTERS).drop(gone)
        typer.echo(f"dropped: {count(many, 'dead letter')}")


@group.command()
def export(
    target: Target,
    dead_letters: Ids = None,
    output: Annotated[str, option("--output", "-o", help="The file; - is standard output.")] = "-",
    checkpoint: CheckpointOption = None,
    step: Step = "",
    debug: Debug = False,
) -> None:
    """Write dead letters as JSON lines."""
    with handled(debug=debug, runs=False):
        chosen = _chosen(_folder(target, checkpoint), dead_letters, step)
        lines = "".join(f"{json.dumps(m, ensure_ascii=False)}\n" for m in chosen)
        if output == "-":
            typer.echo(lines, nl=False)
            return
        try:
            write_private(Path(output), lines)
        except OSError as error:
            raise OptionError(f"--output {output}: {error.strerror}") from None
        typer.echo(f"exported: {count(len(chosen), 'dead letter')} to {output}")


@group.command()
def replay(
    target: Target,
    dead_letters: Ids = None,
    checkpoint: CheckpointOption = None,
    step: Step = "",
    again: Annotated[bool, option("--again", help="Also those that have been replayed before.")] = False,
    debug: Debug = False,
) -> None:
    """Send dead letters back to the step that failed on them, with the next batch of the flow."""
    with handled(debug=debug, runs=False):
        folder = _folder(target, checkpoint)
        replays = Replays(folder / "replay")
        done = set() if again else replays.done()
        many = replays.ask([m for m in _chosen(folder, dead_letters, step) if m["id"] not in done])
        typer.echo(f"{count(many, 'dead letter')} will go back with the next batch of the flow")


def _folder(target: str, checkpoint: str | None) -> Address:
    """The directory of a flow; one that ran over bounded data only has nothing but its dead letters there."""
    return checkpoint_of(target, checkpoint, holds=(BEGUN, DEAD_LETTERS))


def _dead_letters(folder: Address, step: str) -> list[DeadLetter]:
    dead_letters = list(DeadLetterStore(folder / DEAD_LETTERS).dead_letters())
    steps = {m["step"] for m in dead_letters}
    if step and step not in steps:
        raise OptionError(f"--step: no dead letters of a step {step!r}; {nearest(step, steps)}")
    return [m for m in dead_letters if step in ("", m["step"])]


def _chosen(folder: Address, ids: Iterable[str] | None, step: str = "") -> list[DeadLetter]:
    """The dead letters with some ids, or all."""
    found = {m["id"]: m for m in _dead_letters(folder, step)}
    unknown = [i for i in ids or () if i not in found]
    if unknown:
        raise OptionError(f"no dead letter {unknown[0]!r}; {nearest(unknown[0], found)}")
    return [found[i] for i in ids or found]


def _edited(payload: DeadLetter, fields: list[str], raw: str | None, file: str) -> DeadLetter:
    """The payload with what was asked for."""
    if file:
        return _parsed(sys.stdin.read() if file == "-" else _text_of(file))
    if raw is None and not fields:
        return _parsed(click.edit(json.dumps(payload, indent=2, ensure_ascii=False), extension=".json") or "{}")
    found = read_payload(payload)
    if raw is not None and found.raw is None:
        raise OptionError("--raw is for a record that a source could not read; this one has fields: use --set")
    if raw is None and found.raw is not None and (unknown := _unknown(fields, found.values)):
        raise OptionError(
            f"--set: the record could not be read, so it has no field {unknown!r}; give its whole text with --raw TEXT"
        )
    made = dict(payload)
    if raw is not None:
        made.pop(RAW_BASE64, None)
        made[RAW] = raw
    return made | ({RECORD: made.get(RECORD, {}) | _values(fields, made.get(SCHEMA, ""))} if fields else {})


def _unknown(fields: list[str], values: Mapping[str, object]) -> str | None:
    """The first name in FIELD=VALUE that a record does not have."""
    return next((name for name, equals, _ in (f.partition("=") for f in fields) if equals and name not in values), None)


def _values(fields: list[str], schema: str) -> DeadLetter:
    pairs = [text.partition("=") for text in fields]
    wrong = [name for name, equals, _ in pairs if not name or not equals]
    if wrong:
        raise OptionError(f"--set takes FIELD=VALUE, such as price=3.5, got {wrong[0]!r}")
    texts = {f.name for f in schema_of(schema).fields if f.type == STRING} if schema else set()
    return {name: text if name in texts and text != "null" else _value(text) for name, _, text in pairs}


def _value(text: str) -> object:
    """A value as JSON, or as text if it is none."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _parsed(text: str) -> DeadLetter:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise BadPayload(f"this is not JSON: {error}") from None
    return found if isinstance(found, dict) else {"": found}


def _text_of(file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except OSError as error:
        raise OptionError(f"--file {file}: {error.strerror}") from None


def _cut(text: str, limit: int = 60) -> str:
    line = text.split("\n", 1)[0]
    return line if len(line) <= limit else f"{line[: limit - 3]}..."


def _row(dead_letter: DeadLetter) -> DeadLetter:
    made = {"id": dead_letter["id"], "time": dead_letter["time"][:19], "step": dead_letter["step"]}
    replayed = "waits" if dead_letter["waits"] else "yes" if dead_letter["replayed"] else ""
    return {**made, "cause": _cut(dead_letter["cause"]), "record": _cut(_record(dead_letter)), "replayed": replayed}


def _record(dead_letter: DeadLetter) -> str:
    """The record as it would go back: that of an edited one is in its payload."""
    if "edited" not in dead_letter:
        return str(dead_letter["record"])
    payload = dead_letter["payload"]
    shown = payload.get(RAW, payload.get(RAW_BASE64)) or json.dumps(payload.get(RECORD), ensure_ascii=False)
    return f"edited: {shown}"
