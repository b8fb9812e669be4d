"""`penstock rules`: list and change the rules and patterns of flows that read their changes from a topic."""

from __future__ import annotations

import getpass
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from penstock.cli.log.directory import DEFAULT, AsJson, Debug, LogDir, examples, opened
from penstock.cli.options import option
from penstock.cli.output.listing import count, show, show_json
from penstock.errors import FlowError
from penstock.frontends.rules.files import rules_of_file
from penstock.jobs.rule_topic import PatternOptions, RuleTopic, StoredRule, as_row

group = typer.Typer(
    name="rules",
    help="The rules and patterns in a topic of the log: list, add, change, remove, enable, disable.",
    no_args_is_help=True,
)
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic with the rules.", show_default=False)]
Name = Annotated[str, typer.Argument(metavar="RULE", help="The name of the rule.", show_default=False)]
RuleText = Annotated[
    str,
    typer.Argument(
        metavar="TEXT",
        help="A rule, such as: if amount > 500 do emit to large. A pattern: PATTERN SEQ(...), or JSON. @FILE is what the file holds.",
        show_default=False,
    ),
]
By = Annotated[str, option("--by", metavar="WHO", help="Who changes it.", show_default="you")]
Runs = Annotated[
    str,
    option(
        "--runs",
        metavar="WHAT",
        help="Runs of the pattern that are under way: drop, keep or drain.",
        show_default="drop",
    ),
]
Function = Annotated[
    str,
    option("--function", metavar="NAME", help="What is to be done with matches of the pattern.", show_default=False),
]
Written = Annotated[bool, option("--written", help="The rule is written in the flow, and not in the topic.")]


def _who(by: str) -> str:
    return by or getpass.getuser()


@group.command("list", epilog=examples("penstock rules list fraud-rules", "penstock rules list fraud-rules --json"))
def list_(topic: Topic, log: LogDir = DEFAULT, as_json: AsJson = False, debug: Debug = False) -> None:
    """List the rules of a topic: version, whether they are enabled, who changed them last and when."""
    with opened(log, debug=debug) as found:
        _show([*RuleTopic(found, topic).rules().values()], as_json, f"no rules in {topic}")


@group.command(epilog=examples("penstock rules history fraud-rules", "penstock rules history fraud-rules big"))
def history(
    topic: Topic,
    rule: Annotated[str, typer.Argument(metavar="[RULE]", help="Of one rule.", show_default=False)] = "",
    log: LogDir = DEFAULT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List every version of the rules, oldest first."""
    with opened(log, debug=debug) as found:
        _show(RuleTopic(found, topic).history(rule), as_json, f"no changes in {topic}")


@group.command(epilog=examples("penstock rules add fraud-rules big \"if amount > 500 do alert('high', '{card}')\""))
def add(
    topic: Topic, rule: Name, text: RuleText, by: By = "", function: Function = "", log: LogDir = DEFAULT, debug: Debug = False
) -> None:  # fmt: skip
    """Add a rule or a pattern; the topic is made when it is not there."""
    options = PatternOptions(function=function)
    _changed(log, debug, topic, lambda rules: rules.add(rule, _text(text), _who(by), options), create=True)


@group.command(epilog=examples('penstock rules change fraud-rules big "if amount > 800 do emit to large"'))
def change(  # noqa: PLR0913 - options by name
    topic: Topic, rule: Name, text: RuleText, by: By = "", runs: Runs = "", function: Function = "", written: Written = False,
    log: LogDir = DEFAULT, debug: Debug = False,
) -> None:  # fmt: skip
    """Change the text of a rule or pattern."""
    options = PatternOptions(runs, function)
    _changed(log, debug, topic, lambda rules: rules.change(rule, _text(text), _who(by), options, written=written), create=written)  # fmt: skip


@group.command(epilog=examples("penstock rules remove fraud-rules big"))
def remove(
    topic: Topic, rule: Name, by: By = "", runs: Runs = "", written: Written = False, log: LogDir = DEFAULT, debug: Debug = False
) -> None:  # fmt: skip
    """Remove a rule or pattern."""
    options = PatternOptions(runs)
    _changed(log, debug, topic, lambda rules: rules.remove(rule, _who(by), options, written=written), create=written)


@group.command(epilog=examples("penstock rules enable fraud-rules big"))
def enable(
    topic: Topic, rule: Name, by: By = "", written: Written = False, log: LogDir = DEFAULT, debug: Debug = False
) -> None:
    """Enable a rule or pattern."""
    _changed(
        log, debug, topic, lambda rules: rules.enable(rule, _who(by), enabled=True, written=written), create=written
    )


@group.command(epilog=examples("penstock rules disable fraud-rules big --by ann"))
def disable(
    topic: Topic, rule: Name, by: By = "", runs: Runs = "", written: Written = False, log: LogDir = DEFAULT, debug: Debug = False
) -> None:  # fmt: skip
    """Disable a rule or pattern."""
    options = PatternOptions(runs)
    _changed(log, debug, topic, lambda rules: rules.enable(rule, _who(by), options, enabled=False, written=written), create=written)  # fmt: skip


@group.command(epilog=examples("penstock rules apply fraud-rules rules.yaml"))
def apply(
    topic: Topic,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A rule file, YAML or text.", show_default=False)],
    by: By = "",
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Make the topic hold the rules of a file and no others."""
    with opened(log, debug=debug, create=True) as found:
        made = RuleTopic(found, topic).apply(rules_of_file(file), _who(by))
        for each in made:
            typer.echo(_line(each))
        typer.echo(f"{count(len(made), 'change')} in {topic}")


def _text(given: str) -> str:
    """The text of a rule or pattern, as it is or in the file that it names."""
    if not given.startswith("@"):
        return given
    try:
        return Path(given[1:]).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise FlowError(f"{given[1:]} cannot be read ({error}); expected a file with a rule or a pattern") from None


def _changed(
    log: Path, debug: bool, topic: str, change: Callable[[RuleTopic], StoredRule], *, create: bool = False
) -> None:
    with opened(log, debug=debug, create=create) as found:
        typer.echo(_line(change(RuleTopic(found, topic))))


def _line(rule: StoredRule) -> str:
    state = "removed" if rule.removed else "enabled" if rule.enabled else "disabled"
    return f"{rule.rule}: version {rule.version}, {state}, by {rule.by}"


def _show(rules: list[StoredRule], as_json: bool, empty: str) -> None:
    rows = [as_row(rule) for rule in rules]
    show_json(rows) if as_json else show(rows, empty)
