"""Every error Penstock raises on purpose.

    PenstockError
    ├── FlowError             the flow is wrong; raised while it is built, nothing has run
    │   ├── NameTaken         two steps (or streams) share a name
    │   ├── UnknownName       a stream, step or port that does not exist
    │   ├── SchemaError       a missing field, a type that does not fit, an unreadable schema
    │   ├── ExpressionError   an expression that cannot be read or typed
    │   ├── PatternError      a pattern text or a pattern's JSON that cannot be read
    │   ├── SqlError          a statement that cannot be read or planned
    │   ├── LoopError         a loop without a feedback edge
    │   └── CaptureError      a function that holds something which cannot travel to a worker
    ├── OptionError           an option of a run or of a command is unknown, unreadable, or does not go with another
    ├── NotYet                right, but not written yet
    ├── Impossible            cannot work here, and why
    ├── SetupError            the machine lacks something (Java, a package, a writable folder)
    └── RunError              a running flow had to stop
        ├── StepError         the user's own code failed on a record
        ├── StateError        keyed state is missing, torn or does not fit the flow
        └── CheckpointError   the checkpoint belongs to another flow or is damaged

A message says what is expected, what it got, and the likely fix, and names the step and the line of the
user's file that made it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any


class PenstockError(Exception):
    """The base of all of them."""


class FlowError(PenstockError):
    """The flow is wrong. Raised while it is built, before anything runs."""


class NameTaken(FlowError):
    """Two things share a name that must be unique."""


class UnknownName(FlowError):
    """A name that stands for nothing."""


class SchemaError(FlowError):
    """A field is missing, a type does not fit, or a schema cannot be read."""


class ExpressionError(FlowError):
    """An expression that cannot be read or typed. Where it could not be read, `at` is the position in its text, and `reason` why."""

    at: int | None = None
    reason: str = ""


class PatternError(FlowError):
    """A pattern that cannot be read. `line` and `column` say where in its text, both from 1; 0 where that is not known."""

    line: int = 0
    column: int = 0


class SqlError(FlowError):
    """A statement that cannot be read or planned. `line` and `column` say where in its text, both from 1, and `reason` why."""

    line: int = 0
    column: int = 0
    reason: str = ""

    def _render_traceback_(self) -> list[str]:
        """What a notebook shows below its cell: the statement and the place; the frames of the planner say nothing more."""
        return [f"{type(self).__name__}: {self}"]


class LoopError(FlowError):
    """Steps feed each other in a circle and no feedback edge says where a round ends."""


class CaptureError(FlowError):
    """A function that holds something which cannot travel to a worker."""


class OptionError(PenstockError, ValueError):
    """An option of a run or of a command is unknown, unreadable, or does not go with another."""


class NotYet(PenstockError):
    """What was asked is sound, but this version does not have it."""


class Impossible(PenstockError):
    """What was asked cannot work here; the message says why."""


class SetupError(PenstockError):
    """The machine lacks something a run needs."""


class RunError(PenstockError):
    """A running flow had to stop."""


class CallError(RunError):
    """A call of a function was not answered: it failed, it took too long, or there was no room for it."""


class StateError(RunError):
    """Keyed state is missing, torn, or does not fit the flow."""


class DeliveryError(RunError):
    """A sink and the checkpoint do not fit together, or another driver has taken over; going on could lose or double."""


class CheckpointError(RunError):
    """The checkpoint belongs to another flow, or is damaged."""


class RulesError(RunError):
    """Rules that follow from each other did not come to rest."""


@dataclass(frozen=True)
class Failure:
    """What a worker knows about a record that broke a step; plain values, so that it can travel.

    `stream`, `partition` and `number` tell which record of the stage's input it is, where that is known, and
    `origin` how that one reads.
    """

    step: str
    error: str
    record: str
    position: str
    traceback: str
    line: str = ""
    stream: str = ""
    partition: int = -1
    number: int = -1
    origin: str = ""

    def as_dict(self) -> dict[str, Any]:
        """The failure as plain values, ready for JSON."""
        return asdict(self)


class StepError(RunError):
    """The user's own code failed on a record.

    The text is the user's traceback, with the step's name, the record and its position.
    """

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(self._text())

    def _text(self) -> str:
        f = self.failure
        made = f" (made at {f.line})" if f.line else ""
        return (
            f"step {f.step!r}{made} failed: {f.error}\n"
            f"  record:   {f.record}\n"
            f"{f'  made of:  {f.origin}{chr(10)}' if f.origin not in ('', f.record) else ''}"
            f"  position: {f.position}\n"
            f"{f.traceback}"
        )


def nearest(name: str, known: Iterable[str], limit: int = 3) -> str:
    """A hint that lists the closest known names, or all of them when none is close. Names that begin with two underscores are Penstock's own.

    >>> nearest("wrod", ["word", "count", "__seq"])
    "did you mean 'word'? (there are: 'word', 'count')"
    """
    names = [name for name in known if not name.startswith("__")]
    if not names:
        return "there are none"
    close = difflib.get_close_matches(name, names, limit, 0.6) or [n for n in names if n.lower() == name.lower()]
    listed = ", ".join(repr(n) for n in names[:20]) + (f" and {len(names) - 20} more" if len(names) > 20 else "")
    if not close:
        return f"there are: {listed}"
    guess = " or ".join(repr(n) for n in close)
    return f"did you mean {guess}?" + (f" (there are: {listed})" if len(names) <= 20 else "")
