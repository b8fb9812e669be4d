"""A driver without a JVM: it runs the flow of a job by the local host, and reports as the real driver does."""

from __future__ import annotations

import signal
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any

from penstock.compiler.counts import complete
from penstock.demo.posts import post
from penstock.jobs.logs import log_batches
from penstock.jobs.manager.insight.looking import look_at_streams
from penstock.jobs.manager.job import Job
from penstock.jobs.manager.processes import driver as real
from penstock.jobs.manager.processes.directory import JobDirectory
from penstock.jobs.run import RunStatus
from penstock.kernels.counts import PassCounts, StepLoad
from penstock.kernels.errors.dead_letters import dead_letter_rows
from penstock.kernels.errors.guard import DeadLetter
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.sampling import StreamSample
from penstock.kernels.tracing import TracedTuple
from penstock.live.dead_letters.store import DEAD_LETTERS, DeadLetterStore
from penstock.live.report import BatchReport
from penstock.live.sampling import SAMPLER
from penstock.testing import Driver

RATE, PAUSE = 400, 0.25


class LocalJob:
    """A flow that gets posts for its source, batch by batch, with what it counts as reports."""

    def __init__(self, graph: Any, store: DeadLetterStore) -> None:
        self.graph, self.store = graph, store
        self.driver = Driver(graph)
        self.batches = self.rows = 0
        self.dead: list[DeadLetter] = []
        self.before: Counter[str] = Counter()
        self.worked: dict[str, float] = {}
        self._watch_dead_letters()

    def _watch_dead_letters(self) -> None:
        pipeline = self.driver.run.pipeline
        taken = pipeline.dead_letters

        def watched() -> list[DeadLetter]:
            found = taken()
            self.dead += found
            return found

        pipeline.dead_letters = watched  # type: ignore[method-assign]

    def batch(self) -> BatchReport:
        """One batch of posts."""
        began, number = time.time(), self.batches
        posts = [post(n, RATE) for n in range(self.rows, self.rows + int(RATE * PAUSE))]
        source = self.graph.sources[0].name
        self._sample(posts)
        self.driver.push(source, *posts)
        counts = self._counted()
        computed = time.time()
        self.driver.barrier(waiting=True)
        dead, self.dead = self.dead, []
        self.store.stage(dead_letter_rows(dead, self.graph.name, "local", number, int(began * 1e6)), number).commit()
        self.batches, self.rows = number + 1, self.rows + len(posts)
        return BatchReport(
            number,
            {source: len(posts)},
            complete(self.driver.run.program.graph, *counts),
            {"plan": 0.003, "compute": computed - began, "state": 0.004, "trigger": time.time() - began + 0.02},
            {source: {"records": 37 + number % 40}},
            finished=time.time(),
            dead=dict(Counter(letter.step for letter in dead)),
            watermarks={"timed": int((time.time() - 3) * 1e6)},
            load=self._loads(),
            state={
                n.name: {"rows": 40 + number % 9, "bytes": 4_096 + 16 * number} for n in self.graph.nodes if n.stores
            },
            timers={n.name: 3 for n in self.graph.nodes if n.stores},
        )

    def _loads(self) -> dict[str, StepLoad]:
        """The seconds of each step that its pass has measured since the last batch."""
        found = {k.node.name: k.counters.seconds for k in self.driver.run.pipeline.kernels}
        fresh, self.worked = {s: max(v - self.worked.get(s, 0.0), 0.0) for s, v in found.items()}, found
        return {s: StepLoad(seconds=v, tasks=2, skew=1.25, longest=v / 2) for s, v in fresh.items()}

    def _sample(self, posts: list[Any]) -> None:
        """What a worker does with the streams that somebody looks at; here, with those of the source."""
        found = {}
        looks = SAMPLER.wanted()
        for port, where in looks.streams:
            sample = StreamSample((port, where), self.graph)
            sample.take(Chunk(self.graph.output(port).schema, rows=posts))
            found[port.step, port.name, where] = sample.rows
        stacks = {"tests.driver.run;tests.driver.batch;penstock.kernels.map": 40, "tests.driver.run": 2}
        SAMPLER.show(self.batches, PassCounts(samples=found, stacks=stacks if looks.profiles else {}))

    def _counted(self) -> tuple[dict[str, int], dict[str, int]]:
        found = self.driver.run.pipeline.counts()
        now = Counter(
            {f"in {k}": v for k, v in found.taken().items()} | {f"out {k}": v for k, v in found.emitted().items()}
        )
        fresh, self.before = now - self.before if now >= self.before else now, now
        taken = {name[3:]: many for name, many in fresh.items() if name.startswith("in ")}
        return taken, {name[4:]: many for name, many in fresh.items() if name.startswith("out ")}


class MadeUpJob:
    """A topology whose reports are made up: its spouts have nobody who feeds them here."""

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.batches = self.rows = 0

    def batch(self) -> BatchReport:
        """One batch."""
        number, self.batches, self.rows = self.batches, self.batches + 1, self.rows + 40
        if SAMPLER.wanted().traces:
            SAMPLER.show(number, PassCounts(traces={number + 1: self._tuples()}))
        counts = {node.name: (40, 40) for node in self.graph.nodes}
        first = self.graph.sources[0].name
        seconds = {"compute": 0.01, "trigger": 0.03}
        metrics: dict[str, Any] = {"split": {0: {"lines": 30, "<b>": "x"}, 1: {"sizes": {"long": 7}}}}
        return BatchReport(number, {first: 40}, counts, seconds, finished=time.time(), metrics=metrics)

    def _tuples(self) -> list[TracedTuple]:
        streams = [(node, port) for node in self.graph.nodes if node.kind == "bolt" for port in node.inputs]
        return [
            TracedTuple(step=node.name, source=port.step, stream=port.name, task=0, values={"text": "a line"})
            for node, port in streams
        ]


class Status:
    """How the run is, as the progress file asks for it."""

    def __init__(self, job: LocalJob | MadeUpJob) -> None:
        self.job = job

    def status(self) -> RunStatus:
        return RunStatus(self.job.graph.name, "running", self.job.batches, self.job.rows)


def run_locally(directory: JobDirectory, job: Job, bundle: Path) -> None:
    """What the real driver does, without Spark."""
    flow = real._flow_of(job, bundle)
    directory.write_plan(real.plan_of(flow.graph))
    letters = DeadLetterStore(directory.checkpoint / DEAD_LETTERS)
    has_bolts = any(node.kind == "bolt" for node in flow.graph.nodes)
    local = MadeUpJob(flow.graph) if has_bolts else LocalJob(flow.graph, letters)
    progress, log = real.ProgressFile(directory, job), log_batches(flow.graph.name)
    stopped = threading.Event()
    signal.signal(signal.SIGTERM, lambda number, frame: stopped.set())
    while not stopped.wait(PAUSE):
        report = local.batch()
        progress.observe(report)
        log(report)
        look_at_streams(directory)
        progress.write(Status(local))  # type: ignore[arg-type]  # what it asks for


if __name__ == "__main__":
    real.run_job = run_locally
    real.main()
