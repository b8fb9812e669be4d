"""A batch that is committed stays so, whatever becomes of what is shown of it."""

from __future__ import annotations

import logging
from functools import partial
from pathlib import Path

import pytest

from penstock.jobs.manager.insight.looking import tell
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.kernels.counts import PassCounts
from penstock.live.sampling import Sampler


def test_what_cannot_be_shown_ends_no_batch(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "job").touch()
    sampler = Sampler(tell=partial(tell, JobDirectory(tmp_path / "job")))
    counts = PassCounts(samples={("split", "out", ""): [{"word": "a"}]})
    with caplog.at_level(logging.WARNING, "penstock"):
        sampler.show(7, counts)
    assert "what is looked at in batch 7 cannot be shown" in caplog.text
