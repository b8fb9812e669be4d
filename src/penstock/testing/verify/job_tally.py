"""What a verification of the server of jobs does, and what it found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any

from penstock.errors import Impossible


@dataclass(frozen=True)
class JobsPlan:
    """What is done. With the URL of a PostgreSQL there are two servers, which are also stopped for a while. `say` is called with the progress."""

    kills: int = 200
    jobs: int = 5
    spark: int = 1
    """How many of the jobs are flows with Spark; the others run on the local host, without a JVM."""
    seed: int = 0
    url: str = ""
    say: Callable[[str], None] = field(default=lambda text: None)
    at_once: int = 3
    """The most kills of a round, one shortly after the other; each round has between one and so many."""
    folder: Path | None = None
    """Where all of it is kept, so that a verification that was broken off goes on; else nothing is kept."""

    def __post_init__(self) -> None:
        if self.kills < 0 or not 0 <= self.spark <= self.jobs or min(self.jobs, self.at_once) < 1:
            raise Impossible(
                "expected 0 or more kills, 1 or more jobs, of these 0 or more with Spark, and 1 or more kills at once, "
                f"got {self.kills}, {self.jobs}, {self.spark}, {self.at_once}"
            )

    @property
    def shape(self) -> dict[str, Any]:
        """What must be the same when it goes on."""
        return {"jobs": self.jobs, "spark": self.spark, "seed": self.seed, "url": self.url}


@dataclass
class Course:
    """How far a verification is."""

    shape: dict[str, Any]
    wanted: dict[str, str]
    """What is wanted of each job: running or paused."""
    kills: dict[str, int] = field(default_factory=dict)
    wishes: int = 0
    held: int = 0
    took: list[float] = field(default_factory=list)
    """Seconds of each round until every job was as it is wanted."""
    seconds: float = 0.0

    @property
    def killed(self) -> int:
        """How many kills there were."""
        return sum(self.kills.values())


@dataclass(frozen=True)
class JobsTally:
    """What was found. `lost`, `duplicate`, `strange`, `reordered` and `twice` must be nothing, and every job must be there."""

    jobs: int
    found: int
    rounds: int
    records: int
    kills: Mapping[str, int]
    wishes: int
    """How often a job was paused, resumed or restarted."""
    held: int
    """How often a job was held after five failures in a row, and let go."""
    seconds: float
    slowest: float
    median: float
    """Seconds until every job was as it is wanted again."""
    lost: int = 0
    duplicate: int = 0
    strange: int = 0
    reordered: int = 0
    twice: int = 0
    """How often a driver met another one of its job."""

    @property
    def wrong(self) -> dict[str, int]:
        """What is not as it must be."""
        counts = ("lost", "duplicate", "strange", "reordered", "twice")
        return {"gone": self.jobs - self.found, **{name: getattr(self, name) for name in counts}}

    @property
    def ok(self) -> bool:
        """Whether all held."""
        return not any(self.wrong.values()) and self.records > 0

    def as_dict(self) -> dict[str, Any]:
        """The tally as plain values."""
        return {**asdict(self), "kills": dict(self.kills), "ok": self.ok}

    def __str__(self) -> str:
        kills = ", ".join(f"{name} {many}" for name, many in sorted(self.kills.items()))
        wrong = ", ".join(f"{many} {name}" for name, many in self.wrong.items())
        return (
            f"jobs: {self.jobs} jobs, {sum(self.kills.values())} kills ({kills}) in {self.rounds} rounds, {self.wishes} wishes, "
            f"{self.records:,} records, {self.seconds:.0f} s\n"
            f"  as wanted after {self.median:.1f} s (median), {self.slowest:.1f} s (slowest); held and let go {self.held} times\n"
            f"  {wrong}\n"
            f"  exactly once, one at a time: {'yes' if self.ok else 'NO'}"
        )


def counted(sent: list[int], parts: list[list[int]]) -> dict[str, int]:
    """What is wrong with what was written.

    >>> counted([0, 1, 2], [[0, 2, 1, 1, 7]])
    {'lost': 0, 'duplicate': 1, 'strange': 1, 'reordered': 1}
    """
    there, known = Counter(n for part in parts for n in part), set(sent)
    return {
        "lost": len(known - there.keys()),
        "duplicate": sum(many - 1 for n, many in there.items() if n in known),
        "strange": sum(many for n, many in there.items() if n not in known),
        "reordered": sum(b < a for part in parts for a, b in pairwise(part)),
    }
