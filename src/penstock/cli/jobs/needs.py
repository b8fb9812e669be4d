"""What a job asks for: `--needs pool=NAME`, `cores=N`, `memory=4g`, `priority=N`."""

from __future__ import annotations

import re
from collections.abc import Iterable

from penstock.errors import OptionError

_SIZE = re.compile(r"([1-9][0-9]{0,9})([mgt])b?", re.IGNORECASE)
_UNITS = {"m": 1, "g": 1024, "t": 1024 * 1024}
_NAMES = ("pool", "cores", "memory", "priority")


def needs_of(given: Iterable[str]) -> dict[str, object]:
    """The needs of a job by their names.

    >>> needs_of(["cores=2", "memory=4g"])
    {'cores': 2, 'memory': 4096}
    """
    found: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or name not in _NAMES:
            raise OptionError(f"--needs: expected pool=NAME, cores=N, memory=SIZE or priority=N, got {text!r}")
        found[name] = _read(name, value)
    return found


def _read(name: str, value: str) -> object:
    if name == "pool":
        return value
    if name == "memory":
        return mebibytes("--needs memory", value)
    try:
        return int(value)
    except ValueError:
        raise OptionError(f"--needs {name}: expected a whole number, got {value!r}") from None


def mebibytes(flag: str, text: str) -> int | None:
    """A size in MiB; None for no text.

    >>> mebibytes("--memory", "1.5g")
    Traceback (most recent call last):
    penstock.errors.OptionError: --memory: expected a size such as 512m or 4g, got '1.5g'
    """
    if not text:
        return None
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise OptionError(f"{flag}: expected a size such as 512m or 4g, got {text!r}")
    return int(found[1]) * _UNITS[found[2].lower()]
