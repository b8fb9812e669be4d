"""Many cases of one kind: some in every test run, all in the slow tier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def some_now(cases: Iterable[Any], many: int) -> list[Any]:
    """Cases of a test as parameters: the first so many run in every test run, the others in the slow tier."""
    return [_parameter(case, marks=() if at < many else pytest.mark.slow) for at, case in enumerate(cases)]


def _parameter(case: Any, **about: Any) -> Any:
    return pytest.param(*case, **about) if isinstance(case, tuple) else pytest.param(case, **about)
