"""The streams API: what each method makes, and what it says when it is used wrongly."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

import penstock as ps
from penstock.errors import (
    CaptureError,
    ExpressionError,
    FlowError,
    LoopError,
    NameTaken,
    PenstockError,
    SchemaError,
    UnknownName,
)
from penstock.graph.nodes import Changes, Port

FIELDS = "word string, n bigint, x double, tags array<string>"


@dataclass
class Post:
    user: str
    score: int


class Meter(ps.Process):
    def on_event(self, row: Any) -> Iterator[Post]:
        yield Post(row.word, 1)


class Silent(ps.Process):
    def on_event(self, row: Any) -> Any:
        return []


class NoEvent(ps.Process):
    pass


class NeedsArgument(Silent):
    def __init__(self, size: int) -> None:
        super().__init__()


class NoSuper(Silent):
    def __init__(self) -> None:
        pass


class Longest(ps.Aggregator):
    schema = "string"


class NoSchema(ps.Aggregator):
    pass


def same(row: Any) -> Any:
    return row


def to_post(row: Any) -> Post:
    return Post(row.word, 1)


def to_posts(row: Any) -> Iterator[Post]:
    yield Post(row.word, 1)


def two(one: Any, other: Any) -> Any:
    return one


def begin() -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow("flow")
    return flow, flow.source("start", ps.items([], FIELDS))


Made = Callable[[ps.Stream], ps.Stream]
MADE: list[tuple[str, Made, str]] = [
    ("map", lambda s: s.map("step", same), FIELDS),
    ("map", lambda s: s.map("step", same, "a int"), "a int"),
    ("map", lambda s: s.map("step", to_post), "user string, score bigint"),
    ("flat_map", lambda s: s.flat_map("step", same, "word string"), "word string"),
    ("flat_map", lambda s: s.flat_map("step", to_posts), "user string, score bigint"),
    ("filter", lambda s: s.filter("step", same), FIELDS),
    ("map_batches", lambda s: s.map_batches("step", same), FIELDS),
    ("map_batches", lambda s: s.map_batches("step", same, {"a": int}), "a bigint"),
    (
        "select",
        lambda s: s.select("step", "word", ps.col("n").alias("m"), k="n + 1"),
        "word string, m bigint, k bigint",
    ),
    (
        "with_columns",
        lambda s: s.with_columns("step", n="x", name="upper(word)"),
        "word string, n double, x double, tags array<string>, name string",
    ),
    ("where", lambda s: s.where("step", "n > 1"), FIELDS),
    ("where", lambda s: s.where("step", ps.col("n") > 1), FIELDS),
    ("explode", lambda s: s.explode("step", "tag", "tags"), FIELDS + ", tag string"),
    ("explode", lambda s: s.explode("step", "tags", "tags"), "word string, n bigint, x double, tags string"),
    ("union", lambda s: s.union("step", s), FIELDS),
    ("join", lambda s: s.join("step", ps.items([], "word string, id int"), "word"), FIELDS + ", id int"),
    (
        "join",
        lambda s: s.join("step", ps.items([], "word string, n bigint, id int"), ["word", "n"], how="left"),
        FIELDS + ", id int",
    ),
    ("join", lambda s: s.join("step", ps.connector(object()), "n", schema="n bigint, id int"), FIELDS + ", id int"),
    ("repartition", lambda s: s.repartition("step", 4, "word"), FIELDS),
    ("as_records", lambda s: s.as_records("step"), FIELDS),
    ("aggregate", lambda s: s.key_by("word").count("step"), "word string, step bigint"),
    ("aggregate", lambda s: s.key_by("word").count("step", into="many"), "word string, many bigint"),
    ("aggregate", lambda s: s.key_by("word").sum("step", "n * 2"), "word string, step bigint"),
    ("aggregate", lambda s: s.key_by("word").sum("step", of="x", into="total"), "word string, total double"),
    ("aggregate", lambda s: s.key_by(low="lower(word)").count("step"), "low string, step bigint"),
    (
        "aggregate",
        lambda s: s.key_by("word", "n").aggregate("step", top="max(x)", long=Longest),
        "word string, n bigint, top double, long string",
    ),
    ("reduce", lambda s: s.key_by("word").reduce("step", two), FIELDS),
    ("process", lambda s: s.key_by("word").process("step", Silent, "a int"), "a int"),
    ("process", lambda s: s.key_by("word").process("step", Meter), "user string, score bigint"),
    ("process", lambda s: s.key_by("word").process("step", NeedsArgument(3), "a int"), "a int"),
]


@pytest.mark.parametrize("kind, make, ddl", MADE)
def test_a_method_adds_a_step_of_its_kind_and_schema(kind: str, make: Made, ddl: str) -> None:
    flow, start = begin()
    made = make(start)
    assert str(made.schema) == ddl
    node = flow.graph.node("step")
    assert node.kind == kind
    assert re.fullmatch(r"test_streams\.py:\d+", node.line)


@pytest.mark.parametrize(
    "make, updates",
    [
        (lambda s: s, None),
        (lambda s: s.key_by("word").count("step"), ("word",)),
        (lambda s: s.key_by("word").reduce("step", two), ("word",)),
        (lambda s: s.key_by("word").process("step", Silent, "a int"), None),
        (lambda s: s.key_by("word").count("step").as_records("each"), None),
        (lambda s: s.key_by("word").count("step").with_columns("more", m="step + 1"), ("word",)),
        (lambda s: s.key_by("word").count("step").select("pick", "word"), ("word",)),
        (lambda s: s.key_by("word").count("step").map("same", same), ("word",)),
        (lambda s: s.key_by("word").count("step").repartition("spread", 2), ("word",)),
    ],
)
def test_totals_are_updates_until_they_are_taken_as_records(make: Made, updates: tuple[str, ...] | None) -> None:
    assert make(begin()[1]).updates == updates


@pytest.mark.parametrize(
    "make",
    [
        lambda s: s.with_columns("w", word="'z'"),
        lambda s: s.with_columns("w", word=ps.fn.upper(ps.col("word"))),
        lambda s: s.select("w", "n", word="upper(word)"),
        lambda s: s.select("w", "n"),
        lambda s: s.map("w", same, "n bigint"),
        lambda s: s.flat_map("w", same, "word string"),
        lambda s: s.union("w", s.select("again", "word", "n")),
    ],
)
def test_no_key_is_proved_when_its_fields_are_written_over_or_left_out(make: Made) -> None:
    assert make(begin()[1].key_by("word").count("n")).changes == Changes(None, deletes=True)


@pytest.mark.parametrize(
    "make, changes",
    [
        (lambda s: s, Changes(("word",), deletes=False)),
        (lambda s: s.rename("w", word="other"), Changes(("other",), deletes=False)),
        (lambda s: s.where("w", "n > 1"), Changes(("word",))),
        (lambda s: s.filter("w", same), Changes(("word",))),
        (lambda s: s.branch("w", a="n > 1").a, Changes(("word",))),
        (lambda s: s.key_by("n").count("m"), Changes(("n",))),
        (lambda s: s.key_by("n").top("t", 2, "word"), Changes(("n", "rank"))),
        (lambda s: s.key_by("n").distinct("d"), Changes(("n",))),
        (lambda s: s.aggregate("a", m="max(n)"), Changes(())),
        (lambda s: s.join("j", s, on="word", prefix="o_"), Changes(("word",))),
        (lambda s: s.join("j", s, on="n", prefix="o_"), Changes(None)),
        (lambda s: s.join("j", s, on="n", how="semi"), Changes(("word",))),
        (lambda s: s.changelog("c"), None),
        (lambda s: s.changelog("c").as_table("t", "word"), Changes(("word",))),
    ],
)
def test_how_a_table_changes_is_followed_through_the_steps(make: Made, changes: Changes | None) -> None:
    assert make(begin()[1].key_by("word").count("n")).changes == changes


def test_a_sink_that_only_adds_rows_refuses_a_table_whose_rows_may_go() -> None:
    some = begin()[1].key_by("word").count("n").where("some", "n > 1")
    with pytest.raises(FlowError, match=r"sink 'out' .*write_files sink as it is configured only adds rows.*changelog"):
        some.sink("out", ps.write_files("/nowhere", "json"))
    with pytest.raises(FlowError, match=r"no key is proved.*key='a field'"):
        some.select("less", "n").sink("out", ps.write_postgres("postgresql://h/d", "rows"))
    some.select("fewer", "n").sink("out", ps.write_postgres("postgresql://h/d", "rows", key="n"))
    with pytest.raises(
        FlowError, match=r"a table by word, of which several rows may have the same n: they would .*delete each other"
    ):
        some.sink("other", ps.write_redis("redis://h/0", key="n"))
    with pytest.raises(FlowError, match="write_redis sink as it is configured only adds rows"):
        some.sink("other", ps.write_redis("redis://h/0", "list", name="l"))
    some.changelog("log").sink("log-out", ps.write_files("/nowhere", "json"))
    some.sink("redis", ps.write_redis("redis://h/0", key=("word", "n")))
    some.sink("kafka", ps.write_kafka("t"))
    some.sink("topic", ps.write_topic("t"))


def test_the_key_of_running_totals_may_be_named_again() -> None:
    flow = ps.Flow("keys")
    totals = flow.source("rows", ps.items([], "user string")).key_by("user").count("n")
    assert totals.select("pick", "user", m="n + 1").with_columns("same", user="user").updates == ("user",)


def test_a_time_whose_name_is_a_word_of_sql_stays_the_event_time() -> None:
    rows = ps.Flow("times").source("rows", ps.items([], "timestamp timestamp"), event_time="timestamp")
    assert rows.select("pick", "timestamp").event_time_of == rows.event_time_of


@pytest.mark.parametrize("of", ["n + 1", ps.col("n") + 1])
def test_a_sum_takes_a_text_or_an_expression(of: Any) -> None:
    flow, start = begin()
    start.key_by("word").sum("total", of)
    timed = start.with_columns("now", ts="timestamp '2024-01-01 00:00:00'").event_time("timed", "ts")
    timed.key_by("word").window(ps.tumbling("10s")).sum("windows", of)
    for step in ("total", "windows"):
        assert [str(a) for a in flow.graph.node(step).aggregates] == ["sum(n + 1)"]  # type: ignore[attr-defined]


def test_a_branch_has_a_stream_for_each_condition_and_the_rest() -> None:
    _, start = begin()
    parts = start.branch("size", small="n < 10", odd=same)
    assert list(parts) == ["small", "odd", "otherwise"]
    assert parts.small.port == parts["small"].port == Port("size", "small")
    small, odd, rest = parts.values()
    assert {str(s.schema) for s in (small, odd, rest)} == {FIELDS}


def test_a_flat_map_has_side_outputs() -> None:
    _, start = begin()
    split = start.flat_map("split", same, "word string", side={"bad": "why string"})
    assert str(split.side("bad").schema) == "why string"
    assert split.side("bad").port == Port("split", "bad")


def test_a_key_made_by_an_expression_is_a_native_step_with_the_keyed_steps_name() -> None:
    flow, start = begin()
    start.key_by(low="lower(word)").count("count")
    assert flow.graph.node("count@key").kind == "with_columns"


def test_a_source_takes_its_schema_from_the_endpoint_or_from_the_user() -> None:
    flow = ps.Flow("flow")
    assert str(flow.source("one", ps.items([], "a int")).schema) == "a int"
    assert str(flow.source("two", ps.connector(object()), Post).schema) == "user string, score bigint"


def test_a_loop_is_closed_by_feeding_it() -> None:
    flow, start = begin()
    again = flow.feedback("again", FIELDS)
    both = start.union("both", again)
    flow.feed(again, both.where("some", "n > 1"))
    assert flow.graph.loops[0].fed_by == Port("some")


def test_a_flow_goes_on_after_its_graph_was_taken() -> None:
    flow, start = begin()
    before = flow.graph
    start.sink("out", ps.console())
    assert (len(before.nodes), len(flow.graph.nodes)) == (1, 2)


def total(s: ps.Stream) -> ps.Stream:
    return s.key_by("word").count("total")


Wrong = Callable[[ps.Flow, ps.Stream], Any]
AT = r" \(test_streams\.py:\d+\)"
STEP = rf"^step 'step'{AT}"
WRONG: list[tuple[type[PenstockError], str, Wrong]] = [
    # names
    (
        NameTaken,
        rf"^step 'start'{AT} must have a name of its own; the step made at test_streams\.py:\d+ has it",
        lambda f, s: s.map("start", same),
    ),
    (FlowError, rf"a step needs a name of letters.*{AT}, got 'two words'", lambda f, s: s.map("two words", same)),
    (
        FlowError,
        rf"a step needs a name of at most 150 characters.*{AT}.*300 characters",
        lambda f, s: s.map("x" * 300, same),
    ),
    (FlowError, r"a step needs a name.*The name comes first", lambda f, s: s.map(same, "step")),  # type: ignore[arg-type]
    (FlowError, r"a step needs a name.*got 'n > 1'", lambda f, s: s.where("n > 1")),
    (FlowError, rf"a flow needs a name.*{AT}, got ''", lambda f, s: ps.Flow("")),
    # endpoints
    (
        FlowError,
        rf"^source 'step'{AT} needs an endpoint such as ps.files.*, got 'x'",
        lambda f, s: f.source("step", "x"),  # type: ignore[arg-type]
    ),
    (FlowError, rf"^sink 'step'{AT} needs an endpoint such as ps.console", lambda f, s: s.sink("step", "x")),  # type: ignore[arg-type]
    (
        SchemaError,
        rf"^source 'step'{AT}: this endpoint has no schema",
        lambda f, s: f.source("step", ps.connector(object())),
    ),
    (
        SchemaError,
        rf"{STEP}: unknown type 'strng'.*did you mean 'string'",
        lambda f, s: f.source("step", ps.connector(object()), "a strng"),
    ),
    # functions
    (FlowError, rf"{STEP} needs a function, got 'x'", lambda f, s: s.map("step", "x")),  # type: ignore[arg-type]
    (FlowError, rf"{STEP} calls its function with 1 argument", lambda f, s: s.filter("step", two)),
    (FlowError, rf"{STEP} calls its function with 1 argument", lambda f, s: s.branch("step", a=two)),
    (FlowError, rf"{STEP} calls its function with 2 arguments", lambda f, s: s.key_by("word").reduce("step", same)),
    (SchemaError, rf"{STEP}: unknown type 'strng'", lambda f, s: s.map("step", same, "a strng")),
    (SchemaError, rf"{STEP} must say what it emits: schema='word string'", lambda f, s: s.flat_map("step", same)),
    (
        SchemaError,
        rf"{STEP}: unknown type 'strng'",
        lambda f, s: s.flat_map("step", same, "a int", side={"b": "a strng"}),
    ),
    (
        FlowError,
        rf"{STEP}: 'out' is the main output",
        lambda f, s: s.flat_map("step", same, "a int", side={"out": "a int"}),
    ),
    (SchemaError, rf"{STEP}: .*expected more", lambda f, s: s.map_batches("step", same, "a")),
    # expressions
    (ExpressionError, rf"{STEP}: no column 'wrod'; did you mean 'word'\?", lambda f, s: s.select("step", "wrod")),
    (ExpressionError, rf"{STEP}: cannot read the expression", lambda f, s: s.select("step", "n +")),
    (SchemaError, rf"{STEP}: field 'n' appears twice", lambda f, s: s.select("step", "n", "n")),
    (SchemaError, rf"{STEP}: a schema needs at least one field", lambda f, s: s.select("step")),
    (
        SchemaError,
        rf"{STEP}: field '__n': names that begin with two underscores",
        lambda f, s: s.select("step", __n="n"),
    ),
    (ExpressionError, rf"{STEP}: cannot read the expression", lambda f, s: s.with_columns("step", m="n +")),
    (
        ExpressionError,
        rf"{STEP}: .* must be a number, got array<string>",
        lambda f, s: s.with_columns("step", m="n + tags"),
    ),
    (FlowError, rf"{STEP}: with_columns needs at least one field", lambda f, s: s.with_columns("step")),
    (FlowError, r"where \(test_streams\.py:\d+\) takes a name and a condition", lambda f, s: s.where("step")),
    (ExpressionError, rf"{STEP}: where needs a boolean; n is bigint", lambda f, s: s.where("step", "n")),
    (ExpressionError, rf"{STEP}: cannot read the expression", lambda f, s: s.where("step", "n >")),
    (ExpressionError, rf"{STEP}: explode needs a list; word is string", lambda f, s: s.explode("step", "tag", "word")),
    (ExpressionError, rf"{STEP}: no column 'tag'; did you mean 'tags'\?", lambda f, s: s.explode("step", "tag", "tag")),
    # union, branch, side outputs
    (
        SchemaError,
        rf"{STEP}: all streams of a union have the same fields; start has .*, less has \(word string\)",
        lambda f, s: s.union("step", s.select("less", "word")),
    ),
    (FlowError, rf"{STEP}: a union is of streams, got 3", lambda f, s: s.union("step", 3)),  # type: ignore[arg-type]
    (FlowError, rf"{STEP}: start is a stream of another flow", lambda f, s: s.union("step", begin()[1])),
    (FlowError, rf"{STEP}: branch takes conditions by name", lambda f, s: s.branch("step")),
    (
        FlowError,
        rf"{STEP}: branch takes conditions by name, and 'otherwise' is always there",
        lambda f, s: s.branch("step", otherwise="n > 1"),
    ),
    (ExpressionError, rf"{STEP}: a branch needs a boolean; n is bigint", lambda f, s: s.branch("step", a="n")),
    (ExpressionError, rf"{STEP}: cannot read the expression", lambda f, s: s.branch("step", a="n >")),
    (UnknownName, r"no branch 'smal'; did you mean 'small'\?", lambda f, s: s.branch("step", small="n < 1").smal),
    (
        UnknownName,
        r"step 'step' has no output 'bda'; did you mean 'bad'\?",
        lambda f, s: s.flat_map("step", same, "a int", side={"bad": "a int"}).side("bda"),
    ),
    # keys
    (SchemaError, rf"^key_by{AT}: no field 'wrod'; did you mean 'word'\?", lambda f, s: s.key_by("wrod")),
    (FlowError, rf"^key_by{AT} needs at least one field", lambda f, s: s.key_by()),
    (SchemaError, rf"^key_by{AT}: a key is a plain value; 'x' is double", lambda f, s: s.key_by("x")),
    (SchemaError, rf"^key_by{AT}: a key is a plain value; 'tags' is array<string>", lambda f, s: s.key_by("tags")),
    (ExpressionError, rf"^key_by{AT}: no column 'm'", lambda f, s: s.key_by(k="m + 1")),
    (ExpressionError, rf"^key_by{AT}: cannot read the expression", lambda f, s: s.key_by(k="n +")),
    # keyed steps
    (SchemaError, rf"{STEP}: 'word' is a key already", lambda f, s: s.key_by("word").count("step", into="word")),
    (
        ExpressionError,
        rf"{STEP}: .*sum needs a number; word is string",
        lambda f, s: s.key_by("word").sum("step", "word"),
    ),
    (ExpressionError, rf"{STEP}: no column 'm'", lambda f, s: s.key_by("word").sum("step", "m")),
    (FlowError, rf"{STEP}: aggregate needs at least one", lambda f, s: s.key_by("word").aggregate("step")),
    (
        ExpressionError,
        rf"{STEP}: .*no aggregate 'maxx'.*did you mean 'max'",
        lambda f, s: s.key_by("word").aggregate("step", a="maxx(n)"),
    ),
    (
        ExpressionError,
        rf"{STEP}: 'a' must be an aggregate such as 'sum\(amount\)', got 'n'",
        lambda f, s: s.key_by("word").aggregate("step", a="n"),
    ),
    (
        ExpressionError,
        rf"{STEP}: .*top goes without distinct; it goes with: .*sum",
        lambda f, s: s.key_by("word").aggregate("step", a="top(distinct 2, n)"),
    ),
    (
        ExpressionError,
        rf"{STEP}: .*NoSchema must say its result type in `schema`",
        lambda f, s: s.key_by("word").aggregate("step", a=NoSchema),
    ),
    (FlowError, rf"{STEP} needs a penstock.Process class", lambda f, s: s.key_by("word").process("step", same)),  # type: ignore[arg-type]
    (FlowError, rf"{STEP}: NoEvent must define on_event", lambda f, s: s.key_by("word").process("step", NoEvent)),
    (
        FlowError,
        rf"{STEP}: NeedsArgument cannot be made without arguments.*give an instance",
        lambda f, s: s.key_by("word").process("step", NeedsArgument, "a int"),
    ),
    (
        FlowError,
        rf"{STEP}: NoSuper.__init__ must call super",
        lambda f, s: s.key_by("word").process("step", NoSuper, "a int"),
    ),
    (SchemaError, rf"{STEP} must say what it emits: schema=", lambda f, s: s.key_by("word").process("step", Silent)),
    # tables that change
    (
        FlowError,
        rf"{STEP}: process reads records, and 'total' emits a table.*a class with state of its own.*changelog.*as_records",
        lambda f, s: total(s).key_by("word").process("step", Silent, "a int"),
    ),
    # joins and tasks
    (
        SchemaError,
        rf"{STEP}: no field 'wrod'; did you mean 'word'\?",
        lambda f, s: s.join("step", ps.items([], "word string"), "wrod"),
    ),
    (
        SchemaError,
        rf"{STEP}: no field 'word'; there are: 'k'",
        lambda f, s: s.join("step", ps.items([], "k string"), "word"),
    ),
    (
        SchemaError,
        rf"{STEP}: 'n' is bigint in the stream and string in the table; cast one",
        lambda f, s: s.join("step", ps.items([], "n string"), "n"),
    ),
    (
        FlowError,
        rf"{STEP}: how is 'inner' or 'left', got 'outer'",
        lambda f, s: s.join("step", ps.items([], "n bigint"), "n", how="outer"),
    ),
    (
        SchemaError,
        rf"{STEP}: stream and table both have 'word'; rename one",
        lambda f, s: s.join("step", ps.items([], "n bigint, word string"), "n"),
    ),
    (
        SchemaError,
        rf"{STEP}: the table has no schema of its own",
        lambda f, s: s.join("step", ps.connector(object()), "n"),
    ),
    (FlowError, rf"{STEP}: both streams of a join need event time", lambda f, s: s.join("step", s, "n", within="1s")),
    (FlowError, rf"{STEP}: at least one task is needed, got 0", lambda f, s: s.repartition("step", 0)),
    (SchemaError, rf"{STEP}: no field 'wrod'; did you mean 'word'\?", lambda f, s: s.repartition("step", 2, "wrod")),
    # loops
    (
        LoopError,
        rf"^feed{AT} needs a stream made by flow.feedback\(...\); start is a source",
        lambda f, s: f.feed(s, s),
    ),
    (
        SchemaError,
        rf"^feedback 'step'{AT} carries \(a int\); start emits",
        lambda f, s: f.feed(f.feedback("step", "a int"), s),
    ),
    (
        SchemaError,
        rf"{STEP}: unknown type 'inte'; did|{STEP}: unknown type 'inte' in",
        lambda f, s: f.feedback("step", "a inte"),
    ),
    (LoopError, rf"^feedback 'step'{AT} is never fed", lambda f, s: (f.feedback("step", "a int"), f.graph)),
    (FlowError, r"flow 'empty' has no steps", lambda f, s: ps.Flow("empty").graph),
]


@pytest.mark.parametrize("error, message, wrong", WRONG)
def test_a_wrong_use_is_refused_by_step_and_line(error: type[PenstockError], message: str, wrong: Wrong) -> None:
    flow, start = begin()
    with pytest.raises(PenstockError, match=message) as caught:
        wrong(flow, start)
    assert type(caught.value) is error


def test_feeding_a_loop_twice_is_refused() -> None:
    flow, start = begin()
    again = flow.feedback("again", FIELDS)
    flow.feed(again, start)
    with pytest.raises(LoopError, match=rf"feedback 'again'{AT} is fed already, by start; union the streams first"):
        flow.feed(again, start)


def test_a_step_that_is_refused_leaves_the_flow_as_it_was() -> None:
    flow, start = begin()
    before = flow.graph
    with pytest.raises(ExpressionError):
        start.select("step", "wrod")
    with pytest.raises(ExpressionError):
        start.key_by(low="lower(word)").aggregate("step", a="n")
    assert [n.name for n in flow.graph.nodes] == [n.name for n in before.nodes]


def test_a_function_that_holds_a_lock_is_refused_while_the_flow_is_built() -> None:
    import threading

    lock = threading.Lock()
    with pytest.raises(CaptureError, match=rf"{STEP}: its function uses 'lock'"):
        begin()[1].map("step", lambda row: lock)


@pytest.mark.parametrize("field", ["name", "self", "named"])
def test_fields_may_have_any_name(field: str) -> None:
    start = begin()[1]
    assert field in start.with_columns("with", **{field: "word"}).schema
    assert field in start.select("pick", **{field: "word"}).schema
    assert field in start.branch("parts", **{field: "n > 1"})
    assert field in start.key_by("word").aggregate("total", **{field: "count(*)"}).schema


def test_the_line_in_an_error_is_the_users() -> None:
    start = begin()[1]
    with pytest.raises(ExpressionError) as caught:
        start.select("step", "wrod")
    here = caught.tb.tb_lineno
    assert f"(test_streams.py:{here})" in str(caught.value)


def test_a_flow_shows_its_name_and_size() -> None:
    assert repr(begin()[0]) == "Flow('flow', 1 step)"


@pytest.mark.parametrize(
    ("by", "kind", "text"),
    [
        (["cty"], "json", "no field 'cty'|'cty'"),
        (["tags"], "json", "partition_by takes plain and exact values; 'tags' is array<string>"),
        (["x"], "json", "'x' is double"),
        (["city", "City"], "json", "names a field twice"),
        (["city", "x", "tags"], "json", "'x' is double"),
        (["city"], "text", "text files hold one field"),
    ],
)
def test_fields_that_cannot_name_folders_are_refused(by: list[str], kind: str, text: str) -> None:
    rows = ps.Flow("f").source("in", ps.items([], "city string, x double, tags array<string>"))
    with pytest.raises(FlowError, match=text):
        rows.sink("out", ps.write_files("out", kind, partition_by=by))


def test_folders_for_all_fields_are_refused_and_some_are_shown() -> None:
    flow = ps.Flow("f")
    rows = flow.source("in", ps.items([], "city string, n int"))
    with pytest.raises(FlowError, match=r"partition_by names every field \(n, city\)"):
        rows.sink("all", ps.write_files("out", partition_by=["n", "city"]))
    rows.sink("out", ps.write_files("out", partition_by="city"))
    assert flow.graph.node("out").settings()["partition_by"] == "city"


@pytest.mark.parametrize(
    ("step", "hint"),
    [("filtr", "a stream has no 'filtr'; did you mean 'filter'"), ("count", r"stream\.key_by\('field'\)\.count")],
)
def test_a_step_that_a_stream_does_not_have(step: str, hint: str) -> None:
    words = ps.Flow("f").source("words", ps.items([], "word string"))
    with pytest.raises(AttributeError, match=hint):
        getattr(words, step)
