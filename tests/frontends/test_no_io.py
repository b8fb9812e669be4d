"""Building a flow does no I/O, whichever way it is written: no file is looked at, no connection made, no process started."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import penstock as ps
from penstock import trident
from penstock.compiler.compile import compile_graph
from penstock.errors import FlowError
from tests.compiler.flows import FLOWS, Lines, Split, Upper, acked
from tests.graph.test_capabilities import ENDPOINTS

FORBIDDEN = ("socket.", "subprocess.", "os.", "open", "shutil.", "glob.", "sqlite3.", "tempfile.", "urllib.", "http.")
ALLOWED = ("os.putenv",)
PACKAGE = str(Path(ps.__file__).parent)
"""The grammars of texts are read from there, as modules are."""
IMPORTERS = ("<frozen importlib", "importlib")
seen: list[str] = []
is_watching = [False]


def _imports(frame: FrameType | None) -> bool:
    """Whether the call is made by the import of a module, which reads its file."""
    while frame is not None:
        if any(name in frame.f_code.co_filename for name in IMPORTERS):
            return True
        frame = frame.f_back
    return False


def _watch(event: str, about: tuple[Any, ...]) -> None:
    if not is_watching[0] or not event.startswith(FORBIDDEN) or event in ALLOWED:
        return
    if not _imports(sys._getframe(1)) and not str(about[0]).startswith(PACKAGE):
        seen.append(f"{event} {about!r:.200}")


@pytest.fixture(scope="module", autouse=True)
def hook() -> None:
    """Python has no way to take an audit hook away, so this one looks at nothing outside of these tests."""
    sys.addaudithook(_watch)


@contextmanager
def watched() -> Iterator[list[str]]:
    """What is done to the world meanwhile."""
    seen.clear()
    is_watching[0] = True
    try:
        yield seen
    finally:
        is_watching[0] = False


def sql() -> Any:
    return ps.sql_flow("""
        CREATE TABLE clicks (user STRING, ts TIMESTAMP, WATERMARK FOR ts AS ts - INTERVAL '2' MINUTE)
            WITH ('connector' = 'kafka', 'topic' = 'clicks', 'properties.bootstrap.servers' = '127.0.0.1:1', 'format' = 'json');
        CREATE TABLE found (user STRING, n BIGINT, PRIMARY KEY (user) NOT ENFORCED)
            WITH ('connector' = 'jdbc', 'url' = 'jdbc:postgresql://127.0.0.1:1/none', 'table-name' = 't');
        INSERT INTO found SELECT user, count(*) FROM clicks GROUP BY user;
    """)


def patterns_as_text() -> Any:
    flow = ps.Flow("texts")
    events = flow.source("events", ps.kafka("t", "id string, kind string, n int, ts timestamp"), event_time="ts")
    pattern = ps.pattern_text("every a=events(kind = 'a') -> b=events(kind = 'b' and n > a.n)")
    events.key_by("id").match("pairs", pattern, select={"id": "a.id"}).sink("out", ps.write_kafka("pairs"))
    return flow


def rules() -> Any:
    flow = ps.Flow("rules")
    events = flow.source("events", ps.kafka("t", "id string, n int"))
    found = events.rules("found", ps.rules("rule big if n > 100 do emit to big"))
    found["big"].sink("out", ps.console())
    return flow


def on_trident() -> Any:
    top = ps.TridentTopology("words")
    lines = top.new_stream("lines", ps.files("none/*.txt"))
    words = lines.each("value", lambda tup: [(word,) for word in tup[0].split()], "word string")
    counts = words.group_by("word").persistent_aggregate(None, trident.Count(), "n bigint")
    asked = top.new_drpc_stream("words").state_query(counts, "args", trident.MapGet(), "n bigint")
    assert asked.fields
    return top


class Exclaim(ps.Bolt):
    outputs = "request string, result string"

    def process(self, tup: Any) -> Any:
        yield tup[0], tup[1] + "!"


def drpc() -> Any:
    made = ps.LinearDRPCTopologyBuilder("exclaim")
    made.add_bolt(Exclaim, 2).shuffle_grouping()
    return made


def topology() -> Any:
    top = ps.Topology("words", {"topology.message.timeout.secs": 60})
    top.spout("lines", Lines)
    top.spout("more", ps.files("none/*.txt"))
    top.bolt("split", Split).shuffle("lines")
    top.bolt("count", Upper).fields("split", "word")
    top.sink("out", ps.write_postgres("postgresql://u@127.0.0.1:1/none", "t"), from_="count")
    return top


WAYS: dict[str, Callable[[], Any]] = {
    **{f"streams {name}": make for name, make in FLOWS.items()},
    **{make.__name__: make for make in (sql, patterns_as_text, rules, on_trident, drpc, topology, acked)},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_flow_is_built_and_compiled_without_io(way: str) -> None:
    with watched() as done:
        compile_graph(WAYS[way]().graph, live=True)
    assert done == []


FROM = (
    "flow: yaml\nsteps:\n  - {name: lines, source: {files: none/*.txt}}\n  - {name: out, from: lines, sink: console}\n"
)


def test_a_flow_file_is_read_and_nothing_else(tmp_path: Path) -> None:
    file = tmp_path / "flow.yaml"
    file.write_text(FROM)
    ps.flow_file(file)
    with watched() as done:
        compile_graph(ps.flow_file(file).graph)
    assert [each for each in done if str(file) not in each] == []
    assert done != []


@pytest.mark.parametrize("kind", ENDPOINTS)
def test_an_endpoint_is_named_and_not_asked(kind: str) -> None:
    """Servers, files and topics need not be there while the flow is built."""
    endpoint = ENDPOINTS[kind]
    with watched() as done:
        flow = ps.Flow("f")
        if endpoint.capabilities.reads:
            flow.source("in", endpoint).sink("out", ps.console())
        else:
            flow.source("in", ps.items([], "n int, value string")).sink("out", endpoint)
        compile_graph(flow.graph)
    assert done == []


def test_only_the_functions_that_say_so_ask_for_a_schema(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("id,user\n7,ada\n")
    with watched() as done:
        ps.files_schema(tmp_path / "a.csv")
    assert done != []
    with pytest.raises(FlowError), watched() as done:
        ps.Flow("f").source("in", ps.files(str(tmp_path / "*.csv")))
    assert done == []
