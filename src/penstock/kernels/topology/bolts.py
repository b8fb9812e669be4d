"""The kernels of bolts, and of the routes between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Any

from penstock.errors import StateError
from penstock.graph.graph import Graph
from penstock.graph.logic.acks import AckReport
from penstock.graph.logic.bolts import StatefulBolt
from penstock.graph.logic.components import Bolt as BoltLogic
from penstock.graph.logic.tuples import Tuple, roots_of, tuple_class
from penstock.graph.nodes import Bolt, Route
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, TASK, visible
from penstock.graph.state.key_groups import slot_hash
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.timers import PROCESSING
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.counts import PassCounts
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.topology.routing import Local, Router, router_of
from penstock.kernels.topology.task import Task, TaskChunk


def emitter_of(chunk: Chunk, otherwise: int = 0) -> int:
    """The task a chunk comes from."""
    return chunk.emitter if isinstance(chunk, TaskChunk) else otherwise


class Input:
    """One input of a bolt: makes tuples of chunks, and finds the tasks for them."""

    def __init__(self, node: Bolt, input_index: int, graph: Graph) -> None:
        port = node.inputs[input_index]
        schema = graph.output(port).schema
        self.origin = node.origins[input_index]
        self.names = visible(schema).names
        self.by_column = node.groupings[input_index].by_column
        local = node.stays_with(graph.node(port.step))
        self.router: Router = Local(node.tasks) if local else router_of(node.groupings[input_index], node.tasks, schema)
        self.tasks = node.tasks

    def tuples(self, chunk: Chunk) -> Tuples:
        """The records as tuples for a bolt, made as they are asked for."""
        roots = hidden(chunk, ROOTS.name)
        cls = tuple_class(self.names, *self.origin, roots is not None)
        return Tuples(cls, chunk.columns()[: len(self.names)], roots)

    def targets(self, chunk: Chunk, tuples: list[Any]) -> list[Sequence[int]]:
        """The tasks that get each tuple."""
        if self.by_column:
            return [(task,) for task in hidden(chunk, TASK.name) or ()]
        numbers = hidden(chunk, SEQUENCE.name) or [None] * len(tuples)
        emitter, targets = emitter_of(chunk), self.router.targets
        return [targets(tup, emitter, number) for tup, number in zip(tuples, numbers, strict=True)]


class Tuples:
    """Goes over the tuples of a chunk; `at` is the index of the one given last."""

    __slots__ = ("_begin", "_first", "_length", "_made")

    def __init__(self, cls: type, columns: list[list[Any]], roots: list[Any] | None = None, begin: int = 0) -> None:
        self._first: Any = iter(columns[0])
        self._length, self._begin = len(columns[0]), begin
        rows = zip(self._first, *columns[1:], strict=False)
        make = partial(tuple.__new__, cls)
        self._made: Iterator[Any] = map(make, rows) if roots is None else map(_rooted, map(make, rows), roots)

    def __iter__(self) -> Iterator[Any]:
        return self._made

    @property
    def at(self) -> int:
        """The index of the tuple that was given last."""
        return self._begin + self._length - int(self._first.__length_hint__()) - 1


def _rooted(tup: Any, packed: bytes | None) -> Tuple:
    tup._roots = packed
    made: Tuple = tup
    return made


def hidden(chunk: Chunk, name: str) -> list[Any] | None:
    """A column of Penstock's own, where the chunk has it."""
    names = chunk.shape.names
    return chunk.columns()[names.index(name)] if name in names else None


class BoltKernel(Kernel):
    """The tasks of a bolt: one of them where the host says that it runs one of so many, else all."""

    node: Bolt
    state: KeyedState | None

    def __init__(self, node: Bolt, graph: Graph) -> None:
        super().__init__(node)
        self.inputs = [Input(node, input_index, graph) for input_index in range(len(node.inputs))]

    def open(self, context: Context) -> None:
        """Makes the instances, prepares them, and puts back what they kept."""
        node = self.node
        self.alone = context.tasks == node.tasks
        self.batch = context.batch
        self.ends_batches = type(node.logic).end_batch is not BoltLogic.end_batch
        mine = [context.task] if self.alone else range(node.tasks)
        self.tasks = {number: Task(node, number) for number in mine}
        self.state = context.state(node.name) if node.keyed else None
        if self.state is not None:
            self.state.prefetch([(n,) for n in self.tasks], list(map(slot_hash, self.tasks)))
        self.acks: dict[int, AckReport] = {}
        self.loops = AckReport()
        for task in self.tasks.values():
            task.prepare()
            self._restore(task)
            if isinstance(node.logic, StatefulBolt):
                task.open_state(context.state(node.entries))
        self._adopt()

    def begin(self, times: Times) -> None:
        """A batch begins: tasks that get ticks know when the next is due."""
        super().begin(times)
        for task in self.tasks.values():
            task.begin(times)

    def advance(self, times: Times) -> Out:
        """Ticks, and windows by time."""
        self.move(times)
        if self.node.timed:
            for task in self.tasks.values():
                task.advance(times)
                yield from self._fed_back(task.out(self.leaving and self.alone))

    def wake(self, clock: str) -> int:
        """When a task next gets a tick or a window."""
        if clock != PROCESSING or not self.node.timed:
            return FOREVER
        return min(task.wake() for task in self.tasks.values())

    def _restore(self, task: Task) -> None:
        kept = self.state.get((task.number,)) if self.state is not None else None
        if kept is not None:
            task.restore(dict(kept))

    def _adopt(self) -> None:
        """Gives the state of tasks that are no more to those that replace them."""
        for key, kept in list(self.state.items()) if self.state is not None else ():
            task = self.tasks.get(key[0] % self.node.tasks) if key[0] >= self.node.tasks else None
            if task is not None and self.state is not None:
                self._merge(task, key[0], kept)
                self.state.delete(key)

    def _merge(self, task: Task, former: int, kept: dict[str, Any]) -> None:
        if type(task.logic).merge is BoltLogic.merge and not isinstance(task.logic, StatefulBolt):
            raise StateError(
                f"bolt {self.node.name!r} has {self.node.tasks} tasks and had more: nobody can take over the state of task "
                f"{former}. Give it as many tasks as before, or define merge(self, other) in {type(task.logic).__qualname__}"
            )
        task.merge(former, kept)

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """What the tasks give for these tuples."""
        return self._fed_back(self._taken(chunk, source)) if self.node.feeds else self._taken(chunk, source)

    def _fed_back(self, made: Out) -> Out:
        """Messages of tuples that go into a loop stay open until the loop brings them back."""
        fed = dict(self.node.feeds)
        for output, chunk in made:
            if output in fed:
                hold_roots(self.loops, chunk, fed[output])
            yield output, chunk

    def _taken(self, chunk: Chunk, source: int) -> Out:
        given = self.inputs[source]
        if source in self.node.looped and (0 in self.tasks or self.node.groupings[source].kind != "all"):
            hold_roots(self.loops, chunk, -1)
        if not self.alone:
            yield from self._deal(given, chunk)
            return
        self._check_meant(given, chunk)
        task, tuples = next(iter(self.tasks.values())), given.tuples(chunk)
        task.run(tuples, lambda: tuples.at)
        yield from task.out(self.leaving)

    def _deal(self, given: Input, chunk: Chunk) -> Out:
        """Hands each tuple to the tasks that its grouping chooses."""
        tuples = list(given.tuples(chunk))
        for at, (tup, targets) in enumerate(zip(tuples, given.targets(chunk, tuples), strict=True)):
            for number in targets:
                task = self._task(number, tup, at)
                task.run([tup], partial(int, at))
                yield from task.out(False)

    def _task(self, number: int, tup: object, at: int) -> Task:
        if number not in self.tasks:
            error = ValueError(
                f"task {number} of {self.node.name!r} was named; its tasks are 0 to {self.node.tasks - 1}"
            )
            raise RecordFailed(self.node, tup, at, error)
        return self.tasks[number]

    def _check_meant(self, given: Input, chunk: Chunk) -> None:
        """A tuple that names a task beyond the last must not end up somewhere else."""
        named = hidden(chunk, TASK.name) if given.by_column else None
        if named and max(named) >= self.node.tasks:
            at = named.index(max(named))
            self._task(named[at], list(given.tuples(chunk))[at], at)

    def barrier(self) -> Out:
        """Ends the batch in every task that wants to know, and hands over the state of the tasks that had something to do."""
        for task in self.tasks.values():
            if self.ends_batches:
                task.end(self.batch())
                yield from self._fed_back(task.out(self.leaving and self.alone))
            if report := task.finish(self.batch()):
                self.acks.setdefault(task.number, AckReport()).add(report)
            if self.state is not None and task.touched:
                self._save(self.state, task)
                task.touched = False

    def report(self, counts: PassCounts) -> None:
        """What tasks say of messages, their metrics, and the errors they reported."""
        made, self.acks, loops, self.loops = self.acks, {}, self.loops, AckReport()
        if loops:
            made.setdefault(min(self.tasks), AckReport()).add(loops)
        counts.acks |= {(self.node.name, number): report for number, report in made.items()}
        for number, task in self.tasks.items():
            if values := task.taken_metrics():
                counts.bolt_metrics[self.node.name, number] = values
            if task.collector.errors:
                counts.bolt_errors[self.node.name, number] = task.collector.errors
                task.collector.errors = []

    def _save(self, state: KeyedState, task: Task) -> None:
        kept = task.kept()
        if kept or state.get((task.number,)) is not None:
            state.put((task.number,), kept)

    def close(self) -> None:
        """Tells every instance that it is over."""
        for task in self.tasks.values():
            for hook in task.context.hooks:
                hook.cleanup()
            task.logic.close()


class RouteKernel(Kernel):
    """Writes the chosen task beside each tuple; a tuple for several tasks comes once for each."""

    node: Route

    def __init__(self, node: Route, graph: Graph) -> None:
        super().__init__(node)
        self.given = graph.output(node.inputs[0]).schema
        self.width = len(visible(self.given).names)
        self.router = router_of(node.grouping, node.tasks, visible(self.given), node.origin)
        self.task = 0

    def open(self, context: Context) -> None:
        """Remembers which emitter this is."""
        self.task = context.task
        self.loops = AckReport()

    def report(self, counts: PassCounts) -> None:
        """What a loop has brought back."""
        if self.loops:
            counts.acks[self.node.name, self.task] = self.loops
            self.loops = AckReport()

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The tuples with their tasks."""
        emitter = emitter_of(chunk, self.task)
        if self.node.looped:
            hold_roots(self.loops, chunk, -1)
        rows = list(chunk.values())
        chosen = [self._targets(row, at, emitter) for at, row in enumerate(rows)]
        if all(len(c) == 1 for c in chosen):
            columns = [*chunk.columns(), [c[0] for c in chosen]]
        else:
            repeated = [(*row, task) for row, targets in zip(rows, chosen, strict=True) for task in targets]
            columns = [list(c) for c in zip(*repeated, strict=True)] or [[] for _ in range(len(self.given.names) + 1)]
        yield "out", TaskChunk(self.node.output().schema, emitter, columns)

    def _targets(self, row: tuple[Any, ...], at: int, emitter: int) -> Sequence[int]:
        try:
            return self.router.targets(row[: self.width], emitter)
        except Exception as error:
            raise RecordFailed(self.node, row[: self.width], at, error) from error


def hold_roots(report: AckReport, chunk: Chunk, many: int) -> None:
    """Notes that so many more copies of each tuple of a chunk are on their way."""
    for packed in hidden(chunk, ROOTS.name) or ():
        for root in roots_of(packed):
            report.hold(root, many)


def unsaved(step: str, states: Iterable[Any], error: Exception, dumps: Callable[[object], bytes]) -> StateError:
    """Says which attribute of a bolt cannot be saved."""
    kept = next((v for v in states if isinstance(v, dict)), {})
    for name, value in kept.items():
        try:
            dumps(value)
        except Exception as own:
            return StateError(
                f"bolt {step!r} keeps something in {name!r} that cannot be saved ({own}); name it _{name} and make it "
                f"in prepare"
            )
    return StateError(f"the state of {step!r} cannot be saved: {error}")
