"""A rule, and a set of them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property

from penstock.errors import FlowError, NameTaken
from penstock.graph.expr import Expr, PythonCall, to_text
from penstock.graph.expr.rewrite import each_of
from penstock.graph.rules.actions import Action, Switch
from penstock.graph.rules.interned import InternedValue

IMMEDIATE, DEFERRED = "immediate", "deferred"
"""When a rule acts: with its event, or at the end of the batch."""


@dataclass(frozen=True)
class Rule:
    """On an event, if a condition holds, do actions.

    Args:
        name: the name of the rule.
        on: the event: a stream of the rule set; empty is the stream that the set is applied to.
        condition: what must hold; None is always.
        actions: what it does then, in order.
        priority: rules of a higher priority act first.
        coupling: IMMEDIATE, or DEFERRED to the end of the batch.
        enabled: whether it acts at all.
        active: whether it acts before another rule activates it.
        version: counts the changes of the rule.
        line: where it was written.
    """

    name: str
    on: str = ""
    condition: Expr | None = None
    actions: tuple[Action, ...] = ()
    priority: int = 0
    coupling: str = IMMEDIATE
    enabled: bool = True
    active: bool = True
    version: int = 1
    line: str = field(default="", compare=False)

    @property
    def is_open(self) -> bool:
        """Whether it has effects outside the flow: alerts, posts and calls. A closed rule only makes internal events and rows of tables."""
        return any(action.is_open for action in self.actions)

    @property
    def is_switch(self) -> bool:
        """Whether it activates or deactivates a rule."""
        return any(isinstance(action, Switch) for action in self.actions)

    @property
    def where(self) -> str:
        """The rule as errors call it."""
        return f"rule {self.name!r}{f' ({self.line})' if self.line else ''}"

    def changed(self, change: Callable[[Expr], Expr]) -> Rule:
        """The rule with its expressions changed."""
        condition = None if self.condition is None else change(self.condition)
        return replace(self, condition=condition, actions=tuple(a.changed(change) for a in self.actions))

    def __str__(self) -> str:
        parts = [f"on {self.on}" if self.on else ""]
        parts.append(f"if {to_text(self.condition)}" if self.condition is not None else "")
        parts.append(f"do {', '.join(map(str, self.actions))}")
        parts.append(f"priority {self.priority}" if self.priority else "")
        parts.append("deferred" if self.coupling == DEFERRED else "")
        parts.append("" if self.active else "inactive")
        return " ".join(part for part in parts if part)


def has_functions(expr: Expr) -> bool:
    """Whether an expression calls a Python function."""
    return any(isinstance(each, PythonCall) for each in each_of(expr))


@dataclass(frozen=True, eq=False)
class RuleSet(InternedValue):
    """Rules by name, in the order in which they were written.

    Raises:
        NameTaken: two rules have one name.
        FlowError: what stands among them is no rule.
    """

    rules: tuple[Rule, ...]

    def __post_init__(self) -> None:
        seen: dict[str, Rule] = {}
        for rule in self.rules:
            if not isinstance(rule, Rule):
                raise FlowError(f"a rule is made with ps.rule(...), got {rule!r}")
            if rule.name in seen:
                raise NameTaken(f"{rule.where} must have a name of its own; {seen[rule.name].where} has it")
            seen[rule.name] = rule

    @cached_property
    def digest(self) -> str:
        """Equal for equal sets."""
        return hashlib.blake2b(repr(self.rules).encode(), digest_size=16).hexdigest()

    @property
    def has_switches(self) -> bool:
        """Whether rules activate or deactivate others, or wait to be activated."""
        return any(rule.is_switch or not rule.active for rule in self.rules)

    @cached_property
    def is_plain(self) -> bool:
        """Whether no rule calls a Python function."""
        found: list[Expr] = []
        for rule in self.rules:
            rule.changed(lambda expr: found.append(expr) or expr)  # type: ignore[func-returns-value]  # it looks, and changes nothing
        return not any(map(has_functions, found))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, RuleSet) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    @cached_property
    def by_name(self) -> dict[str, Rule]:
        """The rules by name."""
        return {rule.name: rule for rule in self.rules}

    @property
    def ranked(self) -> list[Rule]:
        """The enabled rules in the order in which they act: the highest priority first, then as written."""
        return sorted((r for r in self.rules if r.enabled), key=lambda rule: -rule.priority)

    def changed(self, change: Callable[[Expr], Expr]) -> RuleSet:
        """The set with the expressions of its rules changed."""
        return RuleSet(tuple(rule.changed(change) for rule in self.rules))

    def __len__(self) -> int:
        return len(self.rules)

    def __iter__(self) -> Iterator[Rule]:
        return iter(self.rules)


def rule_set(rules: Iterable[Rule] | Rule | RuleSet) -> RuleSet:
    """A set of whatever rules are given."""
    if isinstance(rules, RuleSet):
        return rules
    if isinstance(rules, Rule):
        return RuleSet((rules,))
    _need_rules(rules)
    return RuleSet(tuple(rules))


def _need_rules(rules: object) -> None:
    if isinstance(rules, str) or not isinstance(rules, Iterable):
        raise FlowError(f"rules are made with ps.rule(...) or ps.rules('rule NAME if ... do ...'), got {rules!r:.200}")
