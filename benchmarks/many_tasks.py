"""The driver's part of a batch with many tasks and many state files, and with few of both against the way before.

Tasks are simulated: what each would have written and noted is there when the clock starts. Timed are the driver's begin (the manifest of the version
before), plan (the stage is lowered to a DataFrame, with all that its tasks need to know) and publish (the reports of all tasks, the new manifest,
and the oldest version swept away).
"""

from __future__ import annotations

import pickle
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import penstock as ps
from benchmarks.former_store import FormerFile, FormerStore, groups_of
from benchmarks.harness import Bar, Result, folder, medians, paired_ratio, spark_session
from penstock.graph.endpoints.basic import nothing
from penstock.kernels.counts import PassCounts
from penstock.storage import LocalStorage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from penstock.state.chain import StepFiles

NAME = "many-tasks"
ABOUT = "driver time to begin, plan and publish a batch: 4,096 tasks and 10,000 state files; 8 tasks, against bit sets of 128 groups"
TASKS, FILES, FEW = 4096, 10_000, 8
STEP, GROUPS, KEEP = "count", 32_768, 2


class Counter(ps.Process):
    """Counts the records of a key."""

    n = ps.value(int, default=0)

    def on_event(self, row: Any) -> Any:
        """One more."""
        self.n += 1
        yield self.key, self.n


@dataclass
class Simulation:
    """A store whose tasks are simulated, batch by batch; the seconds of the driver's parts of each."""

    store: Any
    file: Callable[[str, int], dict[str, Any]]
    """The JSON of a file, by its path and task."""
    tasks: int
    plan: Callable[[StepFiles], object] = lambda files: pickle.dumps(files, 5)
    version: int = -1
    newest: dict[int, str] = field(default_factory=dict)
    """The newest file of each task."""

    def batch(self, writers: int, merging: int = 0) -> dict[str, float]:
        """A batch in which so many tasks write a file, and some of these replace the one before by it."""
        self.version += 1
        began = time.perf_counter()
        files = self.store.begin(self.version, {STEP: self.tasks}, self.version - 1)[STEP]
        begun = time.perf_counter()
        self.plan(files)
        planned = time.perf_counter()
        reports = self._work(files.folder, writers, merging)
        done = time.perf_counter()
        self._report(reports)
        self.store.publish(self.version)
        return {"begin": begun - began, "plan": planned - begun, "publish": time.perf_counter() - done}

    def _report(self, reports: list[bytes]) -> None:
        """What tasks have reported, added up as Spark's accumulator does."""
        from penstock.spark.tasks.counting import CountsParam

        param = CountsParam()
        total = param.zero(PassCounts())
        for each in reports:
            total = param.addInPlace(total, pickle.loads(each))
        if reports:
            self.store.report(total.notes)

    def _work(self, directory: str, writers: int, merging: int) -> list[bytes]:
        """What the tasks do, without fsync, because it is not timed; returns their reports, of which the store of before knows nothing: it reads notes."""
        from penstock.state.notes import note_bytes

        is_former, reports = isinstance(self.store, FormerStore), []
        root: Path = self.store.storage.root
        (root / directory).mkdir(parents=True)
        for task in range(self.tasks):
            older = [self.newest[task]] if task < merging and task in self.newest else []
            note: dict[str, Any] = {"file": None, "older": older, "event": None, "clock": None}
            if task < writers:
                path = self.newest[task] = f"{directory}/{task}-{self.version:08x}.state"
                (root / path).write_bytes(b"x" * 10)
                note["file"] = self.file(path, task)
            if is_former:
                (root / directory / f"{task}.json").write_bytes(note_bytes(note))
            else:
                reports.append(pickle.dumps(PassCounts(notes={(directory, task): note}), 5))
        return reports


def now(root: Path, tasks: int, plan: Callable[[StepFiles], object] | None = None) -> Simulation:
    """The store of today."""
    from penstock.state.file import StateFile
    from penstock.state.ranges import ranges_of
    from penstock.state.store import StateStore

    made = Simulation(
        StateStore(LocalStorage(root), keep=KEEP, run="r", groups=GROUPS),
        lambda path, task: StateFile(path, 10, 1, 100, ranges_of(task, tasks, GROUPS)).to_json(),
        tasks,
    )
    if plan is not None:
        made.plan = plan
    return made


def before(root: Path, tasks: int) -> Simulation:
    """The store of before."""
    from dataclasses import asdict

    return Simulation(
        FormerStore(LocalStorage(root), keep=KEEP),
        lambda path, task: asdict(FormerFile(path, 10, 1, 100, groups_of(task, tasks))),
        tasks,
    )


def fill(made: Simulation, files: int) -> None:
    """Batches until there are so many files, and then some in which each task that writes replaces a file."""
    while files > 0:
        made.batch(min(files, made.tasks))
        files -= made.tasks
    for _ in range(KEEP):
        made.batch(made.tasks // 2, merging=made.tasks // 2)


def planner(spark: SparkSession, tasks: int) -> Callable[[StepFiles], object]:
    """Lowers a keyed Python step, as a batch does."""
    from penstock.compiler.compile import compile_graph
    from penstock.graph.nodes import Port
    from penstock.graph.times import Times
    from penstock.spark.lower.context import Lowering
    from penstock.spark.lower.lower import lower
    from penstock.spark.tasks.counting import CountsParam
    from penstock.spark.tasks.pack import Packer

    flow = ps.Flow("many")
    keyed = flow.source("records", ps.items([], "k string")).key_by("k")
    keyed.process(STEP, Counter, schema="k string, n bigint").sink("out", nothing())
    plan, packer = compile_graph(flow.graph, live=True), Packer((__name__,))
    counts = spark.sparkContext.accumulator(PassCounts(), CountsParam())
    records = spark.createDataFrame([], "k string")

    def planned(files: StepFiles) -> object:
        kept: Any = {"states": {STEP: files}, "times": {STEP: Times()}, "frames": {Port("records"): records}}
        at = Lowering(spark, plan, packer, tasks, True, counts, lambda *_: records, groups=files.groups, **kept)
        lower(at)
        return at.frames[plan.graph.sinks[0].inputs[0]]._jdf.queryExecution().executedPlan()

    return planned


def totals(made: Simulation, rounds: int, writers: int) -> dict[str, list[float]]:
    """The seconds of some batches in which each of these tasks writes a file and replaces its last."""
    parts: dict[str, list[float]] = {"begin": [], "plan": [], "publish": []}
    for _ in range(rounds):
        for part, seconds in made.batch(writers, merging=writers).items():
            parts[part].append(seconds)
    return parts


def against_before(place: Path, rounds: int) -> dict[str, list[float]]:
    """The seconds of batches of few tasks, in turns."""
    sides = {"now": now(place / "now", FEW), "before": before(place / "before", FEW)}
    for made in sides.values():
        fill(made, 5 * FEW)
    taken: dict[str, list[float]] = {"now": [], "before": []}
    for _ in range(rounds):
        for name, made in sides.items():
            taken[name].append(sum(made.batch(FEW, merging=FEW).values()))
    return taken


def run(quick: bool) -> Result:
    """Both sizes."""
    rounds = 3 if quick else 7
    spark = spark_session()
    with folder() as place:
        few = against_before(place / "few", 50 if quick else 300)
        many = now(place / "many", TASKS, planner(spark, TASKS))
        fill(many, FILES)
        parts = totals(many, rounds, TASKS)
        size = (place / "many" / "versions" / f"{many.version}.json").stat().st_size
    whole = [sum(each) for each in zip(*parts.values(), strict=True)]
    seconds = medians(parts | {"batch": whole})
    figures = {f"{name}_seconds": value for name, value in seconds.items()} | {"manifest_bytes": float(size)}
    figures |= {f"{FEW}_tasks_{name}_seconds": value for name, value in medians(few).items()}
    bars = (
        Bar(f"seconds of the driver for {TASKS:,} tasks and {FILES:,} files", seconds["batch"], at_most=1.0),
        Bar(f"with {FEW} tasks, over the way before", paired_ratio(few, "before", "now"), at_least=0.95),
    )
    return Result(NAME, figures, bars)
