"""How errors end a command: the message alone, a heading, an exit code."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from penstock.cli.output.terminal import block
from penstock.errors import (
    FlowError,
    Impossible,
    NotYet,
    OptionError,
    PenstockError,
    SetupError,
    StepError,
    UnknownName,
)
from penstock.jobs.exit_codes import code_of
from penstock.jobs.logs import log_failure
from penstock.jobs.signals import INTERRUPTED
from penstock.spark.jvm.gateway import spark_log


def heading_of(error: BaseException, *, runs: bool = True) -> str:
    """A few words that say what kind of trouble it is; `runs` is whether the command runs a flow or looks at something."""
    if not runs and isinstance(error, PenstockError):
        return "Wrong usage" if isinstance(error, OptionError | UnknownName) else "This cannot be done"
    if isinstance(error, StepError):
        return "The flow stopped: a step failed"
    if isinstance(error, OptionError):
        return "Wrong usage"
    if isinstance(error, FlowError | NotYet | Impossible):
        return "This flow cannot run"
    if isinstance(error, SetupError):
        return "The run could not start"
    if isinstance(error, PenstockError):
        return "The flow stopped"
    return f"Unexpected error ({type(error).__name__}); --debug shows all of it"


def show_error(error: BaseException, console: Console | None = None, *, runs: bool = True) -> None:
    """Prints an error without a traceback of Penstock's or Spark's own."""
    console = console or Console(stderr=True)
    console.print(Text(heading_of(error, runs=runs), "bold red"))
    console.print(Text(block(str(error))), soft_wrap=True)
    log = _spark_log(error) if runs else None
    if log is not None:
        console.print(Text(f"Spark's log: {log}", "dim"), soft_wrap=True)


@contextmanager
def handled(*, debug: bool = False, as_json: bool = False, runs: bool = True) -> Iterator[None]:
    """Turns the errors of a command into a message (or an event of the log) and an exit code; `debug` shows all.

    `runs` is false for a command that runs no flow, whose errors are not those of a flow.
    """
    try:
        yield
    except KeyboardInterrupt:
        typer.echo("stopped before the end", err=True)
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if debug:
            raise
        log_failure(error) if as_json else show_error(error, runs=runs)
        raise typer.Exit(code_of(error)) from None


def _spark_log(error: BaseException) -> Path | None:
    """Spark's own log, when it may know more than the message says."""
    return None if isinstance(error, FlowError | OptionError | StepError) else spark_log()
