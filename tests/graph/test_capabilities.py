"""What connectors can do: one record for each endpoint, and the checks that ask it."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

import pytest

import penstock as ps
from penstock import connectors as packages
from penstock.connectors.base import RowSink, SinkConnector, SourceConnector
from penstock.connectors.delivery import LedgerSink
from penstock.connectors.registry import connectors, sink_connector
from penstock.errors import FlowError, SchemaError
from penstock.graph.capabilities import DELIVERIES, WEAKER, Capabilities
from penstock.graph.endpoints.basic import nothing

ROOT = Path(__file__).resolve().parents[2]
PG, REDIS = "postgresql://u@127.0.0.1:1/none", "redis://127.0.0.1:1/0"
ENDPOINTS: dict[str, Any] = {
    "callback": ps.callback(print),
    "console": ps.console(),
    "files": ps.files("none/*.json", schema="n int"),
    "generate": ps.generate(lambda n: (n,), "n int", limit=1),
    "items": ps.items([], "n int"),
    "kafka": ps.kafka("t", "n int"),
    "log": ps.topic("t", "n int"),
    "nothing": nothing(),
    "postgres": ps.postgres(PG, "t", by="n", schema="n int"),
    "postgres_changes": ps.postgres_changes(PG, "t", slot="s", schema="n int"),
    "rate": ps.rate(limit=1),
    "redis_stream": ps.redis_stream(REDIS, "s", "n int"),
    "socket": ps.socket_lines(),
    "stdin": ps.stdin(),
    "write_files": ps.write_files("none"),
    "write_http": ps.write_http("http://127.0.0.1:1/"),
    "write_kafka": ps.write_kafka("t"),
    "write_log": ps.write_topic("t"),
    "write_postgres": ps.write_postgres(PG, "t"),
    "write_redis": ps.write_redis(REDIS, "list", name="l"),
}


def test_there_is_a_record_for_every_connector() -> None:
    assert set(ENDPOINTS) == set(connectors()) - {"spout"}
    assert {kind for kind, e in ENDPOINTS.items() if e.kind != kind} == set()


@pytest.mark.parametrize("kind", ENDPOINTS)
def test_the_capabilities_are_those_of_the_connector(kind: str) -> None:
    able: Capabilities = ENDPOINTS[kind].capabilities
    made = connectors()[kind]
    assert able.reads == (made.has("source") or able.runs_python)
    assert able.writes == made.has("sink")
    assert able.runs_locally == (made.has("local_reader") or made.has("local_writer"))
    assert not (made.has("local_reader") and not able.reads)
    assert not (made.has("local_writer") and not able.writes)
    assert bool(able.deliveries) == able.writes
    assert bool(able.package) == bool(able.extra)


PARTS = {
    "source": SourceConnector,
    "sink": SinkConnector,
}


@pytest.mark.parametrize("part", ["source", "sink", "local_reader", "local_writer", "check", "makes"])
def test_every_part_that_a_connector_names_is_there(part: str) -> None:
    for connector in connectors().values():
        if connector.has(part):
            found = connector.part(part)
            assert callable(found), connector
            if part in PARTS:
                assert issubclass(found, PARTS[part]), connector  # type: ignore[arg-type]  # what is no class fails here


def test_no_two_packages_declare_the_same_kind() -> None:
    names = [m.name for m in iter_modules(packages.__path__) if m.ispkg]
    kinds = [c.kind for n in names for c in import_module(f"penstock.connectors.{n}").CONNECTORS]
    assert sorted(kinds) == sorted(set(kinds))


ASKED = ("endpoint", "table", "e")


def _is_kind(node: ast.expr) -> bool:
    """Whether it is `endpoint.kind`, `x.endpoint.kind` or `x.table.kind`."""
    if not (isinstance(node, ast.Attribute) and node.attr == "kind"):
        return False
    owner = node.value
    return (isinstance(owner, ast.Attribute) and owner.attr in ASKED) or (
        isinstance(owner, ast.Name) and owner.id in ASKED
    )


def _decisions(tree: ast.AST) -> Iterator[ast.expr]:
    """What a module decides by: comparisons, look-ups, matches and the methods of text."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            yield from (node.left, *node.comparators)
        elif isinstance(node, ast.Subscript):
            yield node.slice
        elif isinstance(node, ast.Match):
            yield node.subject
        elif isinstance(node, ast.Call):
            yield from node.args if isinstance(node.func, ast.Attribute) and node.func.attr == "get" else ()
            yield node.func.value if isinstance(node.func, ast.Attribute) else node.func


def kinds_asked(text: str) -> list[int]:
    """The lines that decide something by the kind of an endpoint, or compare whatever kind with that of a connector."""
    tree = ast.parse(text)
    return sorted({node.lineno for node in _decisions(tree) if _is_kind(node)} | set(_kinds_named(tree)))


def _kinds_named(tree: ast.AST) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            named = {part.value for side in sides for part in ast.walk(side) if isinstance(part, ast.Constant)}
            if any(isinstance(side, ast.Attribute) and side.attr == "kind" for side in sides) and named & set(
                ENDPOINTS
            ):
                yield node.lineno


def test_nothing_but_the_registry_decides_by_the_kind_of_an_endpoint() -> None:
    source = ROOT / "src" / "penstock"
    found = {str(p.relative_to(source)): kinds_asked(p.read_text()) for p in source.rglob("*.py")}
    assert [p for p, lines in found.items() if lines] == ["connectors/registry.py"]


@pytest.mark.parametrize(
    "text",
    [
        "if node.endpoint.kind == 'files': pass",
        "if endpoint.kind in KINDS: pass",
        "[each for each in read if each.kind in ('kafka', 'write_kafka')]",
        "KINDS[sink.endpoint.kind]",
        "KINDS.get(self.table.kind)",
        "endpoint.kind.startswith('write_')",
        "match endpoint.kind:\n    case 'files': pass",
    ],
)
def test_a_module_that_decides_by_the_kind_is_found(text: str) -> None:
    assert kinds_asked(text) == [1]


@pytest.mark.parametrize("kind", [kind for kind, e in ENDPOINTS.items() if e.capabilities.writes])
def test_a_sink_holds_exactly_once_if_it_keeps_a_ledger(kind: str) -> None:
    made = sink_connector("out", ENDPOINTS[kind])
    assert ENDPOINTS[kind].capabilities.holds("exactly_once") == isinstance(made, LedgerSink)


def test_extras_are_those_of_the_package() -> None:
    text = (ROOT / "pyproject.toml").read_text()
    for endpoint in ENDPOINTS.values():
        if extra := endpoint.capabilities.extra:
            assert re.search(rf"^{extra} = \[", text, re.MULTILINE), extra


@pytest.mark.parametrize(("kind", "via"), [("kafka", "spark"), ("kafka", "python")])
def test_kafka_in_python_needs_no_jars_and_can_be_paced(kind: str, via: str) -> None:
    able = ps.kafka("t", "n int", via=via).capabilities
    assert (able.needs_jars, able.is_paced) == (via == "spark", via == "python")
    assert ps.write_kafka("t", via=via).capabilities.needs_jars is (via == "spark")


class Source(SourceConnector):
    """A source of the user's own."""


class Strong(RowSink):
    """A sink of the user's own that says what it can do."""

    capabilities = Capabilities(writes=True, deliveries=DELIVERIES, row_errors="reported")


def test_a_connector_of_ones_own_says_what_it_can_do() -> None:
    assert ps.connector(Source(), "n int").capabilities == Capabilities(reads=True)
    assert ps.connector(SinkConnector()).capabilities == Capabilities(writes=True, deliveries=WEAKER)
    flow = ps.Flow("own")
    read = flow.source("in", ps.connector(Source(), "n int"))
    read.sink("out", ps.connector(Strong()), on_error="dead_letter")
    with pytest.raises(FlowError, match="own can only be read"):
        read.sink("other", ps.connector(Source()))
    with pytest.raises(FlowError, match="own is a sink; it cannot be read"):
        flow.source("no", ps.connector(Strong(), "n int"))
    with pytest.raises(FlowError, match="only a topic of the log"):
        flow.source("shed", ps.connector(Source(), "n int"), shed=ps.shed(behind=1))


def test_building_reads_no_file() -> None:
    flow = ps.Flow("build")
    flow.source("in", ps.files("nowhere/at/all.json", schema="n int")).sink("out", ps.console())
    with pytest.raises(SchemaError, match=r"no schema of its own; give schema=\.\.\., as text or as ps\.files_schema"):
        flow.source("more", ps.files("nowhere/at/all.json"))
    with pytest.raises(SchemaError, match="no file is there to read the schema of"):
        ps.files_schema("nowhere/at/all.json")


def test_a_schema_is_read_from_the_first_file(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text('{"n": 1, "s": "x"}\n')
    (tmp_path / "b.csv").write_text("n,s\n1,x\n")
    assert str(ps.files_schema(tmp_path / "*.json")) == "n bigint, s string"
    assert str(ps.files_schema(tmp_path / "b.csv")) == "n bigint, s string"
    assert str(ps.files_schema(tmp_path, "text")) == "value string"
