"""What a process that runs a flow ends with."""

from __future__ import annotations

from penstock.errors import FlowError, Impossible, NotYet, OptionError

FAILED = 1
"""The flow failed while it ran, or could not start; it may work another time."""
BAD_FLOW = 2
"""The flow or an option is wrong; it will not work as it is."""


def code_of(error: BaseException) -> int:
    """2 for a flow or an option that is wrong, 1 for a flow that failed.

    >>> code_of(OptionError("expected a span, got 'x'")), code_of(ConnectionError())
    (2, 1)
    """
    return BAD_FLOW if isinstance(error, FlowError | OptionError | NotYet | Impossible) else FAILED
