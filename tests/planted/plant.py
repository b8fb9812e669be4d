"""How a bug is planted: a small patch of Penstock, and the check that must fail on it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

Patch = Callable[[pytest.MonkeyPatch], None]


@dataclass(frozen=True)
class Room:
    """What a check may use; Spark and Kafka are there only for the bugs that need them."""

    path: Path
    spark: Any = None
    kafka: Any = None


Check = Callable[[Room], None]


@dataclass(frozen=True)
class Bug:
    """A bug by name, the patch that plants it, the check that must catch it, and what the failed check says."""

    name: str
    patch: Patch
    check: Check
    says: str


def function(right: Any, wrong: Callable[..., Any]) -> Patch:
    """Replaces a right function by a wrong one, wherever a module has a name for it; it gets the right one first."""

    def patch(monkeypatch: pytest.MonkeyPatch) -> None:
        for module in [m for n, m in sys.modules.items() if n.split(".")[0] in ("penstock", "tests")]:
            for name in [n for n, value in vars(module).items() if value is right]:
                monkeypatch.setattr(module, name, partial(wrong, right))

    return patch


def method(owner: type, name: str, wrong: Callable[..., Any]) -> Patch:
    """Replaces a right method by a wrong one."""
    return lambda monkeypatch: monkeypatch.setattr(owner, name, wrong)


def nothing(*_: object, **__: object) -> None:
    """What a forgotten step does."""
