"""`penstock sql`: statements from the command line and from files, the shell as a person uses it, and questions to a flow. No JVM."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document
from prompt_toolkit.history import InMemoryHistory
from prompt_toolkit.input import PipeInput, create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console
from typer.testing import CliRunner

import penstock as ps
from penstock.cli.sql.completion import SqlCompleter
from penstock.cli.sql.runner import LiveRows, Runner
from penstock.cli.sql.shell import Shell, prompt_session
from penstock.cli.sql.typing_state import is_complete
from penstock.graph.graph import Graph
from penstock.graph.row import row_class
from penstock.jobs.sql.answers import AskLimits
from penstock.jobs.sql.session import Asked, SqlSession
from tests.command_line import make_app
from tests.state.kept import KeptStep, keep

COUNTS = KeptStep("counts", ("word string",), ("n bigint count(*)",))
TOTALS = KeptStep("totals", ("kind string",), ("sum bigint sum(x)",))


@pytest.fixture
def table(tmp_path: Path) -> str:
    """A statement that defines a table of three words."""
    folder = tmp_path / "words"
    folder.mkdir()
    (folder / "a.json").write_text(
        "".join(json.dumps({"word": w, "n": n}) + "\n" for w, n in (("a", 1), ("b", 2), ("a", 3)))
    )
    return f"CREATE TABLE words (word STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '{folder}', 'format' = 'json');"


def penstock(*arguments: Any, code: int = 0, given: str | None = None) -> str:
    done = CliRunner().invoke(make_app(["sql"]), ["sql", *map(str, arguments)], input=given)
    assert done.exit_code == code, done.output
    return done.output


def rows(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines() if line.startswith("{")]


def test_statements_come_from_files_and_from_the_command_line(tmp_path: Path, table: str) -> None:
    file = tmp_path / "tables.sql"
    file.write_text(f"{table}\n-- twice as much\nCREATE VIEW twice AS SELECT word, n * 2 AS n FROM words;")
    found = rows(penstock("-f", file, "--json", "-e", "SELECT word, sum(n) AS n FROM twice GROUP BY word"))
    assert sorted(found, key=str) == [{"word": "a", "n": 8}, {"word": "b", "n": 4}]
    assert "│ b    │ 2 │" in penstock("-f", file, "SELECT * FROM words WHERE word = 'b'")
    assert rows(penstock("-f", "-", "--json", "SELECT max(n) AS m FROM words", given=table)) == [{"m": 3}]


def test_statements_come_from_standard_input_where_it_is_no_terminal(table: str) -> None:
    assert rows(penstock("--json", given=f"{table} SELECT count(*) AS n FROM words;")) == [{"n": 3}]


def test_an_error_names_the_place_and_ends_with_a_code(table: str) -> None:
    out = penstock("-e", table, "-e", "SELECT word\nFROM wrods", code=2)
    assert "sql:2:6" in out
    assert "did you mean 'words'" in out
    assert "^" in out


def test_an_insert_over_bounded_data_is_written_here(tmp_path: Path, table: str) -> None:
    out = tmp_path / "out"
    sink = (
        f"CREATE TABLE big (word STRING, n INT) WITH ('connector' = 'filesystem', 'path' = '{out}', 'format' = 'json');"
    )
    said = penstock("-e", table + sink, "-e", "INSERT INTO big SELECT word, n FROM words WHERE n > 1")
    assert "2 rows into big" in said
    written = [json.loads(line) for file in out.rglob("*.json") for line in file.read_text().splitlines()]
    assert sorted(row["n"] for row in written) == [2, 3]


def test_limits_end_a_query_with_the_way_out(table: str) -> None:
    out = penstock("-e", table, "--max-records", 2, "SELECT * FROM words", code=2)
    assert "more than 2 records" in out
    assert "--max-records" in out


def test_explain_says_what_is_kept_as_text_and_as_json(table: str) -> None:
    query = "EXPLAIN SELECT word, count(*) AS c FROM words GROUP BY word"
    text = penstock("-e", table, query)
    assert "keeps one row per word, for ever" in text
    assert "[append-only]" in text
    described = json.loads(penstock("--json", "-e", table, query))
    (group,) = [step for step in described["steps"] if step["kind"] == "aggregate"]
    assert group["kept_for_ever"]
    assert group["outputs"][0]["mode"] == "changing"


def test_set_takes_options_of_a_run_and_refuses_others() -> None:
    assert rows(penstock("--json", "SET 'execution.runtime-mode' = 'batch'; SET")) == [
        {"option": "execution.runtime-mode", "value": "batch"}
    ]
    assert "did you mean" in penstock("SET 'execution.runtime-mod' = 'batch'", code=2)


# ---- asking a flow


@pytest.fixture
def kept(tmp_path: Path) -> Path:
    folder = tmp_path / "kept"
    keep(folder, 0, {COUNTS: {("a",): (1,), ("b",): (2,)}, TOTALS: {("x",): (3,)}})
    keep(folder, 1, {COUNTS: {("a",): (10,), ("c",): (5,)}, TOTALS: {("x",): (17,)}})
    return folder


def test_a_flow_is_asked_by_its_checkpoint(kept: Path) -> None:
    assert rows(penstock("--flow", kept, "--json", "select n from counts where word = 'a'")) == [{"n": 10}]
    assert rows(penstock("--flow", kept, "--json", "--version", 0, "select n from counts where word = 'a'")) == [
        {"n": 1}
    ]
    assert rows(penstock("--flow", kept, "--json", "select count(*) as c, sum(n) as n from counts")) == [
        {"c": 3, "n": 17}
    ]
    assert rows(penstock("--flow", kept, "--json", "select sum from totals where kind = 'x'")) == [{"sum": 17}]
    assert rows(penstock("--flow", kept, "--json", "select n from counts where word in ('b', 'c') and n > 2")) == [
        {"n": 5}
    ]


def test_a_flow_is_asked_as_any_table_is(kept: Path) -> None:
    def asked(query: str) -> list[dict[str, Any]]:
        return rows(penstock("--flow", kept, "--json", query))

    assert asked("select word from counts order by n desc") == [{"word": "a"}, {"word": "c"}, {"word": "b"}]
    assert asked("select word from counts order by n limit 1 offset 1") == [{"word": "c"}]
    assert asked("select word from counts limit 0") == []
    assert asked("select word from counts where n > all (select 5) or word in (select 'c') order by word") == [
        {"word": "a"},
        {"word": "c"},
    ]
    assert asked("select word from counts where n < (select max(sum) from totals) and word <> 'a' order by word") == [
        {"word": "b"},
        {"word": "c"},
    ]


def test_a_number_that_no_key_can_be_finds_nothing(tmp_path: Path) -> None:
    ids = KeptStep("ids", ("id int",), ("n bigint count(*)",))
    keep(tmp_path / "kept", 0, {ids: {(1,): (7,), (-2,): (8,)}})
    for value, wanted in (("99999999999999999999", []), ("3000000000", []), ("1.0", [{"n": 7}]), ("-2", [{"n": 8}])):
        assert rows(penstock("--flow", tmp_path / "kept", "--json", f"select n from ids where id = {value}")) == wanted


def test_the_tables_of_a_flow_are_listed(kept: Path) -> None:
    assert rows(penstock("--flow", kept, "--json")) == [{"table": "counts"}, {"table": "totals"}]


def test_what_a_flow_does_not_keep_is_refused_with_the_nearest(kept: Path, tmp_path: Path) -> None:
    assert "did you mean 'counts'" in penstock("--flow", kept, "select * from count", code=1)
    assert "expected one query" in penstock("--flow", kept, "drop table counts", code=2)
    assert "has no state" in penstock("--checkpoint", tmp_path / "none", "select 1", code=1)


# ---- the shell


@pytest.fixture
def terminal() -> Iterator[PipeInput]:
    with create_pipe_input() as pipe, create_app_session(input=pipe, output=DummyOutput()):
        yield pipe


def shell_over(terminal: PipeInput, typed: str) -> str:
    """What the shell shows when a person types something, and leaves."""
    out = io.StringIO()
    runner = Runner(SqlSession(), console=Console(file=out, width=100))
    shell = Shell(runner, prompt_session(runner, history=InMemoryHistory()))
    shell.errors = Console(file=out, width=100)
    terminal.send_text(typed)
    shell.loop()
    return out.getvalue()


def test_a_statement_goes_on_until_its_semicolon(terminal: PipeInput, table: str) -> None:
    shown = shell_over(terminal, f"{table}\rselect word,\rcount(*) as c\rfrom words group by word;\r\\q\r")
    assert "│ a    │ 2 │" in shown


def test_an_error_does_not_end_the_shell(terminal: PipeInput, table: str) -> None:
    shown = shell_over(terminal, f"{table}\rselect nothing from words;\rselekt;\rselect max(n) as m from words;\r\\q\r")
    assert "no column 'nothing'" in shown or "nothing" in shown
    assert "│ 3 │" in shown


def test_commands_show_tables_and_columns(terminal: PipeInput, table: str) -> None:
    shown = shell_over(terminal, f"{table}\r\\dt\r\\d words\r\\?\r\\nonsense\r\\q\r")
    assert "│ words │ table │" in shown
    assert "│ n      │ int    │" in shown
    assert "\\dt" in shown


def test_ctrl_c_drops_what_is_typed_and_ctrl_d_leaves(terminal: PipeInput, table: str) -> None:
    shown = shell_over(terminal, f"{table}\rselect half\x03select count(*) as n from words;\r\x04")
    assert "│ 3 │" in shown


def test_ctrl_c_stops_the_query_and_not_the_shell(
    terminal: PipeInput, table: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(self: Runner, graph: Graph) -> None:
        raise KeyboardInterrupt

    calls = iter([interrupted, Runner._ask])

    def one_after_the_other(self: Runner, graph: Graph) -> None:
        next(calls)(self, graph)

    monkeypatch.setattr(Runner, "_ask", one_after_the_other)
    shown = shell_over(terminal, f"{table}\rselect * from words;\rselect count(*) as n from words;\r\\q\r")
    assert "│ 3 │" in shown


def offered(session: SqlSession, text: str) -> set[str]:
    found = SqlCompleter(session).get_completions(Document(text), CompleteEvent())
    return {completion.text for completion in found}


def test_completion_knows_tables_columns_functions_and_keywords(table: str) -> None:
    session = SqlSession()
    list(session.run(table))
    assert offered(session, "select * from wo") == {"words"}
    assert "word" in offered(session, "select * from words where w")
    assert offered(session, "select * from words w where w.n") == set()
    assert offered(session, "select * from words w where w.wo") == {"word"}
    assert {"upper"} <= offered(session, "select upp")
    assert "select" in offered(session, "sel")
    assert offered(session, "\\d") >= {"\\d", "\\dt"}
    assert offered(session, "\\d wo") == {"words"}


def test_lines_end_where_a_statement_does() -> None:
    assert is_complete("select ';' ;")
    assert not is_complete("select ';'")
    assert not is_complete("select 'it''s ;")
    assert is_complete("select 1; -- why")
    assert not is_complete("/* ; */ select 1")


def test_a_live_table_has_the_rows_that_stand(table: str) -> None:
    session = SqlSession()
    *_, asked = session.run(f"{table} SELECT word, count(*) AS n FROM words GROUP BY word")
    assert isinstance(asked, Asked)
    live, row = LiveRows(asked.graph), row_class(("word", "n"))
    live.take([row(("a", 1)), row(("b", 1))], None)
    live.take([row(("a", 2))], None)
    assert sorted(live.net.rows()) == [("a", 2), ("b", 1)]
    assert "2 rows, 3 changes" in str(live.table(20).renderables[0])


def test_a_bounded_answer_keeps_to_its_time(table: str) -> None:
    from penstock.errors import Impossible
    from penstock.jobs.sql.answers import answer

    flow = ps.sql_flow("SELECT n FROM numbers", {"numbers": ps.items(range(100), "n bigint")})
    with pytest.raises(Impossible, match="--timeout"):
        answer(flow.graph, limits=AskLimits(seconds=0.0))


def test_control_characters_do_not_reach_the_terminal(table: str) -> None:
    session = SqlSession({"t": ps.items([("a\x1b[31mred",)], "x string")})
    out = io.StringIO()
    Runner(session, console=Console(file=out, width=80)).run("SELECT x FROM t")
    assert "\x1b[31m" not in out.getvalue()
    assert "\\x1b" in out.getvalue()
