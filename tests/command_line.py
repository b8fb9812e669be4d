"""The command line for tests, made once.

Typer reads every option of every command anew when it is called, which takes 80 ms of processor time and longer than most commands do.
`penstock` itself makes only the command that it was asked for.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

import typer
from typer import testing

from penstock.cli import main

setattr(testing, "_get_command", cache(typer.main.get_command))  # noqa: B010 - what `CliRunner.invoke` makes of an application


@cache
def _made(names: tuple[str, ...]) -> typer.Typer:
    return main.make_app(names)


def make_app(names: Iterable[str] = main.COMMANDS) -> typer.Typer:
    """The command line with these commands, by default with all of them."""
    return _made(tuple(names))
