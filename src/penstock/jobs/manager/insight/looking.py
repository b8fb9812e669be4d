"""The driver's side of looking at a job: it has sampled, traced and profiled what somebody looks at, and shows what came of it."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from penstock.jobs.manager.processes.directory import PROFILE, SAMPLES, TRACE, JobDirectory
from penstock.kernels.stacks import StackSampler
from penstock.live.sampling import SAMPLER, Sampled, SampleWish, Seen

MOST_STACKS = 2_000
"""So many stacks of the driver, and of its workers, are shown."""


@dataclass
class Profiling:
    """Where the time of a driver and of its workers goes, since somebody began to look."""

    since: float = 0.0
    driver: Counter[str] = field(default_factory=Counter)
    workers: Counter[str] = field(default_factory=Counter)
    sampler: StackSampler | None = None

    def follow(self, directory: JobDirectory, is_wanted: bool) -> None:
        """Begins, goes on, or ends, and shows what was seen so far."""
        if is_wanted and self.sampler is None:
            self.since, self.driver, self.workers = time.time(), Counter(), Counter()
            self.sampler = StackSampler().start()
        elif self.sampler is not None:
            self.driver.update(self.sampler.taken())
            if not is_wanted:
                self.sampler.stop()
                self.sampler = None
            directory.write_shown(PROFILE, self.as_dict())

    def as_dict(self) -> dict[str, Any]:
        """What was seen, as plain values."""
        parts = {"driver": self.driver, "workers": self.workers}
        shown = {name: dict(found.most_common(MOST_STACKS)) for name, found in parts.items()}
        return {"since": self.since, "seconds": round(time.time() - self.since, 1), **shown}


PROFILING = Profiling()
"""That of this process: a driver runs one flow."""


def look_at_streams(directory: JobDirectory) -> None:
    """Has that sampled, traced and profiled which somebody looks at."""
    found = directory.watch()
    wishes = found.get("wishes")
    trace, profile = _until(found, "trace"), _until(found, "profile")
    if wishes or trace or profile or SAMPLER.wanted() or SAMPLER.wishes or PROFILING.sampler is not None:
        SAMPLER.tell = partial(tell, directory)
        SAMPLER.look_at([SampleWish(**wish) for wish in wishes or ()], trace, profile)  # type: ignore[attr-defined]  # the manager wrote it
        PROFILING.follow(directory, profile > time.time())


def _until(found: Mapping[str, object], name: str) -> float:
    """Until when something is looked at; 0 where that is over."""
    until = found.get(name)
    return float(until) if isinstance(until, int | float) and until > time.time() else 0.0


def tell(directory: JobDirectory, batch: int, found: Seen) -> None:
    """Shows what a batch has of that which is looked at."""
    PROFILING.workers.update(found.stacks)
    if found.samples:
        directory.write_shown(SAMPLES, {"batch": batch, "samples": shown(found.samples)})
    if found.traces:
        directory.write_shown(TRACE, {"batch": batch, "traces": found.traces})


def shown(sampled: Sampled) -> list[dict[str, object]]:
    """Samples as plain values."""
    return [{"step": s, "port": p, "where": w, "rows": rows} for (s, p, w), rows in sampled.items()]
