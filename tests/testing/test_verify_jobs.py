"""Servers, supervisors and drivers are killed at random: no job is lost, none runs twice at once, what they write is there once."""

from __future__ import annotations

import pytest

from penstock.errors import Impossible
from penstock.testing.servers import postgres_server
from penstock.testing.verify import JobsPlan, verify_jobs


def test_jobs_come_through_ten_kills() -> None:
    found = verify_jobs(JobsPlan(kills=10, jobs=3, spark=0, seed=3))
    assert found.wrong == {"gone": 0, "lost": 0, "duplicate": 0, "strange": 0, "reordered": 0, "twice": 0}
    assert sum(found.kills.values()) == 10
    assert set(found.kills) == {"server", "supervisor", "driver"}
    assert found.records > 100
    assert found.ok
    assert "exactly once, one at a time: yes" in str(found)


@pytest.mark.slow
def test_jobs_of_two_servers_come_through_fifty_kills() -> None:
    with postgres_server() as server:
        found = verify_jobs(JobsPlan(kills=50, jobs=5, spark=0, seed=1, url=server.url))
    assert found.ok, str(found)
    assert found.kills["asleep"] > 0


@pytest.mark.slow
@pytest.mark.spark
def test_jobs_come_through_two_hundred_kills() -> None:
    found = verify_jobs(JobsPlan(kills=200))
    assert found.ok, str(found)


def test_what_cannot_be_done_is_refused() -> None:
    with pytest.raises(Impossible, match="1 or more jobs"):
        JobsPlan(jobs=2, spark=3)
