"""A flow as the user writes it: sources first, then steps on the streams they emit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeAlias

from penstock.errors import FlowError
from penstock.frontends.streams.naming import CallRecord, names_step, recorded
from penstock.frontends.streams.stream import Stream
from penstock.frontends.streams.timing import event_time_node
from penstock.graph.builder import GraphBuilder
from penstock.graph.caller import user_line
from penstock.graph.compose import add_dead_letters, add_source
from penstock.graph.duration import Span
from penstock.graph.endpoints.kafka import partition_of
from penstock.graph.endpoints.shedding import ShedRule, shedding
from penstock.graph.expr import Expr
from penstock.graph.expr.registry import PythonFunction
from penstock.graph.graph import Graph
from penstock.graph.nodes import Endpoint, EventTime, Feedback, Sink, Source, on_error_of
from penstock.graph.nodes.policy import Policy
from penstock.graph.schema import Form, schema_of

TimeOption: TypeAlias = Span | None
"""An option of the event time, as `Stream.event_time` takes it: a span, a name, or None."""


class Flow:
    """A flow under construction; `flow.graph` is the immutable graph it stands for.

    Args:
        name: the name of the flow: its state, metrics and ledgers go by it.
        delivery: the delivery guarantee of the sinks that ask for none: exactly_once, at_least_once or at_most_once.
        on_error: what steps do with a record they fail on, where they have no policy of their own: 'fail', 'dead_letter', 'skip', or
            `ps.retry(3, then='dead_letter')`.
        functions: the Python functions, made with `@ps.function` and `@ps.aggregate_function`, that expression text may call by name.

    Raises:
        FlowError: the name has other signs than letters, digits, '-', '_' and '.', or a policy is not one.

    >>> import penstock as ps
    >>> flow = ps.Flow("hello")
    >>> flow.source("names", ps.items(["ada", "bob"], "name string")).sink("out", ps.console())
    >>> [n.name for n in flow.graph.nodes]
    ['names', 'out']
    """

    def __init__(
        self,
        name: str,
        *,
        delivery: str = "",
        on_error: Policy | None = None,
        functions: Iterable[PythonFunction] = (),
    ) -> None:
        self.builder = GraphBuilder(name, delivery=delivery, on_error=on_error, functions=functions)
        self._recording = CallRecord()

    @property
    def name(self) -> str:
        """The name of the flow."""
        return self.builder.name

    @property
    def graph(self) -> Graph:
        """The graph as it stands, checked as a whole."""
        return self.builder.graph()

    @names_step
    def source(
        self,
        name: str,
        /,
        endpoint: Endpoint,
        schema: Form | None = None,
        *,
        event_time: str | Expr | None = None,
        on_error: Policy | None = None,
        shed: ShedRule | None = None,
        **timing: TimeOption,
    ) -> Stream:
        """Records from outside.

        Args:
            name: the name of the step.
            endpoint: what is read, such as `ps.files(...)`.
            schema: the fields of the records, where the endpoint does not say.
            event_time: when they happened, as `Stream.event_time` takes it; its options may follow (`lateness`, `idle`, ...).
            on_error: what happens to a record that cannot be read: 'fail', 'dead_letter' or 'skip'.
            shed: has a topic leave out its oldest records when the flow has fallen too far behind: `ps.shed(behind=100_000)`.
            timing: the options of `Stream.event_time`: `lateness`, `idle`, `max_lead`, `into`, `partition`.

        Returns:
            The stream of the records.

        Raises:
            FlowError: the endpoint cannot be read, or cannot do what is asked of it.
            SchemaError: nothing says what the fields are.

        >>> import penstock as ps
        >>> clicks = ps.items([("ada", "2026-01-01 10:00:00")], "user string, at string")
        >>> ps.Flow("demo").source("clicks", clicks, event_time="at", lateness="10s")
        Stream('clicks@time': user string, at timestamp, event time at)
        """
        if event_time is None and timing:
            raise FlowError(
                f"source {name!r} ({user_line()}): {', '.join(timing)} needs event_time='a field' beside it"
            )
        where = f"source {name!r} ({user_line()})"
        chosen = shedding(where, endpoint, shed) if shed is not None else endpoint
        policy = None if on_error is None else on_error_of(on_error)
        made = Source(
            name, (), chosen, None if schema is None else schema_of(schema), line=user_line(), on_error=policy
        )
        return Stream(self, add_source(self.builder, made, self._time(endpoint, event_time, timing)))

    def _time(
        self, endpoint: Endpoint, event_time: str | Expr | None, timing: dict[str, TimeOption]
    ) -> EventTime | None:
        if event_time is None:
            return None
        return event_time_node("", event_time, **{**partition_of(endpoint), **timing})  # type: ignore[arg-type]  # options by name

    @names_step
    def feedback(self, name: str, schema: Form) -> Stream:
        """The beginning of a loop: a stream that `feed` closes later. What is fed comes back one round later.

        Args:
            name: the name of the step.
            schema: the fields of the records that will be fed.

        Returns:
            The stream of what is fed back.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("countdown")
        >>> again = flow.feedback("again", "n int")
        >>> start = flow.source("start", ps.items([3], "n int"))
        >>> less = start.union("all", again).map("less", lambda row: row.n - 1)
        >>> flow.feed(again, less.where("left", "n > 0"))
        >>> less.sink("out", ps.console())
        >>> run_local(flow)["out"]
        [Row(n=2), Row(n=1), Row(n=0)]
        """
        return Stream(self, self.builder.add(Feedback(name, (), schema_of(schema), line=user_line())))

    @names_step
    def dead_letters(self, name: str, endpoint: Endpoint, *, delivery: str = "") -> None:
        """Where the records go that steps put aside. Without it they are kept beside the flow's state: `penstock dlq list`.

        Args:
            name: the name of the sink.
            endpoint: where dead letters are written.
            delivery: the delivery guarantee, as of any sink.

        Raises:
            FlowError: the flow has a sink for dead letters already, or the endpoint cannot be written.

        >>> import penstock as ps
        >>> flow = ps.Flow("demo", on_error="dead_letter")
        >>> flow.dead_letters("bad", ps.write_files("bad", "json"))
        """
        add_dead_letters(self.builder, Sink(name, (), endpoint, delivery, line=user_line()))

    @recorded
    def feed(self, loop: Stream, stream: Stream) -> None:
        """Closes a loop: the records of `stream` come out of `loop`, one round later.

        Args:
            loop: the stream that `feedback` returned.
            stream: the stream whose records are fed back.

        Raises:
            LoopError: `loop` was not made by `feedback`, or is fed already.
            SchemaError: the two have different fields.

        >>> import penstock as ps
        >>> flow = ps.Flow("demo")
        >>> again = flow.feedback("again", "n int")
        >>> flow.feed(again, again.where("left", "n > 0"))
        """
        self.builder.feed(loop.port, stream.port)

    @recorded
    def bootstrap(self, step: str, records: Endpoint | Stream, schema: Form | None = None) -> None:
        """Says what a step has seen before the flow's first record: bounded records of the form that the step reads.

        They pass through the step once, before the first batch of a flow that begins; what it emits for them is dropped.

        Args:
            step: the name of the step.
            records: an endpoint, such as `ps.files(...)`, or a stream, of this flow or of another.
            schema: the fields of the endpoint's records, where it does not say; else they are those that the step reads.

        Raises:
            FlowError: the step has a bootstrap already, keeps nothing, or reads several streams.
            SchemaError: the records are not of the form that the step reads.

        >>> import penstock as ps
        >>> from penstock.testing import run_local
        >>> flow = ps.Flow("demo")
        >>> flow.source("words", ps.items(["a"], "word string")).key_by("word").count("n").sink("out", ps.console())
        >>> flow.bootstrap("n", ps.items(["a", "a"], "word string"))
        >>> run_local(flow)["out"]
        [Row(word='a', n=3)]
        """
        made = records
        if isinstance(records, Endpoint):
            made = Flow(self.name).source(
                "records", records, schema or records.schema or self.builder.form_read_by(step)
            )
        if not isinstance(made, Stream):
            raise FlowError(f"bootstrap of {step!r} ({user_line()}) needs an endpoint or a stream, got {records!r}")
        self.builder.bootstrap(step, made.flow.builder, made.port)

    def __repr__(self) -> str:
        return f"Flow({self.name!r}, {len(self.builder)} step{'' if len(self.builder) == 1 else 's'})"

    def _repr_svg_(self) -> str | None:
        """The picture a notebook shows; none while the flow is not complete yet."""
        from penstock.graph.picture.describe import describe_graph  # here, so that `import penstock` stays light
        from penstock.graph.picture.draw import as_svg  # the same

        try:
            return as_svg(describe_graph(self.graph))
        except FlowError:
            return None

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        """What notebooks and consoles may choose from: the picture, and one line of text."""
        drawn = self._repr_svg_()
        return {"text/plain": repr(self)} | ({"image/svg+xml": drawn} if drawn else {})
