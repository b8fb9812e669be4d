"""Flows from a seed: several pipelines over the same sources.

Pipelines of records share a sink, so that Spark runs them as one job; each table has a sink of its own.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import penstock as ps
from penstock.testing import BARRIER, CRASH, Driver, Results, run_spark
from tests.generated.operators import ENDS, STEPS, Operator
from tests.generated.pipe import BEGIN, KEYS, SECOND, Pipe, R, moment, plain

RECORDS = "records"
SCHEMA = "k string, v bigint, ts timestamp"


def records(rng: random.Random, many: int, lateness: int) -> list[R]:
    """Records that come out of order, by less than the lateness."""
    times = [BEGIN + rng.randrange(0, 60) * SECOND + rng.choice([0, 0, 1, 500_000]) for _ in range(many)]
    arrivals = sorted((t + rng.randrange(0, lateness * SECOND), t) for t in times)
    return [R(rng.choice(KEYS), rng.randrange(0, 20), t) for _, t in arrivals]


@dataclass(frozen=True)
class Generated:
    """A flow, its input, and what must come out of each of its sinks."""

    seed: int
    flow: ps.Flow
    inputs: dict[str, list[R]]
    pipes: dict[str, Pipe]

    def given(self) -> dict[str, list[Any]]:
        """The input as the sources take it."""
        return {source: [(r.k, r.v, moment(r.t)) for r in rows] for source, rows in self.inputs.items()}

    def got(self, results: Results) -> dict[str, Counter[Any]]:
        """What came out: records, or what the tables hold in the end."""
        return {sink: self._rows(results, sink) for sink in self.pipes}

    def _rows(self, results: Results, sink: str) -> Counter[Any]:
        if self.pipes[sink].table is not None:
            changes = self.pipes[sink].stream.changes
            is_keyed = changes is not None and changes.key is not None
            return Counter(map(plain, results.table(sink).values() if is_keyed else results[sink]))
        return Counter(plain(row[1:]) for row in results[RECORDS] if row[0] == self.pipes[sink].label)

    def differences(self, results: Results) -> list[str]:
        """The pipelines that gave something else, each with its steps and the rows that differ."""
        found = []
        for sink, got in self.got(results).items():
            wanted = self.pipes[sink].expected
            if got != wanted:
                steps = " | ".join(self.pipes[sink].steps)
                missing, extra = list((wanted - got).items())[:5], list((got - wanted).items())[:5]
                found.append(f"seed {self.seed}, {sink}: {steps}\n  missing {missing}\n  extra   {extra}")
        return found


def generate(seed: int, pipelines: int = 1, only: Sequence[Operator] | None = None) -> Generated:
    """The flow of a seed. `only` names the steps to take instead of rolling them."""
    rng = random.Random(seed)
    flow = ps.Flow(f"generated-{seed}")
    lateness = rng.choice([2, 5, 9])
    inputs = {name: records(rng, rng.randint(15, 60), lateness) for name in ("one", "two")}
    sources = {
        name: flow.source(name, ps.items([], SCHEMA), event_time="ts", lateness=f"{lateness}s", idle=None)
        for name in inputs
    }
    pipes: dict[str, Pipe] = {}
    for number in range(pipelines):
        label = f"p{number}"
        mine, other = rng.sample(["one", "two"], 2)
        second = Pipe(rng, label, sources[other], inputs[other])
        pipe = Pipe(rng, label, sources[mine], inputs[mine], other=second)
        for operator in only if only is not None else rolled(rng):
            pipe = operator(pipe)
        pipes[label] = pipe
    _sink([p for p in pipes.values() if p.table is None])
    for label, pipe in pipes.items():
        if pipe.table is not None:
            pipe.stream.sink(label, ps.console())
    return Generated(seed, flow, inputs, pipes)


def _sink(pipes: list[Pipe]) -> None:
    """One sink for all pipelines of records."""
    streams = [p.stream.select(p.name("end"), pipeline=f"'{p.label}'", k="k", v="v", t=p.time) for p in pipes]
    if streams:
        whole = streams[0].union("whole", *streams[1:]) if len(streams) > 1 else streams[0]
        whole.sink(RECORDS, ps.console())


def rolled(rng: random.Random) -> list[Operator]:
    """Two to six steps; the last may give a table."""
    many = rng.randint(2, 6)
    steps = [rng.choice(STEPS) for _ in range(many - 1)]
    return [*steps, rng.choice([*STEPS, *ENDS, *ENDS])]


def run_cut(made: Generated, seed: Any, *, crashes: bool = False, oracle: bool = False) -> Results:
    """The flow in this process, its sources interleaved, with batches that end at random."""
    rng = random.Random(seed)
    driver = Driver(made.flow, oracle=oracle)
    left = {source: list(rows) for source, rows in made.given().items()}
    marks = [BARRIER, BARRIER, *([CRASH] if crashes else [])]
    while any(left.values()):
        source = rng.choice([s for s, rows in left.items() if rows])
        many = rng.choice([1, 1, 2, 9])
        driver.push(source, *left[source][:many])
        del left[source][:many]
        mark = rng.choice(marks) if rng.random() < 0.3 else None
        if mark is BARRIER:
            driver.barrier()
        elif mark is CRASH:
            driver.crash()
    results = driver.barrier(end=True)
    driver.close()
    return results


def run_live(made: Generated, spark: Any, seed: Any) -> Results:
    """The flow on Spark in batches cut at random, in a random number of tasks."""
    rng = random.Random(seed)
    cuts: Mapping[str, list[int]] = {
        source: sorted(rng.randint(0, len(rows)) for _ in range(rng.randint(1, 2)))
        for source, rows in made.inputs.items()
    }
    return run_spark(made.flow, spark, made.given(), cuts=cuts, parallelism=rng.choice([1, 2, 2, 4]))


def run_bounded(made: Generated, spark: Any) -> Results:
    """The flow on Spark as one batch."""
    return run_spark(made.flow, spark, made.given())
