"""Rules that change while a flow runs: what a change is, and the rules after changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Protocol

from penstock.errors import FlowError, UnknownName, nearest
from penstock.graph.endpoints.log import RULE_CHANGES
from penstock.graph.expr import ScalarFunction
from penstock.graph.expr.registry import registry_of, with_functions
from penstock.graph.rules.binding import Events, bind_rules
from penstock.graph.rules.rule import Rule, RuleSet
from penstock.graph.rules.text import parse_rule
from penstock.graph.schema import schema_of

CHANGES = RULE_CHANGES
KEPT = schema_of("rule string, text string, enabled boolean, removed boolean, version bigint, by string, at timestamp")
"""The fields of a rule that has changed. Without a text it is as it was written in the flow."""
ADD, CHANGE, REMOVE, ENABLE, DISABLE = "add", "change", "remove", "enable", "disable"
OPS = (ADD, CHANGE, REMOVE, ENABLE, DISABLE)
PUT = (ADD, CHANGE, "insert", "update_after")
GONE = (REMOVE, "delete")
UNCHANGED = ("update_before",)
"""What changelogs of tables say."""


@dataclass(frozen=True)
class ChangedRule:
    """A rule as its last change left it."""

    text: str | None
    enabled: bool
    removed: bool
    version: int
    by: str | None = None
    at: object = None


class ChangeSource(Protocol):
    """What changes are made over: rules, or patterns."""

    def changed(self, name: str, kept: ChangedRule | None, change: Mapping[str, object]) -> ChangedRule | None:
        """What a change makes of one of them; None where it changes nothing."""


@dataclass(frozen=True)
class RuleSource:
    """The rules of a flow as they were written, over which changes are made.

    Args:
        rules: the rules.
        events: the streams, all of which are known: a change makes no new ones.
        functions: the Python functions that rules may call by name.
        is_keyed: whether rules may switch others.
    """

    rules: RuleSet
    events: Events
    functions: tuple[ScalarFunction, ...] = ()
    is_keyed: bool = False

    def changed(self, name: str, kept: ChangedRule | None, change: Mapping[str, object]) -> ChangedRule | None:
        """What a change makes of a rule; None where it changes nothing.

        Args:
            name: the rule.
            kept: as earlier changes left it; None before the first.
            change: the fields of the change.

        Raises:
            FlowError: the change is none, or its text does not fit the streams.
            UnknownName: the rule is not there.
        """
        op = str(change.get("op") or CHANGE)
        if op in UNCHANGED:
            return None
        there = not kept.removed if kept is not None else name in self.rules.by_name
        version = 1 + (kept.version if kept is not None else int(name in self.rules.by_name))
        made = ChangedRule(None, True, False, version, change.get("by"), change.get("at"))  # type: ignore[arg-type]  # a text or None
        if op in PUT:
            text = change.get("text")
            if not isinstance(text, str):
                raise FlowError(f"rule {name!r}: a change has the text of the rule, got {text!r}")
            self.check(name, text)
            return replace(made, text=text, enabled=enabled_after(kept, change.get("enabled")))
        if not there:
            known = [rule.name for rule in self.rules]
            raise UnknownName(f"rule {name!r} is not there, so it cannot be changed by {op!r}; {nearest(name, known)}")
        text = None if kept is None else kept.text
        if op in GONE:
            return replace(made, text=text, removed=True)
        if op not in (ENABLE, DISABLE):
            raise FlowError(f"rule {name!r}: a change is one of {', '.join(OPS)}, got {op!r}")
        return replace(made, text=text, enabled=op == ENABLE)

    def check(self, name: str, text: str) -> None:
        """Refuses a text that cannot be read, or does not fit the streams."""
        rule = self.parsed(name, text)
        if not self.is_keyed and (rule.is_switch or not rule.active):
            raise FlowError(
                f"rule {name!r}: rules that activate others are switched for each key, and the step has none"
            )
        bind_rules(RuleSet((rule,)), self.events)

    def parsed(self, name: str, text: str) -> Rule:
        """A rule from its text."""
        registry = registry_of(self.functions)
        return _parsed(name, text).changed(lambda expr: with_functions(expr, registry) if registry else expr)

    def after(self, changes: Iterable[tuple[str, ChangedRule]]) -> RuleSet:
        """The rules after changes: those of the flow in their order, then those that were added, by name."""
        changed = dict(changes)
        made = [self._one(rule, changed.pop(rule.name, None)) for rule in self.rules]
        made += [self._one(None, changed[name], name) for name in sorted(changed)]
        return RuleSet(tuple(rule for rule in made if rule is not None))

    def _one(self, rule: Rule | None, changed: ChangedRule | None, name: str = "") -> Rule | None:
        if changed is None or changed.removed:
            return rule if changed is None else None
        found = rule if changed.text is None else self.parsed(rule.name if rule else name, changed.text)
        return None if found is None else replace(found, enabled=changed.enabled, version=changed.version)


@lru_cache(maxsize=1 << 16)
def _parsed(name: str, text: str) -> Rule:
    """A rule from its text, which is read once however often other rules change."""
    return parse_rule(name, text)


def enabled_after(kept: ChangedRule | None, given: object) -> bool:
    """Whether a rule with a new text acts: as the change says, or else as before."""
    if isinstance(given, bool):
        return given
    return kept is None or kept.removed or kept.enabled
