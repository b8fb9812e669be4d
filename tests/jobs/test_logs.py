"""Logs for people and for programs."""

from __future__ import annotations

import io
import json
import logging

import pytest

from penstock.errors import Failure, StepError
from penstock.jobs.logs import LOG, configure, event, log_batches, log_failure
from penstock.live.report import BatchReport

REPORT = BatchReport(
    3, {"lines": 10}, {"split": (10, 30)}, {"compute": 0.5, "trigger": 0.75}, {"lines": {"records": 1}}
)


@pytest.fixture(autouse=True)
def _restore(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leaves the logger as it was."""
    monkeypatch.setattr(LOG, "handlers", list(LOG.handlers))
    monkeypatch.setattr(LOG, "propagate", LOG.propagate)


def lines(stream: io.StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_a_batch_is_one_line_of_json() -> None:
    out = io.StringIO()
    configure("info", as_json=True, stream=out)
    log_batches("words")(REPORT)
    (made,) = lines(out)
    assert str(made.pop("time")).endswith("Z")
    assert made == {
        "level": "info",
        "event": "batch",
        "flow": "words",
        "batch": 3,
        "rows": 10,
        "seconds": 0.75,
        "phases": {"compute": 0.5, "trigger": 0.75},
        "sources": {"lines": 10},
        "steps": {"split": {"in": 10, "out": 30}},
        "lag": {"lines": {"records": 1}},
    }


def test_a_failed_step_is_told_with_its_record_and_traceback() -> None:
    out = io.StringIO()
    configure("info", as_json=True, stream=out)
    log_failure(StepError(Failure("parse", "ValueError: no", "Row(x=1)", "record 3", "Traceback ...")), flow="words")
    (made,) = lines(out)
    assert (made["event"], made["level"], made["error"], made["flow"]) == ("failed", "error", "StepError", "words")
    assert (made["step"], made["record"], made["position"]) == ("parse", "Row(x=1)", "record 3")


def test_an_exception_of_another_maker_stays_one_line() -> None:
    out = io.StringIO()
    configure("info", as_json=True, stream=out)
    try:
        raise KeyError("x")
    except KeyError:
        LOG.exception("odd %s", "thing")
    (made,) = lines(out)
    assert made["event"] == "odd thing"
    assert "KeyError" in str(made["traceback"])


def test_people_get_a_short_line() -> None:
    out = io.StringIO()
    configure("info", stream=out)
    event("started", flow="words", sent=["helpers"])
    assert out.getvalue().rstrip()[9:] == 'INFO started flow=words sent=["helpers"]'


def test_the_level_holds() -> None:
    out = io.StringIO()
    configure("warning", stream=out)
    event("started", flow="words")
    event("late", level=logging.WARNING, flow="words")
    assert [line.split()[2] for line in out.getvalue().splitlines()] == ["late"]
