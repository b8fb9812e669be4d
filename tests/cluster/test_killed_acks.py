"""Executors of a real cluster killed in the middle of a batch of a topology with acks. In every run `tests/e2e/test_kill_workers.py` does so with workers of one machine."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cluster.conftest import Cluster
from tests.e2e import test_kill_partitioned
from tests.e2e.test_kill_workers import results

pytestmark = [pytest.mark.cluster, pytest.mark.slow, pytest.mark.timeout(400)]


def test_an_executor_that_is_killed_loses_and_repeats_nothing(cluster: Cluster, tmp_path: Path) -> None:
    """One in each bolt: what other tasks had written for the next stage is lost with it. All is as in a run in which nobody was killed."""
    killed = results(tmp_path / "killed", "twice@7 sum@31", cluster.url, "executor")
    assert killed == results(tmp_path / "whole", "", cluster.url)


def test_executors_that_read_partitions_are_killed(cluster: Cluster, tmp_path: Path) -> None:
    """Every range is acked, and the sink has what an uninterrupted run has."""
    kills = ("read@a2", "once@b5")
    code = test_kill_partitioned.start(tmp_path, " ".join(kills), master=cluster.url, what="executor")
    assert code == 0, (tmp_path / "output").read_text()
    test_kill_partitioned.check(tmp_path, *kills)
