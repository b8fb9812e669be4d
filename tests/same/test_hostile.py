"""Hostile records end as output or as dead letters with a cause, the same ones locally and on Spark: none stops a flow."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import penstock as ps
from penstock.errors import StepError
from penstock.graph.run import RunSpec
from penstock.graph.schema import schema_of
from penstock.kernels.records.reading import Unreadable, read_csv, read_json, why_malformed
from penstock.log import Log
from penstock.spark.run import run_bounded, run_live
from penstock.testing import run_local
from tests.same import hostile
from tests.same.conftest import Case

MANY = 20_000
READ = {"json": (read_json, hostile.SCHEMA, hostile.KNOWN), "csv": (read_csv, hostile.CSV_SCHEMA, hostile.CSV_KNOWN)}


def is_good(form: str, text: str) -> bool:
    read, schema, _ = READ[form]
    try:
        read(text, schema_of(schema))
    except Unreadable:
        return False
    return True


def known() -> list[Any]:
    return [
        pytest.param(form, text, good, id=f"{form}-{ascii(text)[:44]}")
        for form, (_, _, texts) in READ.items()
        for text, good in texts.items()
    ]


@pytest.mark.parametrize(("form", "text", "good"), known())
def test_a_text_is_a_record_or_has_a_cause(form: str, text: str, good: bool) -> None:
    assert is_good(form, text) is good
    said = why_malformed(form, text.encode(), schema_of(READ[form][1]))
    assert good or (said and "does not fit the schema" not in said)


@pytest.mark.parametrize(
    ("text", "cause"),
    [
        ('{"id":1,"m":{"a":1,"a":2}}', "field 'm': the key 'a' occurs twice"),
        ('{"id":1,"ts":"10000-01-01T00:00:00Z"}', "field 'ts': "),
        ('{"id":1,"ts":9223372036854775807}', "field 'ts': a timestamp lies between the years 1 and 9999"),
        (hostile.nested(1_100), "nested deeper than 500"),
        (hostile.nested(999), "nested deeper than 500"),
        ('{"id":1e400}', "field 'id': "),
        ('{"id":1}{"id":2}', "data after the JSON value, at character 8: "),
        ('{"id":1} x', "data after the JSON value, at character 8: 'x'"),
        ('{"s":"\\ud83d"}', "half of a surrogate pair"),
    ],
)
def test_a_cause_names_what_is_wrong(text: str, cause: str) -> None:
    assert cause in why_malformed("json", text.encode(), schema_of(hostile.SCHEMA))


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, int | str)


class Outcome:
    """What a flow made of its records, on any runtime."""

    def __init__(self, source: Any, folder: Path) -> None:
        self.folder = folder
        self.rows: dict[str, list[Any]] = {"out": [], "dead": []}
        self.flow = ps.Flow("hostile")
        self.flow.source("in", source, on_error="dead_letter").sink("out", self._sink("out"))
        self.flow.dead_letters("dead", self._sink("dead"))

    def _sink(self, name: str) -> Any:
        return ps.callback(lambda rows, batch: self.rows[name].extend(rows))

    def run(self, runtime: str, spark: Callable[[], Any]) -> Outcome:
        if runtime == "local":
            self.rows |= run_local(self.flow)
        elif runtime == "bounded":
            run_bounded(self.flow.graph, spark())
        else:
            options = RunSpec(checkpoint=self.folder / "checkpoint", mode="once")
            run_live(self.flow.graph, spark(), options).wait(pause=0.02)
        return self

    @property
    def good(self) -> Counter[str]:
        """The good records, by their whole numbers, texts and nulls; times and decimals have more than one form."""
        return Counter(repr([v if _is_plain(v) else ... for v in row]) for row in self.rows["out"])

    @property
    def bad(self) -> Counter[tuple[str, str]]:
        """Where each bad record stands in its source, and its cause; batches are cut differently by each runtime."""
        return Counter((re.sub(r"^batch \d+, ", "", letter.position), letter.cause) for letter in self.rows["dead"])


@dataclass(frozen=True)
class Given:
    """A source with generated records, how many there are, and what the local runtime makes of them."""

    source: Any
    many: int
    expected: Outcome


@pytest.fixture(scope="module")
def given(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str, str], Given]:
    """The records of a kind of source in a format, generated and read once for all runtimes."""

    @lru_cache
    def make(kind: str, form: str) -> Given:
        folder = tmp_path_factory.mktemp(f"{kind}-{form}")
        source, many = files_of(folder, form) if kind == "files" else topic_of(folder, form)
        return Given(source, many, Outcome(source, folder).run("local", lambda: None))

    return make


def files_of(folder: Path, form: str) -> tuple[Any, int]:
    """Files with generated lines."""
    more = MANY + 100  # blank lines are no records
    without = () if form == "json" else ("m", "st")
    made = hostile.csv_lines(more) if form == "csv" else hostile.json_texts(more, without=without)
    texts = [t for t in made if t.strip()]
    (folder / "in").mkdir()
    for at in range(2):
        text = "".join(f"{text}\n" for text in texts[at::2])
        (folder / "in" / f"{at}.{form}").write_text(text, newline="")
    schema = hostile.FLAT_SCHEMA if form == "flat" else READ[form][1]
    return ps.files(folder / "in", "csv" if form == "csv" else "json", schema, header=False), len(texts)


def topic_of(folder: Path, form: str) -> tuple[Any, int]:
    """A topic with generated values, some of which are no text at all."""
    raw = [b"", b" ", b"\xff", b'{"id":1}\n{"id":2}', b'{"id":1}\n', b'{"s":"\xff"}', None]
    texts = [t.encode() for t in hostile.json_texts(MANY, 5, ("m",))] if form == "json" else list(hostile.texts(MANY))
    with Log(folder / "log") as log:
        log.create_topic("hostile", 2)
        with log.producer() as producer:
            for value in (*raw, *texts):
                producer.send("hostile", value)
            producer.send("hostile", b'{"id":7}', timestamp=2**62)
    schema = hostile.PLAIN_SCHEMA if form == "json" else None
    return ps.topic("hostile", schema, format=form, path=folder / "log"), len(raw) + len(texts) + 1


@pytest.mark.timeout(900)
@pytest.mark.parametrize("runtime", ["local", *(pytest.param(r, marks=pytest.mark.spark) for r in ("bounded", "live"))])
@pytest.mark.parametrize(
    ("kind", "form"), [("files", "json"), ("files", "flat"), ("files", "csv"), ("topic", "json"), ("topic", "text")]
)
def test_generated_records_stop_no_flow(
    given: Callable[[str, str], Given],
    request: pytest.FixtureRequest,
    tmp_path: Path,
    kind: str,
    form: str,
    runtime: str,
) -> None:
    """Every record is output or a dead letter with a cause, the same on each runtime."""
    if runtime == "live" and kind == "files":
        pytest.skip("the same reading as bounded; topics are read live")
    made = given(kind, form)
    assert sum(made.expected.good.values()) + sum(made.expected.bad.values()) == made.many >= MANY
    assert made.expected.good
    assert all(cause for _, cause in made.expected.bad)
    if runtime == "local":
        return
    found = Outcome(made.source, tmp_path).run(runtime, lambda: request.getfixturevalue("penstock_spark"))
    assert found.good == made.expected.good
    assert sum(found.bad.values()) == sum(made.expected.bad.values())
    if form != "csv":  # of a line of CSV Spark keeps the values, not the text: a cause shows them as it writes them
        assert found.bad == made.expected.bad


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"id":1}{"id":2}', "data after the JSON value"),
        ('{"id":1,"m":{"a":1,"a":2}}', "field 'm'"),
        (hostile.nested(900), "deeper than 500"),
    ],
)
def test_a_hostile_line_stops_a_flow_that_keeps_no_dead_letters_with_the_cause(
    same: Case, tmp_path: Path, text: str, said: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text(f'{{"id":1}}\n{text}\n')
    flow = ps.Flow("stops")
    flow.source("in", ps.files(tmp_path / "in", "json", hostile.SCHEMA)).sink(
        "out", ps.callback(lambda rows, batch: None)
    )
    with pytest.raises(StepError) as stopped:
        same.run_local(flow) if same.in_process else run_bounded(flow.graph, same.spark())
    assert said in str(stopped.value)
    assert f"{tmp_path}/in/a.json, line 2" in str(stopped.value)
