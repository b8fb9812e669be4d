"""How much processes of a run log, and how their lines look; in the driver and in its workers, which import this with every task."""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

ROOT = "root"
_set: dict[str, str] = {}


class JsonLines(logging.Formatter):
    """One JSON object per line: `time`, `level`, `event`, then the event's own fields."""

    def format(self, record: logging.LogRecord) -> str:
        """The event as one line of JSON."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        made = {"time": time, "level": record.levelname.lower(), "event": record.getMessage(), **fields_of(record)}
        if record.exc_info:
            made["traceback"] = self.formatException(record.exc_info)
        return json.dumps(made, default=str)


class NamedJsonLines(JsonLines):
    """The same with the name of the logger, for those of libraries and of the user."""

    def format(self, record: logging.LogRecord) -> str:
        """The event as one line of JSON, with its logger."""
        record.fields = {"logger": record.name, **fields_of(record)}
        return super().format(record)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The fields of an event; a record of another maker has none."""
    fields: dict[str, Any] = getattr(record, "fields", {})
    return fields


def set_levels(levels: Mapping[str, str], defaults: Mapping[str, str] | None = None) -> bool:
    """Has loggers of this process log from a level on, by their names; those that were set before and are not named go back to their default.

    Where nobody has said where lines go, they go to standard error, as JSON. Asking for what is set already costs a comparison.

    Returns:
        Whether anything changed.

    >>> set_levels({"my.flow": "debug"}), logging.getLogger("my.flow").level
    (True, 10)
    >>> set_levels({}), logging.getLogger("my.flow").level
    (True, 0)
    """
    if _set == levels:
        return False
    usual = {ROOT: "warning", **(defaults or {})}
    for name in _set.keys() | levels.keys():
        logging.getLogger(None if name == ROOT else name).setLevel(levels.get(name, usual.get(name, "notset")).upper())
    _set.clear()
    _set.update(levels)
    root = logging.getLogger()
    if levels and not root.handlers:
        handler = logging.StreamHandler(sys.stderr)
        handler.setFormatter(NamedJsonLines())
        root.addHandler(handler)
    return True
