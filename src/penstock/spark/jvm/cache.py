"""Small answers that take long to find out, kept in the cache directory from one start to the next."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path

from penstock.storage.private import make_private


def cache_dir() -> Path:
    """Where Penstock keeps what can be made again: `PENSTOCK_CACHE`, or `penstock` in the user's cache folder."""
    named = os.environ.get("PENSTOCK_CACHE")
    if named:
        return Path(named).expanduser().absolute()
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser().absolute() / "penstock"


def recall(name: str) -> list[object]:
    """The answer that was kept under a name, such as `launch/3f2a.json`; an empty list when there is none that can be read."""
    try:
        found = json.loads((cache_dir() / name).read_text())
    except (OSError, ValueError):
        return []
    return found if isinstance(found, list) else []


def remember(name: str, answer: list[object]) -> None:
    """Keeps an answer in one step. A directory that cannot be written costs the next start its time, no more."""
    file = cache_dir() / name
    with contextlib.suppress(OSError):
        make_private(file.parent)
        aside = file.with_suffix(f".{os.getpid()}")
        aside.write_text(json.dumps(answer))
        aside.replace(file)
