"""The health of a job, by where it is and by what its last minute says."""

from __future__ import annotations

import pytest

from penstock.jobs.manager.insight.health import Signs, judged
from penstock.jobs.manager.store.history import Point

MINUTE = {"span": 60.0, "rows": 6_000.0}


def running(spoke: float = 995.0, failures: int = 0, lag: float = 0.0, **figures: float) -> Signs:
    minute = Point(0.0, {**MINUTE, "lag:records:a": lag, **figures})
    return Signs("running", "ended by signal 9", failures, spoke, 1_000.0, minute)


@pytest.mark.parametrize(
    ("signs", "health", "reason"),
    [
        (running(), "good", "running"),
        (Signs("running", "", 0, 995.0, 1_000.0), "good", "no batch yet"),
        (running(spoke=900.0), "bad", "said nothing for 100 s"),
        (running(failures=1), "warning", "ended by signal 9"),
        (running(dead=61.0), "warning", "61 dead letters"),
        (running(dead=59.0), "good", "running"),
        (running(late=100.0), "warning", "100 late records"),
        (running(shed=100.0), "warning", "100 records shed"),
        (running(lag=6_001.0), "warning", "6,001 records wait"),
        (running(lag=5_999.0), "good", "running"),
        (Signs("waiting", "ended with exit code 1", 1, 0.0, 1_000.0), "bad", "exit code 1"),
        (Signs("held", "", 5, 0.0, 1_000.0), "bad", "its driver failed"),
        (Signs("starting", "", 0, 0.0, 1_000.0), "good", "starting"),
        (Signs("stopped", "", 0, 0.0, 1_000.0), "off", "stopped"),
    ],
)
def test_health_is_a_word_and_a_reason(signs: Signs, health: str, reason: str) -> None:
    found = judged(signs)
    assert found.health == health
    assert reason in found.reason
