"""Alerts as they come and go, as a pure function: rules, measures and the time go in, notices come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from penstock.jobs.manager.alerts.rule import AlertRule, Measure, Severity

MACHINE = ""
"""The job of measures that have none."""
Key = tuple[str, str]
"""The name of a rule, and that of a job."""
Watched = Mapping[Key, tuple[AlertRule, float | None]]
"""The rules that watch jobs, with what was measured."""
Measures = Mapping[str, Mapping[Measure, float]]
"""The measures of each job; what is not known is not there. Of a job that is not watched none is."""
CALM = 60.0
"""An alert is over once it has not been above its value for so many seconds: what comes and goes is told once."""


@dataclass(frozen=True)
class Notice:
    """An alert begins or is over."""

    rule: str
    job: str
    what: Literal["firing", "resolved"]
    severity: Severity
    measure: Measure
    value: float | None
    above: float
    since: float
    time: float

    def __str__(self) -> str:
        where = f"job {self.job}" if self.job else "the machine"
        return f"{self.what}: {self.rule}, {where}: {self._words()} (limit {self.above:g})"

    def _words(self) -> str:
        if self.value is None:
            return "it is watched no more"
        return {
            "lag": f"{self.value:,.0f} records wait",
            "failures": f"{self.value:.0f} failures in a row",
            "silence": f"no batch for {self.value:,.0f} s",
            "late": f"{self.value:.1f} % of the records are late",
            "dead": f"{self.value:.1f} % of the records are dead letters",
            "disk": f"the disk is {self.value:.0f} % full",
        }[self.measure]


@dataclass
class AlertWatch:
    """What is above its value, since when, and what people have been notified of; what fires has the value that it has now."""

    above: dict[Key, float] = field(default_factory=dict)
    firing: dict[Key, Notice] = field(default_factory=dict)
    below: dict[Key, float] = field(default_factory=dict)
    """Since when what fires is not above its value any more."""

    def look(self, rules: Iterable[AlertRule], measures: Measures, now: float) -> list[Notice]:
        """Looks at all measures; the notices of what begins and what is over, each once."""
        watched = {
            (rule.name, job): (rule, values.get(rule.measure))
            for rule in rules
            for job, values in measures.items()
            if values and (job == MACHINE or rule.watches(job))
        }
        self._weigh(watched, now)
        begun = [
            self._begin(rule, key[1], value, now)
            for key, (rule, value) in watched.items()
            if value is not None and self._is_due(rule, key, now)
        ]
        over = [self._end(key, watched, now) for key in list(self.firing) if self._is_over(key, watched, now)]
        return [*begun, *over]

    def _weigh(self, watched: Watched, now: float) -> None:
        """Notes what is above and what is below; where nothing is known, as while a driver starts, all stays as it was."""
        above: dict[Key, float] = {}
        for key, (rule, value) in watched.items():
            is_high = key in self.above if value is None else value > rule.above
            if is_high:
                above[key] = self.above.get(key, now)
                self.below.pop(key, None)
            elif key in self.firing:
                self.below.setdefault(key, now)
            if key in self.firing and value is not None:
                self.firing[key] = replace(self.firing[key], value=value)
        self.above = above

    def _is_due(self, rule: AlertRule, key: Key, now: float) -> bool:
        since = self.above.get(key)
        return since is not None and now - since >= rule.seconds and key not in self.firing

    def _begin(self, rule: AlertRule, job: str, value: float, now: float) -> Notice:
        since = self.above[rule.name, job]
        made = Notice(rule.name, job, "firing", rule.severity, rule.measure, value, rule.above, since, now)
        self.firing[rule.name, job] = made
        return made

    def _is_over(self, key: Key, watched: Watched, now: float) -> bool:
        return key not in watched or now - self.below.get(key, now) >= CALM

    def _end(self, key: Key, watched: Watched, now: float) -> Notice:
        self.below.pop(key, None)
        before = self.firing.pop(key)
        value = before.value if key in watched else None
        return replace(before, what="resolved", value=value, time=now)
