"""`penstock queries`: the standing queries of flows that read them from a topic."""

from __future__ import annotations

import getpass
from typing import Annotated

import typer

from penstock.cli.log.directory import DEFAULT, AsJson, Debug, LogDir, examples, opened
from penstock.cli.options import option
from penstock.cli.output.listing import show, show_json
from penstock.jobs.rule_topic import StoredRule
from penstock.jobs.sql.query_topic import QueryTopic

group = typer.Typer(
    name="queries", help="The standing queries in a topic of the log: list, add, drop.", no_args_is_help=True
)
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic with the queries.", show_default=False)]
By = Annotated[str, option("--by", metavar="WHO", help="Who changes it.", show_default="you")]
Written = Annotated[bool, option("--written", help="The query is written in the flow, and not in the topic.")]


@group.command("list", epilog=examples("penstock queries list alerts", "penstock queries list alerts --json"))
def list_(topic: Topic, log: LogDir = DEFAULT, as_json: AsJson = False, debug: Debug = False) -> None:
    """List the standing queries of a topic: version, text, who added them and when."""
    with opened(log, debug=debug) as found:
        rows = [_row(each) for each in QueryTopic(found, topic).rules().values()]
        show_json(rows) if as_json else show(rows, f"no queries in {topic}")


@group.command(
    epilog=examples(
        'penstock queries add alerts "CREATE STANDING QUERY big AS SELECT * FROM orders WHERE amount > 500 INTO found"'
    )
)
def add(
    topic: Topic,
    statement: Annotated[
        str,
        typer.Argument(metavar="SQL", help="CREATE STANDING QUERY name AS SELECT ... INTO table.", show_default=False),
    ],
    by: By = "",
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Add a standing query; the topic is made when it is not there."""
    with opened(log, debug=debug, create=True) as found:
        typer.echo(_line(QueryTopic(found, topic).put(statement, by or getpass.getuser())))


@group.command(epilog=examples("penstock queries drop alerts big"))
def drop(
    topic: Topic,
    query: Annotated[str, typer.Argument(metavar="QUERY", help="The name of the query.", show_default=False)],
    by: By = "",
    written: Written = False,
    log: LogDir = DEFAULT,
    debug: Debug = False,
) -> None:
    """Drop a standing query."""
    with opened(log, debug=debug, create=written) as found:
        typer.echo(_line(QueryTopic(found, topic).remove(query, by or getpass.getuser(), written=written)))


def _line(query: StoredRule) -> str:
    return f"{query.rule}: version {query.version}, {'dropped' if query.removed else 'added'}, by {query.by}"


def _row(query: StoredRule) -> dict[str, object]:
    return {"query": query.rule, "version": query.version, "text": query.text, "by": query.by, "at": query.at}
