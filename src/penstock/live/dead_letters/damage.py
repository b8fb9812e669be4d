"""Damaged files of dead letters: an error that names the file, and says what can be done."""

from __future__ import annotations

import json
from typing import Any

from penstock.errors import CheckpointError
from penstock.location import Address
from penstock.storage import open_storage


def read_requests(folder: Address, name: str) -> Any:
    """What an object of replays holds as JSON.

    Raises:
        CheckpointError: it is damaged.
    """
    return _parsed(open_storage(folder).read(name), f"{folder / name}", "the replays that it asks for")


def read_letters(content: bytes, address: Address) -> list[dict[str, Any]]:
    """The dead letters that the content of an object holds as lines of JSON.

    Raises:
        CheckpointError: one of them is damaged.
    """
    return [_letter(line, f"{address}, line {number},") for number, line in enumerate(content.splitlines(), 1)]


def _letter(line: bytes, where: str) -> dict[str, Any]:
    found = _parsed(line, where, "that dead letter")
    missing = [part for part in ("id", "step", "payload") if not isinstance(found, dict) or part not in found]
    if missing:
        raise _damaged(where, f"expected a dead letter with {', '.join(missing)}", "that dead letter")
    made: dict[str, Any] = found
    return made


def _parsed(text: bytes, where: str, lost: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(where, str(error), lost) from None


def _damaged(where: str, why: str, lost: str) -> CheckpointError:
    return CheckpointError(f"{where} is damaged ({why}); restore it, or remove it and go on without {lost}")
