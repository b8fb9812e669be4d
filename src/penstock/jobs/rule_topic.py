"""Changes of rules and patterns in a topic of the embedded log: what `penstock rules` reads and writes."""

from __future__ import annotations

import datetime
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import ClassVar

from penstock.errors import FlowError, NameTaken, UnknownName, nearest
from penstock.frontends.patterns.any_text import PatternReader, is_pattern
from penstock.graph.rules.changes import ADD, CHANGE, DISABLE, ENABLE, REMOVE
from penstock.graph.rules.pattern_changes import RUNS
from penstock.graph.rules.rule import Rule
from penstock.graph.rules.text import parse_rule
from penstock.log import Log


@dataclass(frozen=True)
class StoredRule:
    """A rule as the changes of a topic leave it."""

    rule: str
    version: int
    enabled: bool
    open: bool
    text: str
    by: str
    at: str
    removed: bool = False
    function: str = ""


@dataclass(frozen=True)
class PatternOptions:
    """What a change of a pattern says beside its text.

    Args:
        runs: what becomes of its runs: drop, keep or drain; empty is drop.
        function: what is to be done with its matches, for whoever reads them.
    """

    runs: str = ""
    function: str = ""

    def fields(self) -> dict[str, str]:
        """The fields of the change."""
        if self.runs not in ("", *RUNS):
            raise FlowError(f"runs are one of {', '.join(RUNS)}, got {self.runs!r}")
        return {name: value for name, value in vars(self).items() if value}


PLAIN = PatternOptions()


class RuleTopic:
    """The rules and patterns in a topic.

    Args:
        log: the log.
        name: the topic; it is made when the first rule is added.
    """

    def __init__(self, log: Log, name: str) -> None:
        self.log, self.name = log, name

    noun: ClassVar[str] = "rule"
    """What is in the topic, as errors call it."""
    way_out: ClassVar[str] = "`penstock rules change` changes it"

    def check(self, rule: str, text: str) -> None:
        """Refuses a text that cannot be read."""
        check_text(rule, text)

    def history(self, rule: str = "") -> list[StoredRule]:
        """Every version of the rules, oldest first; of one rule where it is named."""
        known: dict[str, StoredRule] = {}
        made: list[StoredRule] = []
        for change in self._changes():
            known[change["rule"]] = after = _after(known.get(change["rule"]), change)
            made.append(after)
        return [each for each in made if rule in ("", each.rule)]

    def rules(self) -> dict[str, StoredRule]:
        """The rules that are there, by name."""
        last = {each.rule: each for each in self.history()}
        return {name: each for name, each in sorted(last.items()) if not each.removed}

    def add(self, rule: str, text: str, by: str, options: PatternOptions = PLAIN) -> StoredRule:
        """Adds a rule, or a pattern.

        Raises:
            NameTaken: it is there.
            ExpressionError: its text cannot be read.
        """
        if rule in self.rules():
            raise NameTaken(f"{self.noun} {rule!r} is there already; {self.way_out}")
        self.check(rule, text)
        return self._append(rule, ADD, by, text, options)

    def change(
        self, rule: str, text: str, by: str, options: PatternOptions = PLAIN, *, written: bool = False
    ) -> StoredRule:
        """Changes the text of a rule or pattern; one that is `written` in the flow need not be in the topic.

        Raises:
            UnknownName: it is not there.
            ExpressionError: its text cannot be read.
        """
        self._need(rule, written)
        self.check(rule, text)
        return self._append(rule, CHANGE, by, text, options)

    def remove(self, rule: str, by: str, options: PatternOptions = PLAIN, *, written: bool = False) -> StoredRule:
        """Removes a rule or pattern."""
        self._need(rule, written)
        return self._append(rule, REMOVE, by, options=options)

    def enable(
        self, rule: str, by: str, options: PatternOptions = PLAIN, *, enabled: bool, written: bool = False
    ) -> StoredRule:
        """Enables or disables a rule or pattern."""
        self._need(rule, written)
        return self._append(rule, ENABLE if enabled else DISABLE, by, options=options)

    def apply(self, rules: Iterable[Rule], by: str) -> list[StoredRule]:
        """Makes the topic hold these rules and no others; what is as it should be is not touched."""
        known, wanted = self.rules(), {rule.name: rule for rule in rules}
        made = [self._append(name, REMOVE, by) for name in known if name not in wanted]
        for name, rule in wanted.items():
            now = known.get(name)
            if now is None or now.text != str(rule):
                made.append(self._append(name, CHANGE if now else ADD, by, str(rule)))
            if (now is None and not rule.enabled) or (now is not None and now.enabled != rule.enabled):
                made.append(self._append(name, ENABLE if rule.enabled else DISABLE, by))
        return made

    def _need(self, rule: str, written: bool) -> None:
        known = self.rules()
        if rule not in known and not written:
            raise UnknownName(
                f"{self.noun} {rule!r} is not in the topic {self.name!r}; {nearest(rule, known)}. For one that is written in the flow say --written"
            )

    def _append(
        self, rule: str, op: str, by: str, text: str | None = None, options: PatternOptions = PLAIN
    ) -> StoredRule:
        if not rule:
            raise FlowError(f"a {self.noun} needs a name")
        if self.name not in self.log.topics():
            self.log.create_topic(self.name, 1)
        at = datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds")
        change = {"rule": rule, "op": op, "text": text, "by": by, "at": at, **options.fields()}
        with self.log.producer() as producer:
            list(producer.send_many(self.name, [json.dumps(change).encode()], [rule.encode()]))
        return self.history(rule)[-1]

    def _changes(self) -> list[dict[str, str]]:
        if self.name not in self.log.topics():
            return []
        offsets = self.log.offsets(self.name)
        found = [record for p, (start, _) in offsets.items() for record in self.log.read(self.name, p, start)]
        return [
            record.json()
            for record in sorted(found, key=lambda r: (r.timestamp, r.partition, r.offset))
            if record.value
        ]


def _after(known: StoredRule | None, change: dict[str, str]) -> StoredRule:
    op, version = change.get("op") or CHANGE, 1 + (known.version if known else 0)
    text = change.get("text") or (known.text if known else "")
    enabled = op == ENABLE if op in (ENABLE, DISABLE) else known is None or known.removed or known.enabled
    return StoredRule(
        change["rule"], version, enabled, _is_open(change["rule"], text), text, change.get("by") or "", change.get("at") or "", op == REMOVE,
        change.get("function") or (known.function if known else ""),
    )  # fmt: skip


def check_text(name: str, text: str) -> None:
    """Refuses the text of a rule or pattern that cannot be read.

    Raises:
        FlowError: it cannot be read; the message says what was expected.
    """
    if is_pattern(text):
        PatternReader("type")(name, text)
    else:
        parse_rule(name, text)


def _is_open(name: str, text: str) -> bool:
    if is_pattern(text):
        return False
    try:
        return bool(text) and parse_rule(name, text).is_open
    except FlowError:
        return False


def as_row(rule: StoredRule) -> dict[str, object]:
    """A rule as a row of a listing."""
    return asdict(rule)
