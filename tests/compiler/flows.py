"""Flows whose plans are kept as golden text, each for one thing the compiler promises."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import penstock as ps

MadeFlow = Callable[[], ps.Flow]
FLOWS: dict[str, MadeFlow] = {}


def kept(make: MadeFlow) -> MadeFlow:
    FLOWS[make.__name__] = make
    return make


def same(row: Any) -> Any:
    return row


def many(row: Any) -> Iterator[Any]:
    yield row


def positive(row: Any) -> bool:
    return bool(row.n > 0)


def first(one: Any, other: Any) -> Any:
    return one


class Meter(ps.Process):
    seen = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.seen += 1
        yield {"k": row.k, "n": self.seen}


class Longest(ps.Aggregator):
    schema = "string"

    def init(self) -> str:
        return ""

    def add(self, so_far: str, row: Any) -> str:
        return max(so_far, str(row.k), key=len)

    def merge(self, one: str, other: str) -> str:
        return max(one, other, key=len)


def start(name: str, source: str = "numbers") -> tuple[ps.Flow, ps.Stream]:
    flow = ps.Flow(name)
    return flow, flow.source(source, ps.items([("a", 1), ("b", 2)], "k string, n bigint"))


@kept
def word_count() -> ps.Flow:
    """A native aggregate: live, parts by Spark and a merge with the state; bounded, all of it by Spark."""
    flow = ps.Flow("word-count")
    lines = flow.source("lines", ps.items(["a b a", "c a"], "value string", batches=2))
    words = lines.flat_map("split", many, schema="word string")
    words.key_by("word").count("count").sink("out", ps.console())
    return flow


@kept
def one_python_pass() -> ps.Flow:
    """Python steps in a row are one pass."""
    flow, numbers = start("one-python-pass")
    made = numbers.map("clean", same).filter("keep", positive).flat_map("split", many, schema="k string, n bigint")
    made.map_batches("batches", same).sink("out", ps.console())
    return flow


@kept
def native_between() -> ps.Flow:
    """Native steps between Python steps go along, where Arrow computes them as Spark does: records leave the worker once."""
    flow, numbers = start("native-between")
    chosen = numbers.map("before", same).where("big", "n > 10").with_columns("twice", n="n * 2")
    chosen.map("after", same).sink("out", ps.console())
    return flow


@kept
def native_apart() -> ps.Flow:
    """A native step between Python steps stays in the JVM, where only Spark computes it or somebody else reads it."""
    flow, numbers = start("native-apart")
    long = numbers.map("before", same).where("long", "length(k) > 1").map("after", same)
    big = long.where("big", "n > 10")
    big.map("once", same).sink("out", ps.console())
    big.map("again", same).sink("other", ps.console())
    return flow


@kept
def all_native() -> ps.Flow:
    """Native steps alone: no record sees Python in a bounded run."""
    flow, numbers = start("all-native")
    chosen = numbers.where("big", "n > 10").with_columns("more", twice="n * 2").select("pick", "k", "twice")
    chosen.key_by("k").aggregate("stats", n="count(*)", mean="avg(twice)").sink("out", ps.console())
    return flow


@kept
def branch_in_python() -> ps.Flow:
    """A branch by Python functions, its ways and the union of them are one pass."""
    flow, numbers = start("branch-in-python")
    parts = numbers.map("clean", same).branch("sign", up=positive)
    up, rest = parts.up.map("raise", same), parts.otherwise.filter("some", positive)
    up.union("again", rest).map("last", same).sink("out", ps.console())
    rest.sink("others", ps.console())
    return flow


@kept
def native_branch() -> ps.Flow:
    """What a native branch reads is computed once, however many of its ways are read."""
    flow, numbers = start("native-branch")
    parts = numbers.where("some", "n > 0").branch("size", small="n < 10", large="n > 1000")
    parts.small.sink("small-out", ps.console())
    parts.large.with_columns("less", n="n div 1000").sink("large-out", ps.console())
    return flow


@kept
def process_then_map() -> ps.Flow:
    """A keyed class and the Python steps behind it are one pass."""
    flow, numbers = start("process-then-map")
    metered = numbers.map("clean", same).key_by("k").process("meter", Meter, schema="k string, n bigint")
    metered.map("after", same).filter("some", positive).sink("out", ps.console())
    return flow


@kept
def reduce_early() -> ps.Flow:
    """A reduce combines before the shuffle, in the pass that makes its records."""
    flow, numbers = start("reduce-early")
    numbers.map("clean", same).key_by("k").reduce("fold", first).map("after", same).sink("out", ps.console())
    return flow


@kept
def own_aggregate() -> ps.Flow:
    """An aggregate of the user's own combines before the shuffle as well, and takes native ones along."""
    flow, numbers = start("own-aggregate")
    numbers.key_by("k").aggregate("best", longest=Longest, n="count(*)").sink("out", ps.console())
    return flow


@kept
def totals_as_records() -> ps.Flow:
    """Taking totals as records computes nothing, so it does not part the merge from the map behind it."""
    flow, numbers = start("totals-as-records")
    numbers.key_by("k").count("count").as_records("each").map("after", same).sink("out", ps.console())
    return flow


@kept
def generated() -> ps.Flow:
    """A source made by a function runs in the pass of the Python step behind it."""
    flow = ps.Flow("generated")
    made = flow.source("made", ps.generate(same, "k string, n bigint", rows_per_second=100))
    made.map("clean", same).sink("out", ps.console())
    return flow


@kept
def two_sources() -> ps.Flow:
    """Several sources and sinks in one flow."""
    flow, left = start("two-sources", "left")
    right = flow.source("right", ps.items([("c", 3)], "k string, n bigint"))
    both = left.union("both", right)
    both.sink("all", ps.console())
    both.map("clean", same).sink("cleaned", ps.console())
    left.where("some", "n > 1").sink("lefts", ps.console())
    return flow


@kept
def shared_streams() -> ps.Flow:
    """A Python pass that several stages read is computed once; a native step on top of it is computed again."""
    flow, numbers = start("shared-streams")
    clean = numbers.map("clean", same)
    some = clean.where("some", "n > 1")
    clean.key_by("k").sum("total", "n").sink("totals", ps.console())
    some.key_by("n").count("count").sink("counts", ps.console())
    some.sink("out", ps.console())
    return flow


@kept
def side_outputs() -> ps.Flow:
    """Side outputs leave a pass from its middle."""
    flow, numbers = start("side-outputs")
    split = numbers.flat_map("split", many, "k string, n bigint", side={"bad": "why string", "late": "n bigint"})
    split.side("bad").sink("dead-letters", ps.console())
    split.filter("some", positive).sink("out", ps.console())
    return flow


@kept
def join() -> ps.Flow:
    """A join with a static table is native and moves nothing."""
    flow, numbers = start("join")
    table = ps.items([("a", "Ada")], "k string, name string")
    numbers.join("named", table, "k", how="left").where("known", "name is not null").sink("out", ps.console())
    return flow


@kept
def repartition() -> ps.Flow:
    """A repartition is a shuffle, and parts two Python passes."""
    flow, numbers = start("repartition")
    spread = numbers.map("before", same).repartition("spread", 8, "k").map("after", same)
    spread.repartition("even", 2).sink("out", ps.console())
    return flow


@kept
def loop() -> ps.Flow:
    """A loop: what is not done goes back to the beginning of the next round."""
    flow, numbers = start("loop")
    again = flow.feedback("again", "k string, n bigint")
    halved = numbers.union("both", again).with_columns("half", n="n div 2").map("step", same)
    parts = halved.branch("test", done="n <= 1")
    flow.feed(again, parts.otherwise)
    parts.done.sink("out", ps.console())
    return flow


@kept
def left_out() -> ps.Flow:
    """Steps that reach no sink do not run."""
    flow, numbers = start("left-out")
    numbers.map("useful", same).sink("out", ps.console())
    numbers.map("useless", same).where("lost", "n > 1")
    return flow


@kept
def two_keys() -> ps.Flow:
    """Two keyed steps in a row are two shuffles; a key made by an expression is native."""
    flow, numbers = start("two-keys")
    metered = numbers.key_by("k").process("meter", Meter, schema="k string, n bigint")
    metered.key_by(parity="n % 2").count("count").select("shown", "parity", "count").sink("out", ps.console())
    return flow


@kept
def patterns() -> ps.Flow:
    """Conditions are computed natively; events that satisfy none are dropped before the shuffle, unless a stage is strict."""
    flow = ps.Flow("patterns")
    events = flow.source("events", ps.items([], "k string, kind string, n int, ts timestamp"), event_time="ts")
    relaxed = ps.pattern("relaxed").begin("a", "kind = 'a'").followed_by("b", "kind = 'b' and n > a.n").within("10m")
    events.key_by("k").match("relaxed", relaxed, select={"k": "k", "n": "b.n"}).sink("out", ps.console())
    strict = ps.pattern("strict").begin("a", "kind = 'a'").next("b", "kind = 'b'")
    events.match("strict", strict, select={"a": "a.n", "b": "b.n"}).sink("pairs", ps.console())
    late = events.key_by("k").match("late", ps.pattern("one").begin("a", "kind = 'a'"), select={"n": "a.n"})
    late.side("late").sink("late-out", ps.console())
    return flow


@kept
def pattern_text() -> ps.Flow:
    """Events that fit no filter are left out before the shuffle, unless time counts from the first event of a key on."""
    flow = ps.Flow("pattern-text")
    events = flow.source("events", ps.items([], "k string, kind string, n int, ts timestamp"), event_time="ts")
    text = ps.pattern_text("every a=A(n > 3) -> b=B(n > a.n) where timer:within(10 min)", types="kind")
    events.key_by("k").match("hits", text, select={"k": "k", "n": "b.n"}).sink("out", ps.console())
    timed = ps.pattern_text("timer:interval(1 min) and not a=A", types="kind")
    events.match("quiet", timed, select={"many": "count(a)"}).sink("quiet-out", ps.console())
    return flow


@kept
def windows() -> ps.Flow:
    """Parts of native windows are made before the shuffle; late records that are read are found there too."""
    flow = ps.Flow("windows")
    events = flow.source("events", ps.items([], "k string, ts timestamp"), event_time="ts")
    counts = events.key_by("k").window(ps.sliding("60s", every="10s")).count("count")
    counts.sink("out", ps.console())
    counts.side("late").sink("late", ps.console())
    events.key_by("k").window(ps.session(lambda row: "5s")).count("visits").sink("visits-out", ps.console())
    events.key_by("k").window(ps.tumbling("10s")).aggregate("own", longest=Longest).sink("own-out", ps.console())
    return flow


@kept
def tables() -> ps.Flow:
    """Tables that change: rows that replace each other on the way to a sink, signed rows everywhere else."""
    flow = ps.Flow("tables")
    schema = "op string, id int, k string, n int, ts timestamp"
    people = flow.source("changes", ps.items([], schema), event_time="ts").as_table("people", "id")
    others = flow.source("others", ps.items([], "k string, m int, ts2 timestamp"), event_time="ts2")
    totals = others.key_by("k").sum("totals", "m")
    totals.select("renamed", "k", m="totals").sink("upserts", ps.console())
    people.where("some", "n > 1").sink("deletes", ps.console())
    people.join("joined", totals, on="k", how="left").key_by("k").aggregate("again", n="count(*)").sink(
        "out", ps.console()
    )
    people.union("both", people).sink("keyless", ps.console())
    people.key_by("k").reduce("folded", first).changelog("log").sink("records", ps.console())
    by_key = people.key_by("k")
    by_key.window(ps.tumbling("10s")).count("once").sink("windows", ps.console())
    by_key.window(ps.tumbling("10s"), mode="update").count("n").where("large", "n > 9").sink("updated", ps.console())
    people.sort("sorted").sink("in-order", ps.console())
    people.join("near", others, on="k", within="5s", prefix="o_").sink("pairs", ps.console())
    return flow


@kept
def views() -> ps.Flow:
    """Parts of one source, of which two are read: the rows and fields of the others are not kept for them."""
    flow = ps.Flow("views")
    events = flow.source("events", ps.items([], "kind int, user string, price int, note string, at timestamp"))
    buyers = events.where("is-buyer", "kind = 0").select("buyers", "user")
    bids = events.where("is-bid", "kind = 1").select("bids", "user", "price")
    bids.join("joined", buyers, on="user").sink("out", ps.console())
    return flow


@kept
def inside() -> ps.Flow:
    """Records with objects in them, of which two views are read, with times: only the values that are asked for go on."""
    flow = ps.Flow("inside")
    kinds = "kind int, person struct<id: int, name: string, at: timestamp>, bid struct<bidder: int, price: int, at: timestamp>"
    events = flow.source("events", ps.items([], kinds)).with_columns("timed", at="coalesce(person.at, bid.at)")
    timed = events.event_time("time", "at")
    people = timed.where("is-person", "kind = 0").select("people", id="person.id", name="person.name", at="at")
    bids = timed.where("is-bid", "kind = 1").select("bids", id="bid.bidder", price="bid.price", at="at")
    best = bids.key_by("id").window(ps.tumbling("10s")).aggregate("best", best="max(price)")
    people.select("ids", "id").join("joined", best.select("prices", "id", "best"), on="id").sink("out", ps.console())
    return flow


@kept
def equal() -> ps.Flow:
    """The same windows counted twice, as two subqueries of a statement do: in a bounded run once."""
    flow = ps.Flow("equal")
    bids = flow.source("bids", ps.items([], "auction int, at timestamp"), event_time="at")
    one, other = (
        bids.key_by("auction").window(ps.tumbling("10s")).aggregate(name, n="count(*)") for name in ("one", "other")
    )
    one.where("many", "n > 10").sink("first", ps.console())
    other.where("few", "n < 10").sink("second", ps.console())
    return flow


@kept
def whole() -> ps.Flow:
    """Tables of which all rows are there in a bounded run: Spark joins, ranks and counts them."""
    flow = ps.Flow("whole")
    bids = flow.source("bids", ps.items([], "auction int, price int"))
    totals = bids.key_by("auction").aggregate("totals", n="count(*)")
    joined = bids.join("joined", totals, on="auction", how="left")
    joined.key_by("n").aggregate("groups", dearest="max(price)").sink("counted", ps.console())
    totals.key_by("n").top("best", 3, by="auction").sink("ranked", ps.console())
    joined.sink("rows", ps.console())
    return flow


@kept
def by_one_key() -> ps.Flow:
    """Steps over tables that share their key: one pass, in which their rows stay where they are."""
    flow = ps.Flow("by_one_key")
    totals = flow.source("orders", ps.items([], "k string, n int")).key_by("k").aggregate("totals", many="count(*)")
    limits = (
        flow.source("limits", ps.items([], "name string, m int")).key_by("name").aggregate("limits-of", low="min(m)")
    )
    named = totals.where("some", "many > 1").select("named", "many", who="k")
    named.join("known", limits, on={"who": "name"}).where("over", "many > low").sink("out", ps.console())
    named.key_by("many").count("levels").sink("levels-out", ps.console())
    return flow


@kept
def computed() -> ps.Flow:
    """Expressions over aggregates: the step keeps the aggregates, each once, and a native step makes the results."""
    flow = ps.Flow("computed")
    events = flow.source("events", ps.items([], "k string, n int, ts timestamp"), event_time="ts")
    by_key = events.key_by("k")
    by_key.aggregate("means", mean="sum(n) / count(*)", rows="count(*)").sink("totals", ps.console())
    counts = events.window(ps.tumbling("10s")).aggregate("share", x="count(*) filter (where n > 1) / count(*)")
    counts.sink("shares", ps.console())
    counts.side("late").sink("late", ps.console())
    return flow


@ps.function
def score(a: int, b: int) -> float:
    return a / b


@kept
def functions() -> ps.Flow:
    """Python functions in expressions: the calls of a step are one pass before it, those inside of others too."""
    flow = ps.Flow("functions", functions=[score])
    numbers = flow.source("numbers", ps.items([], "k string, n int"))
    numbers.where("high", "score(score(n, 2), n + 1) > score(n, 2)").sink("some", ps.console())
    parts = numbers.branch("parts", large="score(n, 3) > 1")
    parts.large.sink("large", ps.console())
    parts.otherwise.sink("small", ps.console())
    numbers.key_by("k").aggregate("t", x="score(cast(sum(score(n, 2)) as bigint), count(*))").sink(
        "totals", ps.console()
    )
    return flow


class Lines(ps.Spout):
    outputs = "line string"
    reliable = True

    def next_tuple(self) -> Any:
        return ps.END


class Split(ps.BasicBolt):
    outputs = "word string"

    def process(self, tup: Any) -> Any:
        return tup.line.split()


class Upper(ps.BasicBolt):
    outputs = "word string"

    def process(self, tup: Any) -> Any:
        return [tup.word.upper()]


def acked() -> ps.Topology:
    """A topology with acks: root ids travel as far as bolts read them."""
    top = ps.Topology("acked")
    top.spout("lines", Lines())
    top.bolt("split", Split(), parallelism=2).shuffle("lines")
    top.bolt("upper", Upper(), parallelism=2).fields("split", "word")
    top.sink("words", ps.console(), from_="split")
    top.sink("out", ps.console(), from_="upper")
    return top
