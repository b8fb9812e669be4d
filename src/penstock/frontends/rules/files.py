"""`ps.rules`: a set of rules, from a file, from text, or from rules."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from penstock.errors import ExpressionError, FlowError
from penstock.graph.caller import user_line
from penstock.graph.rules.rule import Rule, RuleSet, rule_set
from penstock.graph.rules.text import parse_rules
from penstock.graph.spelling import spelled

_YAML = (".yaml", ".yml")


@spelled
def rules(source: str | Path | Iterable[Rule] | Rule) -> RuleSet:
    """A set of rules.

    Args:
        source: the path of a YAML file (`.yaml`, `.yml`) or of rule text (any other, as a `Path`); rule text, in which each rule begins with `rule` and its
            name; or rules of `ps.rule`.

    Returns:
        The rules, for `Stream.rules`.

    Raises:
        FlowError: the file is not there, or is no rule file; with its line and column.
        ExpressionError: a rule cannot be read; with its line and column.
        NameTaken: two rules have one name.

    >>> import penstock as ps
    >>> found = ps.rules("rule big if amount > 500 do alert('high', 'card {card}'), emit to large rule all do emit to every")
    >>> [rule.name for rule in found]
    ['big', 'all']
    """
    if isinstance(source, Path) or (isinstance(source, str) and source.endswith(_YAML)):
        return rules_of_file(Path(source))
    if isinstance(source, str):
        return parse_rules(source, user_line())
    return rule_set(source)


def rules_of_file(path: Path) -> RuleSet:
    """The rules of a file."""
    try:
        text = path.read_text()
    except OSError as error:
        raise FlowError(f"the rules {path} cannot be read: {error.strerror or error}") from None
    if path.suffix in _YAML:
        from penstock.frontends.rules.yaml_rules import rules_of_yaml  # it loads YAML

        return rules_of_yaml(text, str(path))
    try:
        return parse_rules(text, str(path))
    except ExpressionError as error:
        raise ExpressionError(f"{path}: {error}") from None
