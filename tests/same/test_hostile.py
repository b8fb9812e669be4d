"""Hostile records end as output or as dead letters with a cause: none stops a flow. No JVM."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.graph.schema import schema_of
from penstock.kernels.records.reading import Unreadable, read_csv, read_json, why_unread
from penstock.testing import run_local
from tests.same import hostile

MANY = 20_000
CSV = "id bigint, ts timestamp, s string"


def is_good(read: Any, text: str, schema: str) -> bool:
    try:
        read(text, schema_of(schema))
    except Unreadable:
        return False
    return True


def known() -> list[Any]:
    return [pytest.param(text, good, id=ascii(text)[:44]) for text, good in hostile.KNOWN.items()]


@pytest.mark.parametrize(("text", "good"), known())
def test_a_text_is_a_record_or_has_a_cause(text: str, good: bool) -> None:
    assert is_good(read_json, text, hostile.SCHEMA) is good
    assert good or why_unread("json", text.encode(), schema_of(hostile.SCHEMA))


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"id":1,"m":{"a":1,"a":2}}', "field 'm': the key 'a' occurs twice"),
        ('{"id":1,"ts":"10000-01-01T00:00:00Z"}', "field 'ts': "),
        (hostile.nested(1_100), "nested deeper than 500"),
        ('{"id":1e400}', "field 'id': "),
    ],
)
def test_a_cause_names_what_is_wrong(text: str, cause: str) -> None:
    assert cause in why_unread("json", text.encode(), schema_of(hostile.SCHEMA))


@pytest.mark.parametrize(("form", "schema"), [("json", hostile.SCHEMA), ("csv", CSV)])
def test_generated_lines_of_files_stop_no_local_flow(tmp_path: Path, form: str, schema: str) -> None:
    texts = [t for t in (hostile.json_texts(MANY) if form == "json" else hostile.csv_lines(MANY)) if t.strip()]
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / f"a.{form}").write_text("".join(f"{text}\n" for text in texts), newline="")
    flow = ps.Flow("hostile")
    lines = flow.source("lines", ps.files(tmp_path / "in", form, schema, header=False), on_error="dead_letter")
    lines.sink("out", ps.console())
    flow.dead_letters("dead", ps.console())
    made = run_local(flow)
    assert len(made["out"]) + len(made["dead"]) == len(texts)
    assert len(made["out"]) == sum(is_good(read_json if form == "json" else read_csv, t, schema) for t in texts)
    assert made["dead"]
    assert all(letter.cause for letter in made["dead"])
