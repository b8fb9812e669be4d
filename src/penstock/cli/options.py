"""How the commands declare their options.

Every option can also be set by the environment, as `PENSTOCK_<COMMAND>_<OPTION>`; the help does not repeat that for each.
"""

from __future__ import annotations

import functools
from typing import Any

import typer

option: functools.partial[Any] = functools.partial(typer.Option, show_envvar=False)
