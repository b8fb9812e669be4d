"""Records that cannot be read, steps that fail, and secrets, in flows written as SQL."""

from __future__ import annotations

from pathlib import Path

import pytest

import penstock as ps
from penstock.errors import SetupError, SqlError, StepError
from penstock.frontends.sql.text.source import SqlText
from penstock.jobs.sql.answers import answer
from penstock.jobs.sql.files import read_sql_file
from penstock.jobs.sql.session import Listed, SqlSession
from penstock.testing import run_local

LINES = '{"id":1,"text":"7"}\nnonsense\n{"id":2,"text":"x"}\n{"id":"3","text":"8"}\n'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(LINES)
    return tmp_path


def table(folder: Path, *options: str) -> str:
    given = "".join(f", {option}" for option in options)
    return f"CREATE TABLE t (id BIGINT, text STRING) WITH ('connector' = 'files', 'path' = '{folder}/in', 'format' = 'json'{given});\n"


def test_a_table_says_what_happens_to_records_that_cannot_be_read(folder: Path) -> None:
    query = "SELECT id FROM t"
    with pytest.raises(StepError, match=r"a\.json, line 2"):
        run_local(ps.sql_flow(table(folder) + query))
    for option in ("'on-error' = 'skip'", "'json.ignore-parse-errors' = 'true'", "'csv.ignore-parse-errors' = 'TRUE'"):
        assert run_local(ps.sql_flow(table(folder, option) + query))["result"] == [(1,), (2,)]
    for option in ("'on-error' = 'fail'", "'json.ignore-parse-errors' = 'false'"):
        with pytest.raises(StepError):
            run_local(ps.sql_flow(table(folder, option) + query))


def test_dead_letters_of_a_table(folder: Path) -> None:
    flow = ps.sql_flow(table(folder, "'on-error' = 'dead_letter'") + "SELECT id FROM t")
    flow.dead_letters("dead", ps.console())
    results = run_local(flow)
    assert results["result"] == [(1,), (2,)]
    assert sorted(r.record for r in results["dead"]) == ["nonsense", '{"id":"3","text":"8"}']


def test_set_says_it_for_all_steps(folder: Path) -> None:
    @ps.function
    def number(text: str) -> int:
        return int(text)

    text = "SET 'on-error' = 'dead-letter';\n" + table(folder) + "SELECT id, number(text) AS n FROM t"
    flow = ps.sql_flow(text, functions=[number])
    flow.dead_letters("dead", ps.console())
    results = run_local(flow)
    assert results["result"] == [(1, 7)]
    assert len(results["dead"]) == 3
    (source,) = flow.graph.sources
    assert source.searched, "a live run looks for records that break a batch"
    reset = "SET 'on-error' = 'skip'; RESET 'on-error';\n" + table(folder) + "SELECT id FROM t"
    with pytest.raises(StepError):
        run_local(ps.sql_flow(reset))


def test_set_in_a_file_and_in_a_session(folder: Path) -> None:
    file = folder / "flow.sql"
    file.write_text("SET 'on-error' = 'skip';\n" + table(folder) + "SELECT id FROM t")
    found = read_sql_file(file)
    assert found.options == {}
    assert run_local(found.flow)["result"] == [(1,), (2,)]
    session = SqlSession()
    *_, asked = session.run(file.read_text())
    assert run_local(asked.graph)["result"] == [(1,), (2,)]  # type: ignore[union-attr]  # a query


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("SET 'on-error' = 'ignore'", "1:1: 'on-error': expected 'fail', 'dead_letter' or 'skip', got 'ignore'"),
        (
            "CREATE TABLE t (id BIGINT) WITH ('connector' = 'rate', 'on-error' = 'x'); SELECT id FROM t",
            "expected 'fail', 'dead_letter' or 'skip', got 'x'",
        ),
        (
            "CREATE TABLE t (id BIGINT) WITH ('connector' = 'files', 'path' = 'x', 'format' = 'json', 'json.fail-on-missing-field' = 'true'); SELECT id FROM t",
            "option 'json.fail-on-missing-field': expected 'false': a field that is missing is null, got 'true'",
        ),
        (
            "CREATE TABLE t (id BIGINT) WITH ('connector' = 'files', 'path' = 'x', 'format' = 'json', 'json.ignore-parse-errors' = 'yes'); SELECT id FROM t",
            "option 'json.ignore-parse-errors': expected 'true' or 'false', got 'yes'",
        ),
    ],
)
def test_a_policy_that_there_is_not_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(SqlError) as refused:
        ps.sql_flow(text)
    assert said in str(refused.value)
    with pytest.raises(SqlError):
        list(SqlSession().run(text))


SECRET = "CREATE TABLE t (id BIGINT) WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://ada:hush1@db/shop', 'table-name' = 't', 'username' = 'ada', 'password' = 'hu''sh2', 'properties.sasl.jaas.config' = 'x password=\"hush3\"', 'nonsense' = '1')"


def test_no_password_is_shown() -> None:
    (_, listed) = SqlSession().run(f"{SECRET}; SHOW CREATE TABLE t")
    assert isinstance(listed, Listed)
    shown = str(listed.rows)
    assert "table-name" in shown
    assert "hush" not in shown
    assert "sh2" not in shown
    with pytest.raises(SqlError) as refused:
        ps.sql_flow(f"{SECRET}; SELECT id FROM t")
    assert "hush" not in str(refused.value)


def test_an_error_points_to_its_place_behind_a_password() -> None:
    text = "WITH ('password' = 'hush', 'wrong' = '1')"
    said = str(SqlText(text).error(text.index("'wrong'"), "no option"))
    _, line, caret = said.split("\n")
    assert "hush" not in line
    assert line[caret.index("^") :].startswith("'wrong'")


def test_records_that_go_nowhere_are_told(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    flow = ps.sql_flow(table(folder, "'on-error' = 'dead_letter'") + "SELECT id FROM t")
    assert answer(flow.graph).rows == [(1,), (2,)]
    assert "2 records were left out; the first, of step 't': not JSON" in caplog.text


def test_what_is_missing_is_told_with_the_command_that_mends_it(tmp_path: Path) -> None:
    text = f"CREATE TABLE t (a INT) WITH ('connector' = 'topic', 'topic' = 'nope', 'path' = '{tmp_path}/log', 'format' = 'json'); SELECT a FROM t"
    with pytest.raises(SetupError, match="penstock topics create nope"):
        answer(ps.sql_flow(text).graph)
