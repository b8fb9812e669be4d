"""The alerts of a manager: its rules in the database, a look at all jobs every few seconds, and the notices that follow."""

from __future__ import annotations

import json
import logging
import threading
import time
from dataclasses import asdict, dataclass, field, replace

from penstock.errors import OptionError, PenstockError, UnknownName
from penstock.jobs.manager.alerts.measures import STRETCH, disk_used, measures_of
from penstock.jobs.manager.alerts.notify import Notifier
from penstock.jobs.manager.alerts.rule import MOST_RULES, AlertRule, Measure
from penstock.jobs.manager.alerts.watch import MACHINE, AlertWatch, Notice
from penstock.jobs.manager.manager import Manager

log = logging.getLogger("penstock")
LOOK = 5.0
"""Seconds between two looks."""
LONGEST_SILENCE = 30 * 86_400.0


@dataclass
class AlertCenter:
    """Watches the jobs of a manager. What fires is not kept: after a restart of the server its notice is sent again, once it has lasted."""

    manager: Manager
    notifier: Notifier = field(default_factory=Notifier)
    watch: AlertWatch = field(default_factory=AlertWatch)
    _turn: threading.Lock = field(default_factory=threading.Lock)

    def rules(self) -> list[AlertRule]:
        """All rules, by name."""
        with self.manager.records.database.reads() as found:
            return [_rule(text) for (text,) in found.execute("select rule from alerts order by name")]

    def put(self, rule: AlertRule, actor: str) -> None:
        """Keeps a rule, in place of one of the same name."""
        if len(self.rules()) >= MOST_RULES:
            raise OptionError(f"there are {MOST_RULES:,} alerts already; remove some")
        with self.manager.records.database.changes() as found:
            found.execute(
                "insert into alerts values (?, ?) on conflict (name) do update set rule = excluded.rule",
                (rule.name, json.dumps(asdict(rule))),
            )
        self.manager.records.note(actor, "alert", rule.name, f"{rule.measure} above {rule.above:g} of {rule.jobs}")

    def silence(self, name: str, seconds: float, actor: str) -> AlertRule:
        """Sends no notices of an alert for so many seconds; 0 ends the silence. What fires is shown all the same. Raises UnknownName."""
        if not 0.0 <= seconds <= LONGEST_SILENCE:
            raise OptionError(f"an alert is silent for up to {LONGEST_SILENCE / 86_400:g} days, got {seconds:g} s")
        found = next((rule for rule in self.rules() if rule.name == name), None)
        if found is None:
            raise UnknownName(f"there is no alert {name!r}")
        made = replace(found, silent_until=time.time() + seconds if seconds else 0.0)
        with self.manager.records.database.changes() as opened:
            opened.execute("update alerts set rule = ? where name = ?", (json.dumps(asdict(made)), name))
        self.manager.records.note(actor, "silence alert", name, f"for {seconds:g} s")
        return made

    def remove(self, name: str, actor: str) -> None:
        """Forgets a rule; raises UnknownName."""
        with self.manager.records.database.changes() as found:
            if found.execute("delete from alerts where name = ?", (name,)).rowcount == 0:
                raise UnknownName(f"there is no alert {name!r}")
        self.manager.records.note(actor, "remove alert", name)

    def firing(self) -> list[Notice]:
        """What is a matter now."""
        with self._turn:
            return sorted(self.watch.firing.values(), key=lambda notice: (notice.rule, notice.job))

    def look(self, now: float) -> list[Notice]:
        """Looks once, and sends the notices."""
        rules = self.rules()
        with self._turn:
            if not rules and not self.watch.firing:
                return []
            notices = self.watch.look(rules, self._measures(now), now)
        if self.manager.leads:
            self._tell(rules, notices)
        return notices

    def _tell(self, rules: list[AlertRule], notices: list[Notice]) -> None:
        """What every manager sees, the one that leads tells."""
        for notice in notices:
            if notice.job:
                self.manager.records.happened(notice.job, f"alert {notice.what}", str(notice), self.manager.lease.epoch)
        self.notifier.tell([rule for rule in rules if rule.silent_until <= time.time()], notices)

    def _measures(self, now: float) -> dict[str, dict[Measure, float]]:
        manager = self.manager
        made: dict[str, dict[Measure, float]] = {
            state.job.name: measures_of(state, manager.history.summary(state.job.name, STRETCH, now), now)
            for state in manager.last_states()
        }
        return {**made, MACHINE: {"disk": disk_used(manager.root)}}

    def run(self, stopping: threading.Event) -> None:
        """Looks again and again, until it is told to stop."""
        while not stopping.wait(LOOK):
            try:
                self.look(time.time())
            except (PenstockError, OSError) as error:
                log.warning("alerts were not looked at: %s", error)
            except Exception:  # whatever it is, the next look must come
                log.exception("alerts were not looked at")


def _rule(text: str) -> AlertRule:
    found = json.loads(text)
    return AlertRule(**{**found, "to": tuple(found["to"])})
