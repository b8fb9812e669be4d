"""The steps that generated flows are made of, one function each: adding a step to the suite is adding a function here.

A function gets a pipeline and gives it with one more step and the records that must come out of that.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import penstock as ps
from tests.generated.pipe import SECOND, Pipe, R

Operator = Callable[[Pipe], Pipe]
STEPS: list[Operator] = []
ENDS: list[Operator] = []


def step(function: Operator) -> Operator:
    """A step that other steps may follow."""
    STEPS.append(function)
    return function


def end(function: Operator) -> Operator:
    """A step that gives a table, which ends a pipeline."""
    ENDS.append(function)
    return function


@step
def where(p: Pipe) -> Pipe:
    m = p.rng.randint(2, 5)
    return p.then(p.stream.where(p.name("where"), f"v % {m} <> 0"), [r for r in p.rows if r.v % m], f"where {m}")


@step
def where_key(p: Pipe) -> Pipe:
    k = p.rng.choice(["a", "b", "c"])
    rows = [r for r in p.rows if r.k is not None and r.k != k]
    return p.then(p.stream.where(p.name("where"), f"k <> '{k}'"), rows, f"where k <> {k}")


@step
def with_columns(p: Pipe) -> Pipe:
    c = p.rng.randint(1, 9)
    rows = [r._replace(v=r.v * 2 + c) for r in p.rows]
    return p.then(p.stream.with_columns(p.name("add"), v=f"v * 2 + {c}"), rows, f"v * 2 + {c}")


@step
def select(p: Pipe) -> Pipe:
    made = p.stream.select(p.name("select"), p.time, v="v + length(coalesce(k, ''))", k="upper(k)")
    back = made.select(p.name("back"), "k", "v", p.time)
    rows = [R(r.k and r.k.upper(), r.v + len(r.k or ""), r.t) for r in p.rows]
    return p.then(back, rows, "select")


@step
def explode(p: Pipe) -> Pipe:
    made = p.stream.explode(p.name("explode"), "x", "array(v, v + 1)")
    back = made.select(p.name("pick"), "k", p.time, v="x").select(p.name("back"), "k", "v", p.time)
    return p.then(back, [r._replace(v=r.v + i) for r in p.rows for i in (0, 1)], "explode")


@step
def map_(p: Pipe) -> Pipe:
    c = p.rng.randint(1, 9)
    made = p.stream.map(p.name("map"), lambda row: row.replace(v=row.v + c))
    return p.then(made, [r._replace(v=r.v + c) for r in p.rows], f"map + {c}")


@step
def filter_(p: Pipe) -> Pipe:
    m = p.rng.randint(2, 4)
    made = p.stream.filter(p.name("filter"), lambda row: row.v % m != 1)
    return p.then(made, [r for r in p.rows if r.v % m != 1], f"filter {m}")


@step
def flat_map(p: Pipe) -> Pipe:
    m = p.rng.randint(2, 4)
    made = p.stream.flat_map(
        p.name("flat"), lambda row: [row.replace(v=row.v + i) for i in range(row.v % m)], schema=p.stream.schema
    )
    return p.then(made, [r._replace(v=r.v + i) for r in p.rows for i in range(r.v % m)], f"flat_map {m}")


def _doubled(batch: Any) -> Any:
    return batch.set_column(batch.schema.names.index("v"), "v", pc.multiply(batch["v"], pa.scalar(2, pa.int64())))


@step
def map_batches(p: Pipe) -> Pipe:
    made = p.stream.map_batches(p.name("arrow"), _doubled)
    return p.then(made, [r._replace(v=r.v * 2) for r in p.rows], "map_batches")


@ps.function
def plus(v: int, k: str | None) -> int:
    return v + len(k or "")


@ps.function(vectorized=True, takes=["bigint"], returns="bigint")
def twice(v: Any) -> Any:
    return pc.multiply(v, 2)


@step
def functions(p: Pipe) -> Pipe:
    """Python functions in expressions, one inside of the other."""
    m = p.rng.randint(2, 4)
    made = p.stream.where(p.name("where"), plus("v", "k") % m != 0)
    back = made.with_columns(p.name("call"), v=twice(plus("v", "k")) + plus("v", "k"))
    rows = [r._replace(v=3 * n) for r in p.rows for n in [r.v + len(r.k or "")] if n % m]
    return p.then(back, rows, f"functions {m}")


@step
def repartition(p: Pipe) -> Pipe:
    fields = p.rng.choice([(), ("k",), ("v",)])
    return p.then(
        p.stream.repartition(p.name("spread"), p.rng.choice([1, 2, 4]), *fields), p.rows, f"repartition {fields}"
    )


@step
def branch_and_union(p: Pipe) -> Pipe:
    parts = p.stream.branch(p.name("branch"), odd="v % 2 = 1", small="v < 8")
    low = parts.small.map(p.name("low"), lambda row: row.replace(v=row.v + 100))
    made = parts.odd.union(p.name("union"), low, parts.otherwise)
    rows = [r._replace(v=r.v + 100) if r.v % 2 == 0 and r.v < 8 else r for r in p.rows]
    return p.then(made, rows, "branch and union")


@step
def join_table(p: Pipe) -> Pipe:
    how = p.rng.choice(["inner", "left"])
    table = [("a", 1), ("b", 2), ("b", 3), ("A", 4), ("B", 5)]
    joined = p.stream.join(p.name("join"), ps.items(table, "k string, w bigint"), "k", how=how)
    made = joined.select(p.name("joined"), "k", p.time, v="v + coalesce(w, 0)").select(p.name("back"), "k", "v", p.time)
    rows: list[R] = []
    for r in p.rows:
        found = [w for k, w in table if k == r.k]
        rows += [r._replace(v=r.v + w) for w in (found or ([0] if how == "left" else []))]
    return p.then(made, rows, f"join {how}")


@step
def sort_by_key(p: Pipe) -> Pipe:
    return p.then(p.stream.key_by("k").sort(p.name("sort"), by="v desc"), p.rows, "sort by k")


@step
def sort_all(p: Pipe) -> Pipe:
    span = p.rng.choice([None, "7s"])
    return p.then(p.stream.sort(p.name("sort"), by="v", within=span), p.rows, f"sort within {span}")


@step
def distinct_rows(p: Pipe) -> Pipe:
    made = p.stream.key_by("k", "v", p.time).distinct(p.name("distinct"))
    return p.then(made, sorted(set(p.rows), key=repr), "distinct rows")


@step
def distinct_in_time(p: Pipe) -> Pipe:
    span = p.rng.choice([None, 3, 11])
    made = p.stream.key_by("k").distinct(p.name("distinct"), within=span, eager=False)
    rows: list[R] = []
    for mine in p.by_key().values():
        last: int | None = None
        for r in sorted(mine, key=lambda r: (r.t, r.v)):
            if last is None or (span is not None and r.t - last >= span * SECOND):
                rows.append(r)
                last = r.t
    return p.then(made, rows, f"distinct within {span}")


class Sums(ps.Process):
    """The running sum of a key, in the order its records come."""

    total = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Any]:
        self.total += row.v
        yield row.replace(v=self.total)


@step
def process_in_order(p: Pipe) -> Pipe:
    """Sorted first, so that the order does not depend on anything else."""
    ordered = p.stream.key_by("k").sort(p.name("sort"), by="v")
    made = ordered.key_by("k").process(p.name("sums"), Sums, p.stream.schema)
    rows: list[R] = []
    for mine in p.by_key().values():
        total = 0
        for r in sorted(mine, key=lambda r: (r.t, r.v)):
            total += r.v
            rows.append(r._replace(v=total))
    return p.then(made, rows, "sort and process")


def _windows(p: Pipe, size: int, every: int) -> list[R]:
    found: dict[tuple[str | None, int], int] = {}
    for r in p.rows:
        time = p.at(r)
        start = time - time % every
        while start > time - size:
            found[r.k, start + size] = found.get((r.k, start + size), 0) + r.v + 1
            start -= every
    return [R(k, v, t) for (k, t), v in found.items()]


@step
def tumbling(p: Pipe) -> Pipe:
    size = p.rng.choice([4, 9])
    made = p.stream.key_by("k").window(ps.tumbling(f"{size}s")).aggregate(p.name("window"), x="sum(v)", n="count(*)")
    back = made.select(p.name("back"), "k", v="x + n", window_end="window_end")
    return p.then(back, _windows(p, size * SECOND, size * SECOND), f"tumbling {size}s")


@step
def sliding(p: Pipe) -> Pipe:
    window = p.stream.key_by("k").window(ps.sliding("10s", every="4s"))
    made = window.aggregate(p.name("window"), x="sum(v)", n="count(*)")
    back = made.select(p.name("back"), "k", v="x + n", window_end="window_end")
    return p.then(back, _windows(p, 10 * SECOND, 4 * SECOND), "sliding 10s every 4s")


@step
def window_without_a_key(p: Pipe) -> Pipe:
    """An expression over aggregates, over all records."""
    made = p.stream.window(ps.tumbling("6s")).aggregate(
        p.name("window"), v="sum(v) filter (where v % 2 = 0) + count(*)", k="max_by(struct(k, v), v).k"
    )
    back = made.select(p.name("back"), "k", v="coalesce(v, 0)", window_end="window_end")
    rows: list[R] = []
    for end, mine in _spans(p, 6 * SECOND).items():
        even = [r.v for r in mine if r.v % 2 == 0]
        best = max(mine, key=lambda r: (r.v, (r.k is not None, r.k or "")))
        rows.append(R(best.k, sum(even) + len(mine) if even else 0, end))
    return p.then(back, rows, "window without a key")


def _spans(p: Pipe, size: int) -> dict[int, list[R]]:
    found: dict[int, list[R]] = {}
    for r in p.rows:
        found.setdefault(p.at(r) - p.at(r) % size + size, []).append(r)
    return found


@step
def top_in_a_window(p: Pipe) -> Pipe:
    plain = p.stream.select(p.name("plain"), "k", "v", happened=p.time)  # windows add a window_end of their own
    made = plain.key_by("k").window(ps.tumbling("6s")).top(p.name("top"), 2, by="v desc")
    back = made.select(p.name("back"), "k", v="v + rank", window_end="window_end")
    rows: list[R] = []
    for end, mine in _spans(p, 6 * SECOND).items():
        for k in {r.k for r in mine}:
            best = sorted((r.v for r in mine if r.k == k), reverse=True)[:2]
            rows += [R(k, v + rank, end) for rank, v in enumerate(best, 1)]
    return p.then(back, rows, "top in a window")


@step
def sessions(p: Pipe) -> Pipe:
    gap = p.rng.choice([2.3, 5.3])  # never exactly between two records; test_generated.py has that case
    made = p.stream.key_by("k").window(ps.session(f"{gap}s")).aggregate(p.name("window"), x="sum(v)", n="count(*)")
    back = made.select(p.name("back"), "k", v="x + n", window_end="window_end")
    rows: list[R] = []
    for k, mine in p.by_key().items():
        ends: list[list[int]] = []
        for r in sorted(mine, key=p.at):
            time = p.at(r)
            if ends and time < ends[-1][0]:
                ends[-1] = [time + round(gap * SECOND), ends[-1][1] + r.v + 1]
            else:
                ends.append([time + round(gap * SECOND), r.v + 1])
        rows += [R(k, v, t) for t, v in ends]
    return p.then(back, rows, f"sessions {gap}s")


def _right(p: Pipe, q: Pipe) -> ps.Stream:
    """The other stream, with names of its own."""
    return q.stream.select(p.name("right"), q.time, k="k", w="v")


@step
def union_other(p: Pipe) -> Pipe:
    q = p.other
    if q is None or (p.time, p.shift) != (q.time, q.shift):
        return repartition(p)
    return p.then(p.stream.union(p.name("union"), q.stream), [*p.rows, *q.rows], "union of two sources")


@step
def join_streams(p: Pipe) -> Pipe:
    q = p.other
    if q is None:
        return where(p)
    how = p.rng.choice(["inner", "left", "right", "full"])
    low, high = p.rng.choice([(0, 3), (-2, 2), (-5, 0)])
    right = _right(p, q)
    name = p.name("join")
    later = name.replace("-", "_")
    joined = p.stream.join(name, right, "k", within=(f"{low}s", f"{high}s"), how=how, into=later, prefix="other_")
    made = joined.select(p.name("back"), later, k="k", v="coalesce(v, 0) + coalesce(other_w, 0)")
    made = made.select(p.name("order"), "k", "v", later)
    pairs = [
        (a, b)
        for a, b in product(p.rows, q.rows)
        if a.k is not None and a.k == b.k and low * SECOND <= q.at(b) - p.at(a) <= high * SECOND
    ]
    rows = [R(a.k, a.v + b.v, max(p.at(a), q.at(b))) for a, b in pairs]
    if how in ("left", "full"):
        met = {id(a) for a, _ in pairs}
        rows += [R(a.k, a.v, p.at(a)) for a in p.rows if id(a) not in met]
    if how in ("right", "full"):
        met = {id(b) for _, b in pairs}
        rows += [R(b.k, b.v, q.at(b)) for b in q.rows if id(b) not in met]
    return p.then(made, rows, f"{how} join within {low}s, {high}s")


@step
def join_keeping_time(p: Pipe) -> Pipe:
    """The event time of the result is that of this stream, so pairs come out behind it."""
    q = p.other
    if q is None:
        return where(p)
    how = p.rng.choice(["inner", "left"])
    joined = p.stream.join(p.name("join"), _right(p, q), "k", within=("-1s", "4s"), how=how, prefix="o_")
    made = joined.select(p.name("back"), "k", p.time, v="v + coalesce(o_w, 0)").select(
        p.name("order"), "k", "v", p.time
    )
    rows: list[R] = []
    for a in p.rows:
        found = [b.v for b in q.rows if a.k is not None and a.k == b.k and -SECOND <= q.at(b) - p.at(a) <= 4 * SECOND]
        rows += [a._replace(v=a.v + w) for w in (found or ([0] if how == "left" else []))]
    return p.then(made, rows, f"{how} join, time of this stream")


@step
def asof_join(p: Pipe) -> Pipe:
    q = p.other
    if q is None:
        return where(p)
    single = q.stream.key_by("k", q.time).distinct(p.name("single"), eager=False)
    right = single.select(p.name("right"), q.time, k="k", w="v")
    far = p.rng.choice([None, 6])
    joined = p.stream.asof_join(p.name("asof"), right, "k", tolerance=far, prefix="o_")
    made = joined.select(p.name("back"), "k", p.time, v="v + coalesce(o_w, 0)").select(
        p.name("order"), "k", "v", p.time
    )
    rows: list[R] = []
    for a in p.rows:
        before = [b for b in q.rows if a.k is not None and b.k == a.k and q.at(b) <= p.at(a)]
        near = [b for b in before if far is None or p.at(a) - q.at(b) <= far * SECOND]
        best = max(near, key=lambda b: (b.t, -b.v), default=None)
        rows.append(a._replace(v=a.v + (best.v if best is not None else 0)))
    return p.then(made, rows, f"asof join {far}")


@step
def window_join(p: Pipe) -> Pipe:
    q = p.other
    if q is None or p.time == "window_end":  # its own window_end would appear twice
        return where(p)
    size = 5 * SECOND
    made = p.stream.window_join(p.name("both"), _right(p, q), "k", ps.tumbling("5s"), prefix="o_")
    back = made.select(p.name("back"), "k", v="v + o_w", window_end="window_end")
    rows = [
        R(a.k, a.v + b.v, (p.at(a) // size + 1) * size)
        for a, b in product(p.rows, q.rows)
        if a.k is not None and a.k == b.k and p.at(a) // size == q.at(b) // size
    ]
    return p.then(back, rows, "window join")


@end
def count(p: Pipe) -> Pipe:
    table = [(k, len(mine)) for k, mine in p.by_key().items()]
    return p.end(p.stream.key_by("k").count(p.name("count"), into="n"), table, "count")


@end
def computed(p: Pipe) -> Pipe:
    """Expressions over aggregates, with the key and a Python function in them."""
    made = p.stream.key_by("k").aggregate(
        p.name("agg"),
        mean="sum(v) / count(*)",
        odd="count(*) filter (where v % 2 = 1)",
        named="concat(coalesce(k, '-'), cast(max(v) - min(v) as string))",
        doubled=twice(ps.fn.sum(ps.col("v"))) + 1,
    )
    table = [
        (k, sum(vs) / len(vs), sum(v % 2 for v in vs), f"{k or '-'}{max(vs) - min(vs)}", 2 * sum(vs) + 1)
        for k, mine in p.by_key().items()
        for vs in [[r.v for r in mine]]
    ]
    return p.end(made, table, "computed")


@end
def aggregate(p: Pipe) -> Pipe:
    made = p.stream.key_by("k").aggregate(p.name("agg"), s="sum(v)", lo="min(v)", hi="max(v)", mean="avg(v)")
    table = [
        (k, sum(vs), min(vs), max(vs), sum(vs) / len(vs))
        for k, mine in p.by_key().items()
        for vs in [[r.v for r in mine]]
    ]
    return p.end(made, table, "aggregate")


class Longest(ps.Aggregator):
    """An aggregate in Python."""

    schema = "bigint"

    def init(self) -> int:
        return 0

    def add(self, so_far: int, row: Any) -> int:
        return max(so_far, int(row.v))

    def merge(self, one: int, other: int) -> int:
        return max(one, other)


@end
def own_aggregate(p: Pipe) -> Pipe:
    made = p.stream.key_by("k").aggregate(p.name("own"), most=Longest, n="count(*)")
    return p.end(made, [(k, max(r.v for r in mine), len(mine)) for k, mine in p.by_key().items()], "own aggregate")


@end
def reduce(p: Pipe) -> Pipe:
    made = p.stream.key_by("k").reduce(p.name("best"), lambda a, b: max(a, b, key=lambda r: (r.v, tuple(r)[2])))
    table = [max(mine, key=lambda r: (r.v, r.t)) for mine in p.by_key().values()]
    back = made.select(p.name("back"), "k", "v", p.time)
    return p.end(back, table, "reduce")


@end
def top(p: Pipe) -> Pipe:
    n = p.rng.randint(1, 3)
    made = p.stream.key_by("k").top(p.name("top"), n, by=f"v desc, {p.time}")
    table = [
        (*r, rank)
        for mine in p.by_key().values()
        for rank, r in enumerate(sorted(mine, key=lambda r: (-r.v, r.t))[:n], 1)
    ]
    return p.end(made, table, f"top {n}")


@end
def update_windows(p: Pipe) -> Pipe:
    window = p.stream.key_by("k").window(ps.tumbling("6s"), mode="update")
    made = window.aggregate(p.name("window"), x="sum(v)", n="count(*)").select(
        p.name("back"), "k", "window_start", "window_end", v="x + n"
    )
    size = 6 * SECOND
    return p.end(made, [(k, t - size, t, v) for k, v, t in _windows(p, size, size)], "tumbling, updates")


@end
def count_of_counts(p: Pipe) -> Pipe:
    """A total over totals: what a total was is taken back when it changes."""
    totals = p.stream.key_by("k").aggregate(p.name("totals"), n="count(*)", s="sum(v)")
    made = totals.key_by(third="s % 3").aggregate(p.name("net"), keys="count(*)", rows="sum(n)", mean="avg(s)")
    found: dict[int, list[tuple[int, int]]] = {}
    for mine in p.by_key().values():
        total = sum(r.v for r in mine)
        found.setdefault(total % 3, []).append((len(mine), total))
    table = [
        (third, len(mine), sum(n for n, _ in mine), sum(s for _, s in mine) / len(mine))
        for third, mine in found.items()
    ]
    return p.end(made, table, "count of counts")


@end
def ranks_of_totals(p: Pipe) -> Pipe:
    """Rows of a table over all others, downwards by a text, in which null comes last."""
    totals = p.stream.key_by("k").aggregate(p.name("totals"), n="count(*)")
    made = totals.over("k desc").aggregate(p.name("ranks"), place="rank()", so_far="sum(n)")
    keys = sorted(p.by_key(), key=lambda k: (k is not None, k or ""), reverse=True)
    many = [len(p.by_key()[k]) for k in keys]
    table = [(k, many[at], at + 1, sum(many[: at + 1])) for at, k in enumerate(keys)]
    return p.end(made, table, "ranks of totals")


@end
def structs_and_lists(p: Pipe) -> Pipe:
    """A table without a key, whose rows hold structs and lists and change."""
    totals = p.stream.key_by("k").aggregate(p.name("totals"), n="count(*)", vs="collect_list(v, v)")
    made = totals.select(p.name("loose"), both="struct(n, vs[0] as least)", vs="vs", half="n / 2")
    table = [
        ({"n": len(vs), "least": vs[0]}, vs, len(vs) / 2)
        for mine in p.by_key().values()
        for vs in [sorted(r.v for r in mine)]
    ]
    return p.end(made, table, "structs and lists")


@end
def join_by_one_field_twice(p: Pipe) -> Pipe:
    """A left join without a time, in which one field equals two of the other stream."""
    q = p.other
    if q is None:
        return count(p)
    right = q.stream.select(p.name("right"), m="v", w="v % 7")
    made = p.stream.select(p.name("left"), "k", "v").join(p.name("join"), right, [("v", "m"), ("v", "w")], how="left")
    table: list[Any] = []
    for r in p.rows:
        found = [o.v for o in q.rows if o.v == r.v and o.v % 7 == r.v]
        table += [(r.k, r.v, v, v) for v in found] or [(r.k, r.v, None, None)]
    return p.end(made, table, "join by one field twice")
