"""What to do with a record that a step cannot take."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

from penstock.errors import FlowError, nearest
from penstock.graph import types as t
from penstock.graph.duration import Span, micros, shown
from penstock.graph.schema import Schema
from penstock.graph.spelling import spelled

FAIL, DEAD_LETTER, SKIP = "fail", "dead_letter", "skip"
ACTIONS = (FAIL, DEAD_LETTER, SKIP)
DEAD = Schema(
    (
        t.Field("id", t.STRING),
        t.Field("time", t.TIMESTAMP),
        t.Field("flow", t.STRING),
        t.Field("step", t.STRING),
        t.Field("cause", t.STRING),
        t.Field("traceback", t.STRING),
        t.Field("record", t.STRING),
        t.Field("position", t.STRING),
        t.Field("batch", t.BIGINT),
        t.Field("payload", t.STRING),
    )
)
"""A dead letter. `record` is the record as text, `payload` its values as JSON, from which it can be replayed."""


@dataclass(frozen=True)
class OnError:
    """What happens to a record that a step fails on: first so many retries, then the action.

    >>> str(OnError("dead_letter", retries=3, backoff=100_000))
    '3 retries (100ms, doubling), then dead_letter'
    """

    action: str
    retries: int = 0
    backoff: int = 0

    def __str__(self) -> str:
        again = f"{self.retries} retries ({shown(self.backoff)}, doubling), then " if self.retries else ""
        return f"{again}{self.action}"


Policy: TypeAlias = str | OnError
"""An error policy as the user writes it: a word, or what `retry` returns."""


@spelled
def retry(times: int, backoff: Span = "100ms", then: str = FAIL) -> OnError:
    """An error policy that tries a record again, with a pause that doubles, before another policy decides.

    Args:
        times: how often.
        backoff: the first pause.
        then: what is done when none helps: "fail", "dead_letter" or "skip".

    Returns:
        The policy, for `on_error`.

    Raises:
        FlowError: the number or the pause is not one, or there is no such policy.

    >>> import penstock as ps
    >>> ps.retry(3, "1s", then="skip").backoff
    1000000
    """
    if not isinstance(times, int) or times < 1:
        raise FlowError(f"retry needs a number of times, got {times!r}")
    return replace(on_error_of(then), retries=times, backoff=micros(backoff, "the backoff of a retry"))


def on_error_of(given: Policy) -> OnError:
    """A policy from what the user wrote: a word, or what `retry` returns."""
    if isinstance(given, OnError):
        return given
    if given not in ACTIONS:
        raise FlowError(f"no error policy {given!r}; {nearest(str(given), ACTIONS)}, or ps.retry(times, backoff)")
    return OnError(str(given))
