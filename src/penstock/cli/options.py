"""How the commands declare their options.

Every option can also be set by the environment, as `PENSTOCK_<COMMAND>_<OPTION>`; the help does not repeat that for each. The options
of a run are those of `RunSpec`: `run_options` adds them to a command.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Annotated, Any, TypeVar

import typer

from penstock.errors import OptionError
from penstock.graph.run import Option
from penstock.graph.run import run_options as declared

option: functools.partial[Any] = functools.partial(typer.Option, show_envvar=False)
FlowTarget = Annotated[
    str,
    typer.Argument(
        metavar="TARGET", help="FILE.py[:flow], package.module[:flow], FILE.sql or FILE.yaml", show_default=False
    ),
]
"""A flow that a command builds."""

_MODES = {
    "batch": "Run once over bounded data, as one batch.",
    "once": "Process what is there, then stop; continues from its checkpoint.",
}
Command = Callable[..., None]
Word = TypeVar("Word", bound=str)


def run_options(command: str, *names: str) -> Callable[[Command], Command]:
    """Gives a command the options of a run, or some of them; it takes them as `**options`, those that were not given as None or False."""
    chosen = [o for o in declared().values() if (o.name in names if names else o.flag)]
    modes = [] if names else [_mode(name, about) for name, about in _MODES.items()]

    def decorate(function: Command) -> Command:
        own = [p for p in inspect.signature(function, eval_str=True).parameters.values() if p.kind is not p.VAR_KEYWORD]
        added = [*modes, *(_parameter(o, command) for o in chosen)]
        first = [p for p in own if p.default is p.empty]
        ordered = [*first, *added, *(p for p in own if p not in first)]
        by_name = [p.replace(kind=p.KEYWORD_ONLY) for p in ordered]
        function.__signature__ = inspect.Signature(by_name)  # type: ignore[attr-defined]  # what typer looks at
        function.__annotations__ = {p.name: p.annotation for p in by_name} | {"return": None}
        return function

    return decorate


def _mode(name: str, about: str) -> inspect.Parameter:
    made = Annotated[bool, option(f"--{name}", help=about)]
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=False, annotation=made)


def _parameter(of: Option[object], command: str) -> inspect.Parameter:
    variables = [v.replace("PENSTOCK_RUN_", f"PENSTOCK_{command.upper()}_") for v in of.variables]
    kind = of.kind
    details = option(
        of.flag,
        help=of.help,
        envvar=variables,
        show_default=of.shown or False,
        **({} if kind.is_flag else {"metavar": kind.metavar}),
    )
    of_type: object = bool if kind.is_flag else list[str] | None if kind.is_repeated else str | None
    default = False if kind.is_flag else None
    annotation = Annotated[of_type, details]  # type: ignore[valid-type]  # the type is made here
    return inspect.Parameter(of.name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def one_of(flag: str, value: object, *allowed: Word) -> Word:
    """A value that must be one of a few words."""
    for word in allowed:
        if value == word:
            return word
    raise OptionError(f"{flag} is {', '.join(allowed[:-1])} or {allowed[-1]}, got {value!r}")
