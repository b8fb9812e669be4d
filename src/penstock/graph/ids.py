"""Ids of steps: paths whose first part is a name of the user's, and whose further parts name what was made for that step.

`n@parts` is the step `parts` that was made for the user's step `n`. A name never holds the separator, so what is made for a step cannot
clash with a step of the user's, whatever that is called.

>>> made = child("n", "parts")
>>> made, owner_of(made), part_of(made), is_derived(made), is_derived("n.parts")
('n@parts', 'n', 'parts', True, False)
"""

from __future__ import annotations

import re

from penstock.errors import FlowError
from penstock.graph.caller import user_line

SEPARATOR = "@"
"""What stands between the parts of an id: no name may hold it, and it may stand in file names, metrics and URLs."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.\-]*")
LONGEST = 150
"""Files and folders are named after steps, with more beside it; no file system takes names of more than 255 bytes."""


def child(step: str, *parts: str) -> str:
    """The id of something that is made for a step: a step before or after it, or a store of its state.

    >>> child("n", "bootstrap", "records")
    'n@bootstrap@records'
    """
    return SEPARATOR.join((step, *parts))


def owner_of(step: str) -> str:
    """The user's step that a step was made for; a step of the user's is its own."""
    return step.split(SEPARATOR, 1)[0]


def parent_of(step: str) -> str:
    """The step that a step was made for, which may be one that was made for another; a step of the user's is its own."""
    return step.rpartition(SEPARATOR)[0] or step


def part_of(step: str) -> str:
    """The last part of an id; empty for a step of the user's."""
    return step.rpartition(SEPARATOR)[2] if is_derived(step) else ""


def is_derived(step: str) -> bool:
    """Whether an id is of something that was made for a step, and not of a step of the user's."""
    return SEPARATOR in step


def is_name(name: object) -> bool:
    """Whether a user may give a step this name.

    >>> is_name("n.parts"), is_name("n@parts"), is_name("")
    (True, False, False)
    """
    return isinstance(name, str) and _NAME.fullmatch(name) is not None


def is_id(step: object) -> bool:
    """Whether this is the id of a step: names with separators between them."""
    return isinstance(step, str) and all(map(is_name, step.split(SEPARATOR)))


def checked_name(name: object, what: str = "a step", example: str = "") -> str:
    """A name that may stand in file names, metrics and ids.

    Args:
        name: what the user gave.
        what: what the name is for, as errors call it.
        example: how the call is written with its name, for the hint.

    Raises:
        FlowError: it is no text, or has other signs than letters, digits, '-', '_' and '.', or more than 150 of them.

    >>> checked_name("per-minute")
    'per-minute'
    """
    if is_name(name):
        return _not_too_long(str(name), what)
    got = repr(name) if isinstance(name, str | int | float) else f"a {type(name).__name__}"
    hint = f". The name comes first: {example}" if example else ""
    raise FlowError(f"{what} needs a name of letters, digits, '-', '_' and '.' ({user_line()}), got {got}{hint}")


def _not_too_long(name: str, what: str) -> str:
    if len(name) > LONGEST:
        raise FlowError(
            f"{what} needs a name of at most {LONGEST} characters, after which files can be named ({user_line()}), got {name[:40]!r}... ({len(name)} characters)"
        )
    return name
