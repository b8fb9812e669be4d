"""A condition of the user's own that ends a live run; all others are options of the run (`machine.Course`)."""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import OptionError
from penstock.live.report import BatchReport

StopTest = Callable[[BatchReport], bool]
"""Gets the report of each batch and says whether the run ends."""


def check_stop_test(test: StopTest | None) -> None:
    """Raises OptionError for what is no function."""
    if test is not None and not callable(test):
        raise OptionError(f"until is a function of a batch's report that says whether to stop, got {test!r}")
