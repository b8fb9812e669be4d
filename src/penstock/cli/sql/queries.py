"""`penstock queries`: the standing queries of flows that read them from a topic."""

from __future__ import annotations

import getpass
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from penstock.cli.log.directory import DEFAULT, AsJson, Debug, LogDir, examples, opened
from penstock.cli.options import option
from penstock.cli.output.listing import show, show_json
from penstock.jobs.rule_topic import StoredRule

if TYPE_CHECKING:
    from penstock.jobs.sql.query_status import QueryStatus
    from penstock.jobs.sql.query_topic import QueryTopic
    from penstock.log import Log

group = typer.Typer(
    name="queries", help="The standing queries in a topic of the log: list, add, drop.", no_args_is_help=True
)
Topic = Annotated[str, typer.Argument(metavar="TOPIC", help="The topic with the queries.", show_default=False)]
By = Annotated[str, option("--by", metavar="WHO", help="Who changes it.", show_default="you")]
Flow = Annotated[
    str,
    option(
        "--flow",
        metavar="FLOW",
        help="The flow that reads them, as for `penstock sql --flow`: a file, a name, a checkpoint.",
    ),
]
Checkpoint = Annotated[
    str | None, option("--checkpoint", metavar="DIR", help="Its checkpoint.", show_default=".penstock/FLOW")
]
Written = Annotated[bool, option("--written", help="The query is written in the flow, and not in the topic.")]


@group.command(
    "list",
    epilog=examples(
        "penstock queries list alerts",
        "penstock queries list alerts --json",
        "penstock queries list alerts --flow orders.sql",
    ),
)
def list_(
    topic: Topic,
    flow: Flow = "",
    checkpoint: Checkpoint = None,
    log: LogDir = DEFAULT,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the standing queries of a topic: version, text, who added them and when. With --flow also what became of them in a flow, and of a file of SQL why those that are pending cannot be planned."""
    with opened(log, debug=debug) as found:
        stored = _query_topic(found, topic).rules()
        known = _statuses(flow, checkpoint) if flow or checkpoint else None
        refused = _refused(Path(flow), log, topic) if flow.endswith(".sql") else {}
        rows = [_row(name, stored.get(name), known, refused) for name in sorted({*stored, *(known or {})})]
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
        typer.echo(_line(_query_topic(found, topic).put(statement, by or getpass.getuser())))


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
        typer.echo(_line(_query_topic(found, topic).remove(query, by or getpass.getuser(), written=written)))


def _query_topic(log: Log, topic: str) -> QueryTopic:
    from penstock.jobs.sql.query_topic import QueryTopic  # it loads sqlglot

    return QueryTopic(log, topic)


def _statuses(flow: str, checkpoint: str | None) -> dict[str, QueryStatus]:
    """What became of the queries in a flow, by name."""
    from penstock.jobs.sql.asking import asked_flow  # it loads sqlglot and pyarrow
    from penstock.jobs.sql.query_status import statuses_of  # it loads pyarrow

    return statuses_of(asked_flow(flow, checkpoint).folder)


def _refused(file: Path, log: Path, topic: str) -> dict[str, str]:
    """Why queries of a topic cannot be planned, by name."""
    from penstock.jobs.sql.files import read_sql_file  # it loads sqlglot
    from penstock.jobs.sql.query_topic import TopicQueries  # it loads sqlglot

    return read_sql_file(file, TopicQueries(str(log))).refused(topic)


def _line(query: StoredRule) -> str:
    return f"{query.rule}: version {query.version}, {'dropped' if query.removed else 'added'}, by {query.by}"


def _row(
    name: str, query: StoredRule | None, known: dict[str, QueryStatus] | None, refused: dict[str, str]
) -> dict[str, object]:
    """A query, and what became of it in the flow; one of the flow's own text has no version."""
    own = (
        {"version": query.version, "text": query.text, "by": query.by, "at": query.at}
        if query is not None
        else dict.fromkeys(("version", "text", "by", "at"), None)
    )
    if known is None:
        return {"query": name, **own}
    from penstock.jobs.sql.query_status import PENDING, QueryStatus  # it loads pyarrow

    status = known.get(name) or QueryStatus(PENDING)
    why = refused.get(name, "").partition("\n")[0] if status.status == PENDING else ""
    return {"query": name, **asdict(status), "why": why, **own}
