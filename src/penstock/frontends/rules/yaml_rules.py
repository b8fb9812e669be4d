"""Rules in YAML: a list of rules, each checked against the keys that a rule has; errors name the line and the column.

```yaml
rules:
  - name: big
    on: payments
    if: amount > 500
    do:
      - alert('high', 'card {card} paid {amount}')
      - emit to suspicious
    priority: 3
  - name: small
    rule: if amount < 5 do emit to small
```
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeVar

import yaml

from penstock.errors import ExpressionError, FlowError, nearest
from penstock.graph.expr import parse
from penstock.graph.rules.rule import DEFERRED, IMMEDIATE, Rule, RuleSet
from penstock.graph.rules.text import parse_actions, parse_rule

T = TypeVar("T")
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""The one of libyaml, where PyYAML has it, reads ten thousand rules in a second."""
_KEYS = ("name", "on", "if", "do", "rule", "priority", "deferred", "enabled", "active")
_BOOLEANS = {"true": True, "yes": True, "on": True, "false": False, "no": False, "off": False}


def rules_of_yaml(text: str, file: str = "") -> RuleSet:
    """The rules of a YAML text.

    Args:
        text: the text.
        file: its name, for errors.

    Raises:
        FlowError: it is no YAML, or no rule file.
        ExpressionError: a condition or an action cannot be read.
        NameTaken: two rules have one name.

    >>> str(next(iter(rules_of_yaml("rules: [{name: big, if: n > 5, do: emit to large}]"))))
    'if n > 5 do emit to large'
    """
    reader = _YamlReader(file)
    try:
        root = yaml.compose(text, Loader=_LOADER)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark is not None else ""
        raise FlowError(f"{reader.file}{where}no YAML: {error.problem or error}") from None
    return reader.rules(root)


class _YamlReader:
    """Makes rules of YAML nodes, which know where they stand."""

    def __init__(self, file: str) -> None:
        self.file = f"{file}: " if file else ""
        self.named = file

    def error(self, node: yaml.Node, message: str, kind: type[FlowError] = FlowError) -> FlowError:
        """An error at a node."""
        mark = node.start_mark
        return kind(f"{self.file}line {mark.line + 1}, column {mark.column + 1}: {message}")

    def rules(self, root: yaml.Node | None) -> RuleSet:
        """The rules of the file."""
        if root is None:
            raise FlowError(f"{self.file}expected a list of rules, got an empty file")
        listed = self.mapping(root, ("rules",)).get("rules") if isinstance(root, yaml.MappingNode) else root
        if not isinstance(listed, yaml.SequenceNode):
            raise self.error(root, "expected rules: and a list of rules")
        return RuleSet(tuple(map(self.rule, listed.value)))

    def mapping(self, node: yaml.Node, keys: tuple[str, ...]) -> dict[str, yaml.Node]:
        """The values of a mapping by key; a key that is none is refused."""
        if not isinstance(node, yaml.MappingNode):
            raise self.error(node, f"expected keys and values ({', '.join(keys)})")
        found: dict[str, yaml.Node] = {}
        for key, value in node.value:
            if key.value not in keys:
                raise self.error(key, f"no key {key.value!r} here; {nearest(str(key.value), keys)}")
            if key.value in found:
                raise self.error(key, f"the key {key.value!r} appears twice")
            found[key.value] = value
        return found

    def rule(self, node: yaml.Node) -> Rule:
        """One rule."""
        given = self.mapping(node, _KEYS)
        if "name" not in given:
            raise self.error(node, "a rule needs a name")
        name = self.text(given["name"])
        made = self.written(name, given) if "rule" in given else self.in_parts(node, name, given)
        flags = {key: self.boolean(given[key]) for key in ("enabled", "active", "deferred") if key in given}
        coupling = (DEFERRED if flags.pop("deferred") else IMMEDIATE) if "deferred" in flags else made.coupling
        priority = self.number(given["priority"]) if "priority" in given else made.priority
        line = f"{self.named or 'line'}:{node.start_mark.line + 1}"
        return replace(made, coupling=coupling, priority=priority, line=line, **flags)  # type: ignore[arg-type]  # flags are booleans

    def written(self, name: str, given: dict[str, yaml.Node]) -> Rule:
        """A rule that is a text."""
        doubled = [key for key in ("on", "if", "do") if key in given]
        if doubled:
            raise self.error(
                given[doubled[0]], f"{doubled[0]!r} is in the text of the rule; leave it out, or leave out 'rule'"
            )
        return self.read(given["rule"], lambda text: parse_rule(name, text))

    def in_parts(self, node: yaml.Node, name: str, given: dict[str, yaml.Node]) -> Rule:
        """A rule of an event, a condition and actions."""
        if "do" not in given:
            raise self.error(node, f"rule {name!r} needs actions: do, or rule with its text")
        do = given["do"]
        parts = do.value if isinstance(do, yaml.SequenceNode) else [do]
        actions = tuple(a for part in parts for a in self.read(part, lambda text: parse_actions(name, text)))
        condition = self.read(given["if"], parse) if "if" in given else None
        return Rule(name, self.text(given["on"]) if "on" in given else "", condition, actions)

    def read(self, node: yaml.Node, parser: Callable[[str], T]) -> T:
        """What a text spells."""
        try:
            return parser(self.text(node))
        except ExpressionError as error:
            raise self.error(node, str(error), ExpressionError) from None

    def text(self, node: yaml.Node) -> str:
        """A text."""
        if not isinstance(node, yaml.ScalarNode):
            raise self.error(node, "expected a text")
        return str(node.value)

    def number(self, node: yaml.Node) -> int:
        """A whole number."""
        try:
            return int(self.text(node))
        except ValueError:
            raise self.error(node, f"expected a whole number, got {node.value!r}") from None

    def boolean(self, node: yaml.Node) -> bool:
        """True or false."""
        found = _BOOLEANS.get(self.text(node).lower())
        if found is None:
            raise self.error(node, f"expected true or false, got {node.value!r}")
        return found
