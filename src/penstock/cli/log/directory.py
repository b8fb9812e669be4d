"""Where the embedded log is, and how its errors end a command."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.options import option
from penstock.cli.output.failure import handled
from penstock.jobs.exit_codes import FAILED
from penstock.log import BadPredicate, BadSetting, Log, LogDamaged, LogError, OffsetOutOfRange, UnknownTopic

DEFAULT = Path(".penstock/log")
LogDir = Annotated[
    Path, option("--log", envvar="PENSTOCK_LOG", show_envvar=True, metavar="DIR", help="Where the log is.")
]
AsJson = Annotated[bool, option("--json", help="Print JSON, for programs.")]
Debug = Annotated[bool, option("--debug", help="Show full tracebacks.")]
TopicName = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic.", show_default=False)]
_FORMAT = "penstock-log.json"


def examples(*lines: str) -> str:
    """What stands at the end of a help."""
    return "\n".join(["Examples:", *(f"  {line}" for line in lines)])


@contextmanager
def opened(path: Path, *, debug: bool = False, create: bool = False) -> Iterator[Log]:
    """The log, for the time of a command; a log that is not there is made only where something is to be put in."""
    with reported(debug=debug):
        _check(path, create)
        with Log(path) as log:
            yield log


def _check(path: Path, create: bool) -> None:
    if (path / _FORMAT).is_file():
        return
    if not create:
        what = "is no log" if path.is_dir() else "is not there"
        raise LogError(
            f"the log {path} {what}; `penstock topics create TOPIC` makes one, --log DIR or PENSTOCK_LOG names another"
        )
    if path.exists() and (not path.is_dir() or any(map(_foreign, path.iterdir()))):
        raise LogError(f"{path} holds something else than a log; give a folder of its own with --log DIR")


def _foreign(path: Path) -> bool:
    """Whether a file is not one of those that a log that is just being made begins with."""
    return path.name != ".lock" and not path.name.startswith(_FORMAT)


@contextmanager
def reported(*, debug: bool = False) -> Iterator[None]:
    """Turns errors into a line and an exit code: 2 for what was asked in the wrong way, 1 for what failed."""
    with handled(debug=debug, runs=False):
        try:
            yield
        except (BadSetting, BadPredicate) as error:
            raise typer.BadParameter(str(error)) from None
        except BrokenPipeError:
            _close_output()
            raise typer.Exit from None
        except (LogError, OSError) as error:
            if debug:
                raise
            complain(text_of(error))
            raise typer.Exit(FAILED) from None


def _close_output() -> None:
    """Whoever read the output has gone (`| head`): that is no error, and Python is not to speak of it at the end either."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def complain(text: str) -> None:
    """An error, on one line of its own."""
    typer.echo(f"{typer.style('error:', fg='red', bold=True)} {text}", err=True)


def text_of(error: Exception) -> str:
    """What is wrong, and what to do about it on the command line."""
    if isinstance(error, LogDamaged):
        after = error.damage.next
        return (
            f"{error.damage}; restore the file, or consume with --skip-damage to go on at {after} without these records"
        )
    if isinstance(error, OffsetOutOfRange):
        return (
            f"topic {error.topic!r} partition {error.partition} holds offsets {error.start} to {error.end} (not included), not "
            f"{error.offset}; begin --from-beginning, or move a group with `penstock groups reset-offsets`"
        )
    if isinstance(error, UnknownTopic) and str(error).startswith("no topic"):
        return f"{error}; `penstock topics create` makes one"
    if isinstance(error, OSError):
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    return str(error)
