"""The kernels of bolts, and of the routes between them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import compress
from typing import Any

from penstock.errors import StateError
from penstock.graph.graph import Graph
from penstock.graph.logic.topology.acks import AckReport
from penstock.graph.logic.topology.bolts import StatefulBolt
from penstock.graph.logic.topology.components import Bolt as BoltLogic
from penstock.graph.logic.topology.tuples import NO_TASK, roots_of, tuple_class
from penstock.graph.nodes import Bolt, Route
from penstock.graph.nodes.topology import ROOTS, SEQUENCE, SOURCE, TASK, visible
from penstock.graph.state.key_groups import slot_hash
from penstock.graph.state.keyed import KeyedState
from penstock.graph.state.timers import PROCESSING
from penstock.graph.times import FOREVER, Times
from penstock.kernels.base import Context, Kernel, Out, RecordFailed
from penstock.kernels.counts import PassCounts
from penstock.kernels.errors.guard import Guard, piece
from penstock.kernels.records.chunk import Chunk
from penstock.kernels.topology.moments import MomentGuard
from penstock.kernels.topology.routing import Local, RouteContext, Router, router_of
from penstock.kernels.topology.task import OWN, Task
from penstock.kernels.topology.task_chunks import TaskChunk
from penstock.kernels.topology.task_tuples import RootsColumn, Tuples


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
        self.in_order = SOURCE.name not in schema
        known = [c.name for c in node.layout.components]
        self.sources = node.layout.task_ids(self.origin[0]) if self.origin[0] in known else [NO_TASK]
        self.classes: dict[bool, list[type]] = {}
        ids = node.layout.task_ids(node.name) if node.name in known else []
        self.meant = {-task_id: number for number, task_id in enumerate(ids)}
        local = node.stays_with(graph.node(port.step))
        self.router: Router = Local(node.tasks) if local else router_of(node.groupings[input_index], node.tasks, schema)
        self.tasks = node.tasks

    def tuples(self, chunk: Chunk) -> Tuples:
        """The records as tuples for a bolt, made as they are asked for."""
        has_roots = ROOTS.name in chunk.shape.names
        return Tuples(self._classes(chunk, has_roots), chunk, self.names, _roots(chunk) if has_roots else None)

    def _classes(self, chunk: Chunk, rooted: bool) -> type | Iterable[type]:
        """The class of all tuples, or of each: it has the task that the tuple comes from, so that the tuple need not."""
        if rooted not in self.classes:
            self.classes[rooted] = [tuple_class(self.names, *self.origin, rooted, task) for task in self.sources]
        classes, emitters = self.classes[rooted], hidden(chunk, SOURCE.name)
        if not emitters or len(classes) == 1:
            return classes[emitter_of(chunk) % len(classes)]
        if self.in_order and emitters[0] == emitters[-1]:
            return classes[int(emitters[0])]
        return map(classes.__getitem__, emitters)

    def named(self, chunk: Chunk) -> list[int | None]:
        """The task of this bolt that each tuple names; None where it names one of another bolt."""
        return [task if task >= 0 else self.meant.get(task) for task in hidden(chunk, TASK.name) or ()]

    def targets(self, chunk: Chunk, tuples: list[Any]) -> list[Sequence[int]]:
        """The tasks that get each tuple."""
        if self.by_column:
            return [() if task is None else (task,) for task in self.named(chunk)]
        numbers = hidden(chunk, SEQUENCE.name) or [None] * len(tuples)
        emitter, targets = emitter_of(chunk), self.router.targets
        return [targets(tup, emitter, number) for tup, number in zip(tuples, numbers, strict=True)]


def hidden(chunk: Chunk, name: str) -> list[Any] | None:
    """A column of Penstock's own, where the chunk has it."""
    return chunk.column(name) if name in chunk.shape.names else None


def _roots(chunk: Chunk) -> Sequence[Any]:
    """The roots of the tuples of a chunk, as they arrived."""
    return RootsColumn(chunk.arrow_column(ROOTS.name)) if chunk.is_arrow else chunk.column(ROOTS.name)


class BoltKernel(Kernel):
    """The tasks of a bolt: one of them where the host says that it runs one of so many, else all."""

    handles_errors = True
    node: Bolt
    state: KeyedState | None

    def __init__(self, node: Bolt, graph: Graph) -> None:
        super().__init__(node)
        self.graph = graph
        self.inputs = [Input(node, input_index, graph) for input_index in range(len(node.inputs))]
        self.tasks: dict[int, Task] = {}
        self.is_closed = False

    def open(self, context: Context) -> None:
        """Makes the instances, prepares them, and puts back what they kept."""
        node = self.node
        self.alone = context.tasks == node.tasks
        self.batch = context.batch
        self.ends_batches = type(node.logic).end_batch is not BoltLogic.end_batch
        unread = self.unread if self.guard is None else frozenset()
        mine = [context.task] if self.alone else range(node.tasks)
        self.tasks = {number: Task(node, number, unread) for number in mine}
        self.state = context.state(node.name) if node.keyed else None
        if self.state is not None:
            self.state.prefetch([(n,) for n in self.tasks], list(map(slot_hash, self.tasks)))
        self.acks: dict[int, AckReport] = {}
        self.loops = AckReport()
        moments = None if self.guard is None else MomentGuard(self, self.guard, node, self.graph)
        for task in self.tasks.values():
            task.moments = moments
            task.readers.routers = context.routers
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
        has_attributes = not kept.keys() <= OWN and not isinstance(task.logic, StatefulBolt)
        if has_attributes and type(task.logic).merge is BoltLogic.merge:
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
        if self.guard is not None:
            yield from self._deal_guarded(self.guard, given, chunk, source)
            return
        if not self.alone:
            yield from self._deal(given, chunk)
            return
        chunk = self._meant(given, chunk)
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

    def _deal_guarded(self, guard: Guard, given: Input, chunk: Chunk, source: int) -> Out:
        """The same where a tuple that a task fails on is put aside: what the task has emitted for it is forgotten, and each tuple is tried by itself."""
        tuples = list(given.tuples(chunk))
        targets = self._mine(given, chunk, tuples) if self.alone else given.targets(chunk, tuples)
        for at, (tup, numbers) in enumerate(zip(tuples, targets, strict=True)):
            for number in numbers:
                guard.done(self, partial(self._try, number, tup, at), partial(piece, chunk, at, at + 1), source)
        for task in self.tasks.values():
            yield from task.out(self.leaving and self.alone)

    def _mine(self, given: Input, chunk: Chunk, tuples: list[Any]) -> list[Sequence[int]]:
        """The one task that runs here, for each tuple; where a tuple names its task, that one, which may not exist."""
        (own,) = self.tasks
        if not given.by_column:
            return [(own,)] * len(tuples)
        return [() if task is None else (own if task < self.node.tasks else task,) for task in given.named(chunk)]

    def _try(self, number: int, tup: Any, at: int) -> None:
        task = self._task(number, tup, at)
        before = task.collector.sizes()
        try:
            task.run([tup], partial(int, at))
            task.check(before, tup, at)
        except RecordFailed:
            task.forget(before, tup)
            raise

    def _task(self, number: int, tup: object, at: int) -> Task:
        if number not in self.tasks:
            error = ValueError(
                f"task {number} of {self.node.name!r} was named; its tasks are 0 to {self.node.tasks - 1}"
            )
            raise RecordFailed(self.node, tup, at, error)
        return self.tasks[number]

    def _meant(self, given: Input, chunk: Chunk) -> Chunk:
        """The tuples without those that name a task of another bolt; one that names a task beyond the last must not end up somewhere else."""
        named = given.named(chunk) if given.by_column else []
        for at, task in enumerate(named):
            if task is not None and task >= self.node.tasks:
                self._task(task, list(given.tuples(chunk))[at], at)
        if None not in named:
            return chunk
        mine = [task is not None for task in named]
        columns = [list(compress(column, mine)) for column in chunk.columns()]
        return TaskChunk(chunk.shape.schema, emitter_of(chunk), columns)

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

    def abandon(self) -> None:
        """The batch failed: what instances with a state of their own have changed does not count."""
        for task in () if self.is_closed else self.tasks.values():
            task.roll_back()

    def close(self) -> None:
        """Tells every instance that it is over."""
        self.is_closed = True
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
        around = RouteContext(node.origin, node.bolt, node.layout)
        self.router = router_of(node.grouping, node.tasks, visible(self.given), around)
        self.task = 0

    def open(self, context: Context) -> None:
        """Remembers which emitter this is."""
        self.task = context.task
        self.loops = AckReport()
        context.routers[self.node.name] = self.router

    def report(self, counts: PassCounts) -> None:
        """What a loop has brought back."""
        if self.loops:
            counts.acks[self.node.name, self.task] = self.loops
            self.loops = AckReport()

    def take(self, chunk: Chunk, source: int = 0) -> Out:
        """The tuples with their tasks."""
        emitter = emitter_of(chunk, self.task)
        rows = list(chunk.values())
        chosen = chunk.choices.get(self.node.name) if isinstance(chunk, TaskChunk) else None
        if chosen is None:
            chosen = [self._targets(row, at, emitter) for at, row in enumerate(rows)]
        if self.node.looped:  # after the choice, which may fail: then the tuples come again, one by one
            hold_roots(self.loops, chunk, -1)
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
