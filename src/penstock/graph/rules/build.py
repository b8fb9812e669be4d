"""What users build rules with: `ps.rule` and the actions of `ps.action`."""

from __future__ import annotations

from penstock.errors import FlowError
from penstock.graph.caller import user_line
from penstock.graph.expr import Expr, as_expr
from penstock.graph.rules.actions import Action, Alert, Delete, Emit, Evaluate, Post, Stop, Switch, Update, fields_of
from penstock.graph.rules.rule import DEFERRED, IMMEDIATE, Rule


def rule(
    name: str,
    when: str | Expr | None = None,
    *then: Action,
    on: str = "",
    priority: int = 0,
    deferred: bool = False,
    enabled: bool = True,
    active: bool = True,
) -> Rule:
    """A rule: on an event, if a condition holds, do actions.

    Args:
        name: the name of the rule, which alerts carry.
        when: the condition, an expression over the fields of the event; None is always.
        then: what it does, in order; see `ps.action`.
        on: the event: the stream that the set is applied to, where it is empty, or one that rules emit to.
        priority: rules of a higher priority act first.
        deferred: whether it acts at the end of the batch, not with its event.
        enabled: whether it acts at all.
        active: whether it acts before another rule activates it.

    Returns:
        The rule.

    Raises:
        ExpressionError: the condition cannot be read.
        FlowError: the name is no text, the priority no whole number, or what stands among the actions is none.

    >>> import penstock as ps
    >>> str(ps.rule("big", "amount > 500", ps.action.alert("high", "{card} paid {amount}"), priority=1))
    "if amount > 500 do alert('high', '{card} paid {amount}') priority 1"
    """
    _text("the name of a rule", name)
    if not isinstance(priority, int) or isinstance(priority, bool):
        raise FlowError(f"rule {name!r}: priority is a whole number such as 10, got {priority!r}")
    for each in then:
        if not isinstance(each, Action):
            raise FlowError(f"rule {name!r} does actions such as ps.action.emit('stream'), got {each!r}")
    coupling = DEFERRED if deferred else IMMEDIATE
    condition = None if when is None else as_expr(when)
    return Rule(name, on, condition, then, priority, coupling, enabled, active, line=user_line())


class action:  # noqa: N801 - users read it as a name space
    """What rules do; none of it is done before a rule fires.

    >>> import penstock as ps
    >>> str(ps.action.emit("suspicious", "card", twice="amount * 2"))
    'emit to suspicious(card, twice = amount * 2)'
    """

    @staticmethod
    def emit(stream: str, *fields: str, **named: str | Expr) -> Action:
        """Emits a record to a stream, which is an output of the step and an event for other rules.

        Args:
            stream: the name of the stream.
            fields: fields of the event; without any and without `named` the event goes as it is.
            named: expressions by the name of the field.

        Returns:
            The action.

        Raises:
            FlowError: the name of the stream is no text.
        """
        return Emit(_text("the stream that emit names", stream), fields_of(fields, _read(named)))

    @staticmethod
    def alert(severity: str, text: str) -> Action:
        """Raises an alert: a record of the output `alerts`.

        Args:
            severity: how severe it is, such as "high".
            text: what it says; expressions over the event stand in braces.

        Returns:
            The action.

        Raises:
            ExpressionError: what stands in braces is no expression.
            FlowError: one of the two is no text.
        """
        return Alert.of(_text("the severity of an alert", severity), _text("what an alert says", text))

    @staticmethod
    def post(endpoint: str, *fields: str, **named: str | Expr) -> Action:
        """Sends a record to an endpoint of the step, such as `ps.write_http(...)`: `posts=` of `Stream.rules` says which.

        Args:
            endpoint: the name of the endpoint.
            fields: fields of the event; without any and without `named` the event goes as it is.
            named: expressions by the name of the field.

        Returns:
            The action.

        Raises:
            FlowError: the name of the endpoint is no text.
        """
        return Post(_text("the endpoint that post names", endpoint), fields_of(fields, _read(named)))

    @staticmethod
    def update(table: str, *fields: str, **named: str | Expr) -> Action:
        """Inserts or replaces the row with the same key in a table of the step.

        Args:
            table: the name of the table.
            fields: fields of the event; without any and without `named` all of them.
            named: expressions by the name of the field.

        Returns:
            The action.

        Raises:
            FlowError: the name of the table is no text.
        """
        return Update(_text("the table that update names", table), fields_of(fields, _read(named)))

    @staticmethod
    def delete(table: str, *fields: str, **named: str | Expr) -> Action:
        """Deletes the row with this key from a table of the step.

        Args:
            table: the name of the table.
            fields: the fields of the key that the event has.
            named: expressions by the name of the field.

        Returns:
            The action.

        Raises:
            FlowError: the name of the table is no text.
        """
        return Delete(_text("the table that delete names", table), fields_of(fields, _read(named)))

    @staticmethod
    def call(function: str | Expr) -> Action:
        """Calls a Python function, made with `@ps.function`, for what it does; what it returns is dropped.

        A batch that runs again calls again. An effect that must happen once goes by `post` or `emit`, to a sink.

        Args:
            function: the call, such as `"notify(card, amount)"`.

        Returns:
            The action.

        Raises:
            ExpressionError: it cannot be read.
        """
        return Evaluate(as_expr(function))

    @staticmethod
    def stop() -> Action:
        """Keeps rules of a lower priority from the event.

        Returns:
            The action.
        """
        return Stop()

    @staticmethod
    def activate(rule: str) -> Action:
        """Activates a rule, for the key of the event, from the next action on.

        Args:
            rule: the name of the rule.

        Returns:
            The action.

        Raises:
            FlowError: the name of the rule is no text.
        """
        return Switch(_text("the rule that activate names", rule), True)

    @staticmethod
    def deactivate(rule: str) -> Action:
        """Deactivates a rule, for the key of the event, from the next action on.

        Args:
            rule: the name of the rule.

        Returns:
            The action.

        Raises:
            FlowError: the name of the rule is no text.
        """
        return Switch(_text("the rule that deactivate names", rule), False)


def _text(what: str, given: object) -> str:
    if not isinstance(given, str) or not given.strip():
        raise FlowError(f"{what} is a text, got {given!r}")
    return given


def _read(named: dict[str, str | Expr]) -> dict[str, Expr]:
    return {name: as_expr(value) for name, value in named.items()}
