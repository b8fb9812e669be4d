"""Alerts as they come and go, as a pure function: rules, measures and the time go in, notices come out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from penstock.jobs.manager.alerts.rule import AlertRule, Measure, Severity

MACHINE = ""
"""The job of measures that have none."""
Measures = Mapping[str, Mapping[Measure, float]]
"""The measures of each job; what is not known is not there."""


@dataclass(frozen=True)
class Notice:
    """An alert begins or is over."""

    rule: str
    job: str
    what: Literal["firing", "resolved"]
    severity: Severity
    measure: Measure
    value: float
    above: float
    since: float
    time: float

    def __str__(self) -> str:
        where = f"job {self.job}" if self.job else "the machine"
        words = {
            "lag": f"{self.value:,.0f} records wait",
            "failures": f"{self.value:.0f} failures in a row",
            "silence": f"no batch for {self.value:,.0f} s",
            "late": f"{self.value:.1f} % of the records are late",
            "dead": f"{self.value:.1f} % of the records are dead letters",
            "disk": f"the disk is {self.value:.0f} % full",
        }[self.measure]
        return f"{self.what}: {self.rule}, {where}: {words} (limit {self.above:g})"


@dataclass
class AlertWatch:
    """What is above its value, since when, and what people have been notified of."""

    above: dict[tuple[str, str], float] = field(default_factory=dict)
    firing: dict[tuple[str, str], Notice] = field(default_factory=dict)

    def look(self, rules: Iterable[AlertRule], measures: Measures, now: float) -> list[Notice]:
        """Looks at all measures; the notices of what begins and what is over, each once."""
        found = [
            (rule, job, values[rule.measure])
            for rule in rules
            for job, values in measures.items()
            if rule.measure in values and (job == MACHINE or rule.watches(job))
        ]
        held = {(rule.name, job) for rule, job, value in found if value > rule.above}
        self.above = {key: self.above.get(key, now) for key in held}
        begun = [self._begin(rule, job, value, now) for rule, job, value in found if self._is_due(rule, job, now)]
        over = [self._end(key, now) for key in list(self.firing) if key not in held]
        return [*begun, *over]

    def _is_due(self, rule: AlertRule, job: str, now: float) -> bool:
        since = self.above.get((rule.name, job))
        return since is not None and now - since >= rule.seconds and (rule.name, job) not in self.firing

    def _begin(self, rule: AlertRule, job: str, value: float, now: float) -> Notice:
        since = self.above[rule.name, job]
        made = Notice(rule.name, job, "firing", rule.severity, rule.measure, value, rule.above, since, now)
        self.firing[rule.name, job] = made
        return made

    def _end(self, key: tuple[str, str], now: float) -> Notice:
        before = self.firing.pop(key)
        return Notice(
            before.rule, before.job, "resolved", before.severity, before.measure, 0.0, before.above, before.since, now
        )
