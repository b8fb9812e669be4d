"""Logs: one line per event on standard error, for people or, on demand, as JSON for programs."""

from __future__ import annotations

import json
import logging
import sys
from datetime import datetime
from typing import IO, Any

from penstock.errors import StepError
from penstock.kernels.log_levels import JsonLines, fields_of
from penstock.live.report import BatchReport

LOG = logging.getLogger("penstock")


class HumanLines(logging.Formatter):
    """`12:00:01 INFO started flow=word-count mode=live`."""

    def format(self, record: logging.LogRecord) -> str:
        """The time, the level, the event, and its fields."""
        fields = " ".join(f"{k}={_short(v)}" for k, v in fields_of(record).items())
        time = datetime.fromtimestamp(record.created).astimezone().strftime("%H:%M:%S")
        line = f"{time} {record.levelname} {record.getMessage()} {fields}".rstrip()
        return f"{line}\n{self.formatException(record.exc_info)}" if record.exc_info else line


def configure(level: str = "warning", *, as_json: bool = False, stream: IO[str] | None = None) -> None:
    """Sends Penstock's log to standard error. Calling it again replaces what was set before."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if as_json else HumanLines())
    LOG.handlers = [handler]
    LOG.setLevel(level.upper())
    LOG.propagate = False
    logging.getLogger("py4j").setLevel(logging.CRITICAL)  # it logs the user's errors a second time, as a wall


def event(name: str, *, level: int = logging.INFO, **fields: Any) -> None:
    """Logs an event with its fields."""
    LOG.log(level, name, extra={"fields": fields})


def log_batches(flow: str) -> Any:
    """An observer that logs each batch."""

    def observe(report: BatchReport) -> None:
        event("batch", flow=flow, **batch_fields(report))

    return observe


def batch_fields(report: BatchReport) -> dict[str, Any]:
    """A batch as the fields of an event.

    >>> batch_fields(BatchReport(3, {"lines": 10}, {"out": (4, 4)}, {"trigger": 0.5}))["rows"]
    10
    """
    made = report.as_dict()
    phases = made.pop("seconds")
    return {"batch": report.batch, "rows": report.rows_in, "seconds": round(report.total, 4), "phases": phases, **made}


def failure_fields(error: BaseException) -> dict[str, Any]:
    """What ended a flow as the fields of an event; a failed step with its record, position and traceback."""
    step = error.failure.as_dict() if isinstance(error, StepError) else {}
    return {**step, "error": type(error).__name__, "message": str(error)}


def log_failure(error: BaseException, **fields: Any) -> None:
    """Logs what ended a flow."""
    event("failed", level=logging.ERROR, **{**fields, **failure_fields(error)})


def _short(value: object) -> str:
    text = json.dumps(value, default=str) if isinstance(value, dict | list) else str(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
