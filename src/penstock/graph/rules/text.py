"""Rules as text.

    rule "big payment"
      on payments if amount > 500 and country != home
      do alert(severity = 'high', 'card {card} paid {amount}'), emit to suspicious(card, amount)
      priority 3

Keywords are those of the rule; conditions and values are expressions, as everywhere else.
"""

from __future__ import annotations

from collections.abc import Callable

from penstock.errors import ExpressionError
from penstock.graph.expr.model import Column, Expr
from penstock.graph.expr.parse import Reader
from penstock.graph.expr.tokens import pointed
from penstock.graph.rules.actions import Action, Alert, Delete, Emit, Evaluate, Fields, Post, Stop, Switch, Update
from penstock.graph.rules.rule import DEFERRED, IMMEDIATE, Rule, RuleSet

_ACTIONS = "emit to, alert(...), post to, update, delete from, call, stop, activate, deactivate"
SEVERITY = "info"
"""The severity of an alert that names none."""


def parse_rule(name: str, text: str, line: str = "") -> Rule:
    """The rule that a text spells.

    Args:
        name: the name of the rule.
        text: what it says, from `on`, `if` or `do` on.
        line: where it stands, for errors.

    Raises:
        ExpressionError: it cannot be read; with the line, the column, and what was expected.

    >>> rule = parse_rule("big", "on payments if n > 5 do emit to large(n), stop priority 2 deferred")
    >>> str(rule)
    'on payments if n > 5 do emit to large(n), stop priority 2 deferred'
    """
    reader = _RuleReader(text, f"rule {name!r}")
    made = reader.rule(name, line)
    reader.end()
    return made


def parse_rules(text: str, line: str = "") -> RuleSet:
    """The rules of a text: each begins with the word `rule` and its name.

    Raises:
        ExpressionError: it cannot be read; with the line, the column, and what was expected.
        NameTaken: two rules have one name.

    >>> [rule.name for rule in parse_rules("rule a do stop rule 'b c' if n > 1 do emit to x")]
    ['a', 'b c']
    """
    reader = _RuleReader(text, "the rules")
    made: list[Rule] = []
    while reader.next.kind != "end":
        if not reader.found("rule"):
            raise reader.expected("the word rule and a name")
        made.append(reader.rule(reader.label(), line))
    return RuleSet(tuple(made))


def parse_actions(name: str, text: str) -> tuple[Action, ...]:
    """The actions that a text spells, with commas between them.

    Raises:
        ExpressionError: it cannot be read.

    >>> [str(action) for action in parse_actions("a", "emit to x, stop")]
    ['emit to x', 'stop']
    """
    reader = _RuleReader(text, f"the actions of rule {name!r}")
    made = reader.actions()
    if reader.next.kind != "end":
        raise reader.expected("a comma and another action")
    return made


class _RuleReader(Reader):
    """Reads rules; conditions and values by the reader of expressions."""

    def __init__(self, text: str, what: str) -> None:
        self.what = what
        try:
            super().__init__(text)
        except ExpressionError as error:
            raise ExpressionError(str(error).replace("the expression", what, 1)) from None

    def error(self, message: str, at: int | None = None) -> ExpressionError:
        """An error with its line and column."""
        position = self.next.at if at is None else at
        line, column = self.text.count("\n", 0, position) + 1, position - self.text.rfind("\n", 0, position)
        return ExpressionError(
            pointed(self.text, position, f"cannot read {self.what}: line {line}, column {column}: {message}")
        )

    def expected(self, what: str) -> ExpressionError:
        """An error that says what should stand here."""
        return self.error(f"expected {what}, got {self.next.text or 'the end'!r}")

    def end(self) -> None:
        """Nothing follows."""
        if self.next.kind != "end":
            raise self.expected("a comma and another action, priority, deferred or inactive")

    def label(self) -> str:
        """A name, plain or as a text."""
        if self.next.kind not in ("name", "quoted", "string"):
            raise self.expected("a name")
        return self.take().text

    def rule(self, name: str, line: str) -> Rule:
        """From `on` to the options."""
        on = self.label() if self.found("on") else ""
        condition = self.expr() if self.found("if") else None
        if not self.found("do"):
            raise self.expected("if or do" if condition is None else "an operator, or do")
        actions = self.actions()
        priority, coupling, active = 0, IMMEDIATE, True
        while self.next.word in ("priority", "deferred", "inactive"):
            word = self.take().word
            if word == "priority":
                priority = self.whole_number()
            coupling = DEFERRED if word == "deferred" else coupling
            active = active and word != "inactive"
        return Rule(name, on, condition, actions, priority, coupling, active=active, line=line)

    def actions(self) -> tuple[Action, ...]:
        """One action or several."""
        made = [self.action()]
        while self.found(","):
            made.append(self.action())
        return tuple(made)

    def whole_number(self) -> int:
        """A number without a fraction, perhaps below zero."""
        sign = -1 if self.found("-") else 1
        if self.next.kind != "number" or not self.next.text.isdigit():
            raise self.expected("a whole number")
        return sign * int(self.take().text)

    def action(self) -> Action:
        """One action."""
        read = _READERS.get(self.next.word)
        if read is None:
            raise self.expected(f"an action ({_ACTIONS})")
        self.take()
        return read(self)

    def emit(self) -> Action:
        """`emit to stream(fields)`."""
        self.expect("to")
        return Emit(self.label(), self.fields())

    def post(self) -> Action:
        """`post to endpoint(fields)`."""
        self.expect("to")
        return Post(self.label(), self.fields())

    def update(self) -> Action:
        """`update table(fields)`."""
        return Update(self.label(), self.fields())

    def delete(self) -> Action:
        """`delete from table(fields)`."""
        self.expect("from")
        return Delete(self.label(), self.fields())

    def evaluate(self) -> Action:
        """`call expression`."""
        return Evaluate(self.expr())

    def stop(self) -> Action:
        """`stop`."""
        return Stop()

    def activate(self) -> Action:
        """`activate rule`."""
        return Switch(self.label(), True)

    def deactivate(self) -> Action:
        """`deactivate rule`."""
        return Switch(self.label(), False)

    def fields(self) -> Fields:
        """Names, and names with expressions, in parentheses; none where nothing stands."""
        if not self.found("("):
            return ()
        found = [self.field()]
        while self.found(","):
            found.append(self.field())
        self.expect(")")
        return tuple(found)

    def field(self) -> tuple[str, Expr]:
        """A field of the event, or a name and an expression."""
        name = self.name()
        return name, self.expr() if self.found("=") else Column(name)

    def alert(self) -> Action:
        """`alert(severity = 'high', 'text {field}')`, or `alert('high', 'text')`, or the text alone."""
        at = self.next.at
        self.expect("(")
        named: dict[str, str] = {}
        plain: list[str] = []
        while True:
            if self.next.word in ("severity", "text") and self.after.word == "=":
                word = self.take().word
                self.take()
                named[word] = self.text_constant()
            else:
                plain.append(self.text_constant())
            if not self.found(","):
                break
        self.expect(")")
        return self._alert(plain, named, at)

    def _alert(self, plain: list[str], named: dict[str, str], at: int) -> Action:
        free = [word for word in ("severity", "text") if word not in named]
        if len(plain) == 1 and free == ["severity", "text"]:
            free = ["text"]
        if len(plain) != len(free) and not (free == ["severity"] and not plain):
            raise self.error("an alert has a severity and a text: alert('high', 'card {card}')", at)
        given = {"severity": SEVERITY, **named, **dict(zip(free, plain, strict=False))}
        try:
            return Alert.of(given["severity"], given["text"])
        except ExpressionError as error:
            raise self.error(str(error), at) from None

    def text_constant(self) -> str:
        """A text in quotes."""
        if self.next.kind not in ("string", "raw"):
            raise self.expected("a text in quotes")
        return self.take().text


_READERS: dict[str, Callable[[_RuleReader], Action]] = {
    "emit": _RuleReader.emit,
    "post": _RuleReader.post,
    "update": _RuleReader.update,
    "delete": _RuleReader.delete,
    "call": _RuleReader.evaluate,
    "stop": _RuleReader.stop,
    "activate": _RuleReader.activate,
    "deactivate": _RuleReader.deactivate,
    "alert": _RuleReader.alert,
}
