"""How errors end a command: the message alone, a heading, an exit code."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer
from rich.console import Console
from rich.text import Text

from penstock.errors import FlowError, Impossible, NotYet, PenstockError, SetupError, StepError
from penstock.jobs.signals import INTERRUPTED

FAILED, BAD_FLOW = 1, 2


def code_of(error: BaseException) -> int:
    """2 for a flow that is wrong, 1 for one that failed."""
    return BAD_FLOW if isinstance(error, FlowError | NotYet | Impossible) else FAILED


def heading_of(error: BaseException) -> str:
    """A few words that say what kind of trouble it is."""
    if isinstance(error, StepError):
        return "The flow stopped: a step failed"
    if isinstance(error, FlowError | NotYet | Impossible):
        return "This flow cannot run"
    if isinstance(error, SetupError):
        return "This machine is not ready"
    if isinstance(error, PenstockError):
        return "The flow stopped"
    return f"Unexpected error ({type(error).__name__}); --debug shows all of it"


def show_error(error: BaseException, console: Console | None = None) -> None:
    """Prints an error without a traceback of Penstock's or Spark's own."""
    console = console or Console(stderr=True)
    console.print(Text(heading_of(error), "bold red"))
    console.print(Text(str(error)), soft_wrap=True)


@contextmanager
def handled(*, debug: bool = False) -> Iterator[None]:
    """Turns the errors of a command into a message and an exit code; `debug` lets them through whole."""
    try:
        yield
    except KeyboardInterrupt:
        raise typer.Exit(INTERRUPTED) from None
    except (typer.Exit, typer.Abort, typer.BadParameter):
        raise
    except Exception as error:
        if debug:
            raise
        show_error(error)
        _hint(error)
        raise typer.Exit(code_of(error)) from None


def _hint(error: BaseException) -> None:
    """Where Spark's own log is, when Spark may know more than the message says."""
    if isinstance(error, FlowError | StepError) or "pyspark" not in sys.modules:
        return
    from penstock.spark.gateway import spark_log

    log = spark_log()
    if log is not None:
        Console(stderr=True).print(Text(f"Spark's log: {log}", "dim"), soft_wrap=True)
