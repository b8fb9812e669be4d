"""A rule of alerts: a measure of jobs, the value from which on it is a matter, for how long, and who gets a notice."""

from __future__ import annotations

import fnmatch
import re
from dataclasses import dataclass
from typing import Literal, get_args
from urllib.parse import urlsplit

from penstock.errors import OptionError

Measure = Literal["lag", "failures", "silence", "late", "dead", "disk"]
"""Records that wait; failures in a row (a held job has failed); seconds without a batch while there is work; late records and dead letters of the
last five minutes, in percent of what was read; the disk of the jobs, in percent."""
MEASURES: tuple[Measure, ...] = get_args(Measure)
Severity = Literal["info", "warning", "critical"]
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
LOG = "log"
MAIL = "mailto:"
MOST_RULES = 1_000
_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,62}")
ADDRESS = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]{0,63}@[A-Za-z0-9][A-Za-z0-9.-]{0,252}")


@dataclass(frozen=True)
class AlertRule:
    """What is watched.

    Attributes:
        name: its name.
        measure: what is measured.
        above: it is a matter when the measure is above this.
        seconds: and has been for so long.
        jobs: a pattern of the names of jobs, `*` for all; the disk has no job.
        to: who gets a notice: `log`, the URL that gets a POST, `mailto:` an address.
        severity: how grave it is.
        silent_until: no notices before this moment, in seconds since 1970; 0 where it is not silenced.
    """

    name: str
    measure: Measure
    above: float
    seconds: float = 0.0
    jobs: str = "*"
    to: tuple[str, ...] = (LOG,)
    severity: Severity = "warning"
    silent_until: float = 0.0

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise OptionError(
                f"the name of an alert has 1 to 63 characters, of a to z, 0 to 9, '.', '_' and '-', got {self.name!r}"
            )
        if self.measure not in MEASURES:
            raise OptionError(f"alert {self.name!r}: expected a measure, {', '.join(MEASURES)}, got {self.measure!r}")
        if self.severity not in SEVERITIES:
            raise OptionError(f"alert {self.name!r}: expected {', '.join(SEVERITIES)}, got {self.severity!r}")
        if not (0.0 <= self.above < 1e15 and 0.0 <= self.seconds <= 604_800.0):
            raise OptionError(
                f"alert {self.name!r}: expected a value of 0 or more, lasting for up to 7 days, got {self.above:g} for {self.seconds:g} s"
            )
        if not 1 <= len(self.to) <= 10 or len(self.jobs) > 200:
            raise OptionError(f"alert {self.name!r}: expected 1 to 10 targets, got {len(self.to)}")
        for target in self.to:
            _check_target(self.name, target)

    def watches(self, job: str) -> bool:
        """Whether it is about a job.

        >>> AlertRule("a", "lag", 100, jobs="team-*").watches("team-count")
        True
        """
        return fnmatch.fnmatchcase(job, self.jobs)

    @property
    def shown_targets(self) -> list[str]:
        """Who gets a notice, without what may be a secret: of a URL its host.

        >>> AlertRule("a", "lag", 100, to=("https://hooks.example.org/T0/secret",)).shown_targets
        ['https://hooks.example.org/...']
        """
        return [f"{urlsplit(t).scheme}://{urlsplit(t).hostname}/..." if "://" in t else t for t in self.to]


def _check_target(name: str, target: str) -> None:
    expected = f"alert {name!r}: expected log, http://..., https://... or mailto:ADDRESS"
    if target == LOG:
        return
    if target.startswith(MAIL):
        if not ADDRESS.fullmatch(target.removeprefix(MAIL)):
            raise OptionError(f"{expected}, got an address that is none")
        return
    try:
        found = urlsplit(target)
        is_url = found.scheme in ("http", "https") and bool(found.hostname) and (found.port or 1) > 0
    except ValueError:
        is_url = False
    if not is_url or len(target) > 2_000 or any(c.isspace() or ord(c) < 32 for c in target):
        raise OptionError(f"{expected}, got something else")
