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
from penstock.jobs.manager.store.conditions import check_expected
from penstock.jobs.manager.store.database import Connection

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
            return list(_rules(found).values())

    def put(self, rule: AlertRule, actor: str) -> None:
        """Keeps a rule, in place of one of the same name."""
        self.notifier.check(rule)
        about = f"{rule.measure} above {rule.above:g} of {rule.jobs}"
        with self.manager.records.noted(actor, "alert", rule.name, about) as found:
            known = _rules(found)
            _check_expected(known, rule.name)
            if rule.name not in known and len(known) >= MOST_RULES:
                raise OptionError(f"there are {MOST_RULES:,} alerts already; remove some")
            _keep(found, rule)

    def silence(self, name: str, seconds: float, actor: str) -> AlertRule:
        """Sends no notices of an alert for so many seconds; 0 ends the silence. What fires is shown all the same. Raises UnknownName."""
        if not 0.0 <= seconds <= LONGEST_SILENCE:
            raise OptionError(f"an alert is silent for up to {LONGEST_SILENCE / 86_400:g} days, got {seconds:g} s")
        with self.manager.records.noted(actor, "silence alert", name, f"for {seconds:g} s") as found:
            rule = _known(found, name)
            made = replace(rule, silent_until=time.time() + seconds if seconds else 0.0)
            _keep(found, made)
        return made

    def remove(self, name: str, actor: str) -> None:
        """Forgets a rule; raises UnknownName."""
        with self.manager.records.noted(actor, "remove alert", name) as found:
            _known(found, name)
            found.execute("delete from alerts where name = ?", (name,))

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


def _rules(found: Connection) -> dict[str, AlertRule]:
    rows = found.execute("select name, rule from alerts order by name").fetchall()
    return {name: _rule(text) for name, text in rows}


def _known(found: Connection, name: str) -> AlertRule:
    """A rule that is to be changed, as the request at work has seen it."""
    rules = _rules(found)
    _check_expected(rules, name)
    if name not in rules:
        raise UnknownName(f"there is no alert {name!r}")
    return rules[name]


def _check_expected(rules: dict[str, AlertRule], name: str) -> None:
    check_expected("alerts", name, asdict(rules[name]) if name in rules else None)


def _keep(found: Connection, rule: AlertRule) -> None:
    found.execute(
        "insert into alerts values (?, ?) on conflict (name) do update set rule = excluded.rule",
        (rule.name, json.dumps(asdict(rule))),
    )


def _rule(text: str) -> AlertRule:
    found = json.loads(text)
    return AlertRule(**{**found, "to": tuple(found["to"])})
