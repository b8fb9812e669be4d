"""Writes the API reference, docs/reference/api/, from the docstrings of the public names.

    python scripts/reference.py           writes the pages
    python scripts/reference.py --check   says which are stale, and fails if any is

A docstring is a summary, then `Args:`, `Returns:` and `Raises:`, then an example as the interpreter shows it.
"""

from __future__ import annotations

import ast
import inspect
import re
import sys
import textwrap
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path

import penstock
import penstock.testing
import penstock.trident
from penstock import storage
from penstock.connectors import base
from penstock.frontends.drpc.linear import LinearBolt
from penstock.frontends.streams.branches import Branches
from penstock.frontends.streams.keyed import KeyedStream
from penstock.frontends.streams.over import OverStream
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.frontends.streams.windows import WindowedStream
from penstock.frontends.topology.declare import BoltDeclaration
from penstock.frontends.trident.grouped import ChainedAggregation, GroupedStream
from penstock.frontends.trident.state import TridentState
from penstock.frontends.trident.stream import TridentStream

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "reference" / "api"
MODULES = {
    "penstock.testing": penstock.testing,
    "penstock.trident": penstock.trident,
    "penstock.connectors.base": base,
    "penstock.storage": storage,
}
SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises")
RETURNED = {
    "KeyedStream": KeyedStream,
    "WindowedStream": WindowedStream,
    "OverStream": OverStream,
    "Branches": Branches,
    "PatternBuilder": PatternBuilder,
    "BoltDeclaration": BoltDeclaration,
    "ChainedAggregation": ChainedAggregation,
    "GroupedStream": GroupedStream,
    "LinearBolt": LinearBolt,
    "TridentState": TridentState,
    "TridentStream": TridentStream,
}
"""Classes that have no public name, because users get them from methods."""
NOT_MADE = (
    "Stream",
    "KeyedStream",
    "WindowedStream",
    "OverStream",
    "Branches",
    "PatternBuilder",
    "BoltDeclaration",
    "ChainedAggregation",
    "GroupedStream",
    "LinearBolt",
    "TridentState",
    "TridentStream",
    "Row",
    "Tuple",
    "Expr",
    "RunSpec",
    "Timer",
    "action",
    "RowSink",
    "SinkConnector",
    "SourceConnector",
    "StagedBatch",
    "StagedRows",
    "Storage",
)
"""Classes that users do not make by calling them, or not by these arguments."""
TYPES = {
    "Form": "A schema: DDL text such as `word string, n bigint`, a dict of names to types, a dataclass, a NamedTuple, a TypedDict or a `Schema`.",
    "Fields": "Names of fields: one, several with commas, or a list; none stands for all.",
    "Span": "A span of time: `500ms`, `20s`, `1h30m`, a `timedelta`, or a number of seconds.",
    "Duration": "The same as `Span`.",
    "Policy": "What happens to a record that fails: `fail`, `dead_letter`, `skip`, or what `ps.retry` returns.",
    "Written": "An aggregate: text such as `sum(n)`, an expression, or a `ps.Aggregator`, class or instance.",
    "LookUp": 'A table, static or a stream, and the fields of its key: `(ps.files(...), "card")`.',
    "Condition": "An expression that is true or false, as text or as `ps.Expr`; or a function of the record.",
    "StageCondition": "What must hold for an event: an expression as text or `ps.Expr`, a function of the event, or one of the event and what was taken before.",
    "Quantifier": "How often a stage is taken: `times`, `one_or_more`, `optional`, `consecutive`, `combinations`, `greedy`, `until`, `gap`.",
    "Selected": "The fields of a match: a dict of names to expressions over its stages.",
    "AnyPattern": "What `ps.pattern` or `ps.pattern_text` makes.",
    "Alternatives": "What `ps.one_of` returns.",
    "Pattern": "A pattern that is complete and checked.",
    "Part": "A node of the tree of a pattern.",
    "Rows": "How many rows are seen before a row, or `(before, after)`; None is all.",
    "Around": "How far rows are seen before a row, or `(before, after)`; None is all.",
    "On": "The fields of a join: one, several, or pairs of them as tuples or as a dict.",
    "Within": "How far apart in time the records of a join may be: one span for both sides, or two.",
    "Position": "Where to read from or to: `earliest`, `latest`, a datetime, or offsets as `{topic: {partition: offset}}`.",
    "Early": "What `ps.every_interval` and `ps.every_records` return.",
    "WindowSpec": "What `ps.tumbling`, `ps.sliding`, `ps.cumulating`, `ps.session`, `ps.count_window` and `ps.global_window` return.",
    "TimeWindow": "What `ps.tumbling` and `ps.sliding` return.",
    "Endpoint": "What the functions for sources and sinks return: a description that holds no connection.",
    "FlowLike": "A Flow, a Topology, or whatever else has a `graph`.",
    "Records": "Records by the name of a source or of a join.",
    "TimeOption": "An option of `Stream.event_time`.",
    "TaskContext": "Where a task runs: its `component`, its number `task`, how many `tasks` there are, and `tasks_of(component)`.",
}
"""The names in annotations that a reader does not know."""


@dataclass(frozen=True)
class Page:
    """A page of the reference: its file, its title, and the names on it."""

    file: str
    title: str
    about: str
    names: tuple[str, ...]
    module: str = "ps"


PAGES = (
    Page("flows.md", "Flows and streams", "[Guide](../../guide/streams.md)",
         ("Flow", "Stream", "KeyedStream", "WindowedStream", "OverStream", "Branches", "Schema", "Row", "to", "run", "RunSpec", "flow_file")),
    Page("sources.md", "Sources", "Each returns an endpoint, which holds no connection. [Guide](../../guide/sources-and-sinks.md)",
         ("files", "files_schema", "items", "rate", "generate", "stdin", "socket_lines", "topic", "kafka", "postgres",
          "postgres_schema", "postgres_changes", "redis_stream", "connector", "shed")),
    Page("sinks.md", "Sinks", "Each returns an endpoint, which holds no connection. [Guide](../../guide/sources-and-sinks.md)",
         ("console", "write_files", "write_topic", "write_kafka", "write_postgres", "write_redis", "write_http", "callback", "retry")),
    Page("windows.md", "Windows", "[Guide](../../guide/windows.md)",
         ("tumbling", "sliding", "cumulating", "session", "count_window", "global_window", "every_interval", "every_records")),
    Page("patterns.md", "Patterns", "[Guide](../../guide/patterns.md), [pattern text](../../guide/pattern-text.md), [row patterns](../../guide/row-patterns.md)",
         ("pattern", "PatternBuilder", "one_of", "pattern_text", "sase_text", "pattern_json", "pattern_reader", "run_limit", "row_pattern")),
    Page("state.md", "State per key, and aggregates of your own", "[Guide](../../guide/keyed-state.md)",
         ("Process", "ProcessingElement", "PE", "Timer", "value", "list_of", "map_of", "BroadcastProcess", "AsyncFunction", "Aggregator")),
    Page("rules.md", "Rules", "[Guide](../../guide/rules.md)",
         ("rule", "rules", "action", "rule_topic")),
    Page("expressions.md", "Expressions", "[Guide](../../guide/expressions.md), [all functions](../expressions.md)",
         ("Expr", "col", "lit", "expr", "fn", "function", "aggregate_function", "when", "sql")),
    Page("sql.md", "SQL", "[Guide](../../guide/sql.md), [all statements](../sql.md)",
         ("sql_flow", "sql_query", "ask")),
    Page("topologies.md", "Topologies", "[Guide](../../guide/topologies.md)",
         ("Topology", "BoltDeclaration", "Spout", "PartitionedSpout", "Bolt", "ShellSpout", "ShellBolt", "BasicBolt", "FailedException", "ReportedFailedException",
          "StatefulBolt", "WindowedBolt", "StatefulWindowedBolt", "Tuple",
          "Metric", "CountMetric", "TaskHook", "END")),
    Page("trident.md", "Trident", "Operations, aggregators, states and queries are in `penstock.trident`. [Guide](../../guide/trident.md)",
         ("TridentTopology", "TridentStream", "GroupedStream", "ChainedAggregation", "TridentState")),
    Page("trident-operations.md", "Trident: operations, aggregators, states", "`from penstock import trident`. [Streams](trident.md), [guide](../../guide/trident.md)",
         ("Function", "Filter", "OperationContext", "Collector", "Split", "ExpandList", "FilterNull", "Aggregator", "CombinerAggregator", "ReducerAggregator", "Count", "Sum",
          "StateFactory", "State", "MapState", "TransactionalMap", "OpaqueMap", "NonTransactionalMap", "TransactionalValue", "OpaqueValue", "MemoryStore",
          "QueryFunction", "MapGet", "SnapshotGet", "TupleCollectionGet", "StateUpdater"), "penstock.trident"),
    Page("functions.md", "Functions", "Calls are made with `penstock.drpc`. [Guide](../../guide/drpc.md)",
         ("LinearDRPCTopologyBuilder", "LinearBolt")),
    Page("connectors.md", "Connectors of your own", "`from penstock.connectors.base import ...`; `ps.connector` hands one to a flow.",
         ("SourceConnector", "SourceContext", "RowSink", "SinkConnector", "SinkContext", "Batch", "StagedBatch", "StagedRows", "Refusal", "Capabilities", "Spot",
          "rows_of", "refusals_of", "REFUSED"), "penstock.connectors.base"),
    Page("storage.md", "Storage", "`from penstock.storage import ...`: durable bytes under names, in files, object stores and HDFS.",
         ("storage_at", "open_storage", "Storage", "Entry", "StorageError", "NotFound", "Conflict"), "penstock.storage"),
    Page("testing.md", "Test kit", "`from penstock.testing import ...`. [Guide](../../guide/testing.md)",
         ("run_local", "run_spark", "LocalDRPC", "Driver", "Results", "explain_match", "Explanation", "explain_rows", "RowExplanation", "complete_topology", "TrackedTopology", "BARRIER", "CRASH"), "penstock.testing"),
)  # fmt: skip


@dataclass
class Doc:
    """A docstring, taken apart."""

    about: str = ""
    args: dict[str, str] = field(default_factory=dict)
    returns: str = ""
    raises: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    example: str = ""


def parsed(text: str) -> Doc:
    r"""The parts of a docstring.

    >>> parsed("Adds.\n\nArgs:\n    n: a number.\n\nReturns:\n    The sum.").args
    {'n': 'a number.'}
    """
    parts: dict[str, list[str]] = {"": [], "example": [], **{name: [] for name in SECTIONS}}
    at = ""
    for line in text.split("\n"):
        heading = re.fullmatch(rf"({'|'.join(SECTIONS)}):", line)
        if heading:
            at = heading[1]
        else:
            at = "example" if line.startswith(">>>") else at
            parts[at].append(line)
    plain = {name: textwrap.dedent("\n".join(lines)).strip("\n") for name, lines in parts.items()}
    returns = " ".join((plain["Returns"] or plain["Yields"]).split())
    args, raises, attributes = (_named(plain[section]) for section in ("Args", "Raises", "Attributes"))
    return Doc(plain[""].strip(), args, returns, raises, attributes, plain["example"])


def _named(text: str) -> dict[str, str]:
    """The entries of a section, each a name, a colon and its meaning; what is further in goes on with it."""
    entries = re.findall(r"^\**(\w+): (.*(?:\n[ ]+.*)*)", text, re.MULTILINE)
    return {name: " ".join(meaning.split()) for name, meaning in entries}


def _of(parameters: list[inspect.Parameter], said: dict[str, str]) -> dict[str, str]:
    """What is said of these parameters."""
    return {p.name: said[p.name] for p in parameters if p.name in said}


@dataclass(frozen=True)
class Name:
    """A public function, method or class, as a reader calls it."""

    called: str
    of: Callable[..., object]
    owner: type | None = None

    @property
    def doc(self) -> Doc:
        """What its docstring says; what that of a method leaves out is as the method says that it stands in for."""
        own = parsed(inspect.getdoc(self.of) or "")
        own = replace(own, args=_of(self.parameters, own.attributes) | own.args) if self.is_class else own
        for method in self._replaced():
            above = parsed(inspect.getdoc(method) or "")
            own = replace(
                own,
                args=_of(self.parameters, above.args) | own.args,
                returns=own.returns or above.returns,
                raises=above.raises | own.raises,
            )
        return own

    def _replaced(self) -> Iterator[object]:
        """The methods of classes above that a method stands in for, nearest first."""
        name = self.called.rpartition(".")[2]
        above = self.owner.__mro__ if self.owner is not None and not self.is_class else ()
        for cls in above:
            found = vars(cls).get(name)
            if inspect.isfunction(found) and found is not self.of:
                yield found

    @property
    def is_class(self) -> bool:
        """Whether it is a class."""
        return inspect.isclass(self.of)

    @property
    def parameters(self) -> list[inspect.Parameter]:
        """What it is called with."""
        if self.is_class and self.called.rpartition(".")[2] in NOT_MADE:
            return []
        of = vars(self.of).get("__init__") if self.is_class else inspect.unwrap(self.of)
        found = inspect.signature(of).parameters.values() if of is not None else ()
        return [p for p in found if p.name not in ("self", "cls")]

    @property
    def has_result(self) -> bool:
        """Whether it returns something."""
        return not self.is_class and inspect.signature(inspect.unwrap(self.of)).return_annotation not in ("None", None)

    @property
    def source(self) -> ast.AST:
        """Its code."""
        return ast.parse(textwrap.dedent(inspect.getsource(inspect.unwrap(self.of))))


def object_of(page: Page, name: str) -> object:
    """What a name on a page stands for."""
    module = MODULES.get(page.module, penstock)
    return RETURNED[name] if name in RETURNED else getattr(module, name)


def members(cls: type) -> Iterator[tuple[str, object, type]]:
    """The public members of a class, those it inherits from Penstock's own classes too."""
    seen: set[str] = set()
    for owner in cls.__mro__:
        for name, value in vars(owner).items() if owner.__module__.startswith("penstock") else ():
            if not name.startswith("_") and name not in seen:
                seen.add(name)
                yield name, value, cls


def methods(cls: type, called: str) -> list[Name]:
    """The public methods of a class."""
    plain = ((n, v.__func__ if isinstance(v, classmethod | staticmethod) else v, o) for n, v, o in members(cls))
    return [Name(f"{called}.{n}", v, o) for n, v, o in plain if inspect.isfunction(v)]


def callables() -> Iterator[Name]:
    """Every public function, class and method of the reference."""
    for page in PAGES:
        for name in page.names:
            of = object_of(page, name)
            called = f"trident.{name}" if page.module == "penstock.trident" else name
            if inspect.isclass(of):
                yield Name(called, of, of)
                yield from methods(of, called)
            elif inspect.isfunction(of):
                yield Name(f"{page.module}.{name}" if page.module == "ps" else name, of)


def page_text(page: Page) -> str:
    """A page as Markdown."""
    parts = [
        f"# {page.title}\n\n<!-- made by scripts/reference.py from the docstrings; change those -->\n\n{page.about}\n"
    ]
    parts += [entry for name in page.names for entry in _entries(page, name)]
    return "\n".join(parts)


def _entries(page: Page, name: str) -> Iterator[str]:
    of, shown = object_of(page, name), f"ps.{name}" if page.module == "ps" and name not in RETURNED else name
    if inspect.isclass(of):
        yield _entry(Name(shown, of, of), 2, _fields(of))
        yield from (_entry(method, 3) for method in methods(of, name))
    elif inspect.isfunction(of):
        yield _entry(Name(shown, of), 2)
    else:
        yield f"## {shown}\n\n{CONSTANTS[name]}\n"


CONSTANTS = {
    "REFUSED": "Stands in the message of a sink that refuses rows while they are staged; what it says against them follows.",
    "END": "What `Spout.next_tuple` returns (or raises) when the spout has nothing more to emit, ever.",
    "fn": 'Every function as a method: `ps.fn.upper(ps.col("word"))`; plain arguments are constants. Names that are Python keywords end in an underscore: `ps.fn.if_`.',
    "BARRIER": "In a list of records for `run_local`: a batch ends here.",
    "CRASH": "In a list of records for `run_local`: the process dies here and is started again.",
}
"""Public names that are neither classes nor functions."""


def _entry(name: Name, level: int, more: str = "") -> str:
    doc = name.doc
    parts = [f"{'#' * level} {name.called}"]
    if name.parameters or not name.is_class:
        parts.append(f"```python no-run\n{name.called}({', '.join(_signature(name.parameters))})\n```")
    parts.append(_lines(doc.about))
    if name.parameters:
        rows = [_row(p, doc.args.get(p.name, "")) for p in name.parameters]
        parts.append("\n".join(["| Argument | Type | Default | Meaning |", "|---|---|---|---|", *rows]))
    parts += [f"**Returns** {_first_lower(doc.returns)}"] if doc.returns else []
    parts += (
        ["**Raises** " + "; ".join(f"`{k}`: {v.rstrip('.')}" for k, v in doc.raises.items()) + "."]
        if doc.raises
        else []
    )
    parts += [more] if more else []
    parts += [f"```pycon\n{doc.example}\n```"] if doc.example else []
    return "\n\n".join(parts) + "\n"


def _lines(about: str) -> str:
    """Paragraphs, each on one line."""
    return "\n\n".join(" ".join(each.split()) for each in about.split("\n\n"))


def _first_lower(text: str) -> str:
    return text[0].lower() + text[1:] if text[:2].istitle() or text.startswith("A ") else text


def _signature(parameters: list[inspect.Parameter]) -> Iterator[str]:
    seen_star = False
    for p in parameters:
        if p.kind is p.VAR_POSITIONAL:
            seen_star = True
            yield f"*{p.name}"
        elif p.kind is p.VAR_KEYWORD:
            yield f"**{p.name}"
        else:
            if p.kind is p.KEYWORD_ONLY and not seen_star:
                seen_star = True
                yield "*"
            yield p.name if p.default is p.empty else f"{p.name}={_default(p)}"


def _default(parameter: inspect.Parameter) -> str:
    return getattr(parameter.default, "__name__", None) or repr(parameter.default)


def _row(parameter: inspect.Parameter, meaning: str) -> str:
    kind = "" if parameter.annotation is parameter.empty else f"`{parameter.annotation}`".replace("|", "\\|")
    default = "" if parameter.default is parameter.empty else f"`{_default(parameter)}`"
    star = (
        "*" if parameter.kind is parameter.VAR_POSITIONAL else "**" if parameter.kind is parameter.VAR_KEYWORD else ""
    )
    return f"| `{star}{parameter.name}` | {kind} | {default} | {meaning.replace('|', chr(92) + '|')} |"


def _fields(cls: type) -> str:
    """The properties and the documented attributes of a class."""
    rows = [
        (n, (inspect.getdoc(v) or "").split("\n")[0]) for n, v, _ in members(cls) if not callable(v) and _is_property(v)
    ]
    made_of = {p.name for p in Name(cls.__name__, cls).parameters}
    rows += [pair for pair in parsed(inspect.getdoc(cls) or "").attributes.items() if pair[0] not in made_of]
    rows += [pair for owner in cls.__mro__ if owner.__module__.startswith("penstock") for pair in _attributes(owner)]
    if not rows:
        return ""
    return "\n".join(["| Member | Meaning |", "|---|---|", *(f"| `{n}` | {m} |" for n, m in dict(rows).items())])


def _is_property(value: object) -> bool:
    return isinstance(value, property) or type(value).__name__ == "cached_property"


def _attributes(cls: type) -> list[tuple[str, str]]:
    """The attributes of a class that have a text after them."""
    body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0].body  # type: ignore[attr-defined]  # it is a class
    found = [(one.target.id, ast.literal_eval(two.value)) for one, two in pairwise(body) if _is_attribute(one, two)]
    return [(name, " ".join(text.split())) for name, text in found if not name.startswith("_")]


def _is_attribute(one: ast.stmt, two: ast.stmt) -> bool:
    named = isinstance(one, ast.AnnAssign) and isinstance(one.target, ast.Name)
    return (
        named and isinstance(two, ast.Expr) and isinstance(two.value, ast.Constant) and isinstance(two.value.value, str)
    )


def index_text() -> str:
    """The page that lists the others, and says what the types in their tables mean."""
    lines = [
        "# API reference",
        "",
        "<!-- made by scripts/reference.py from the docstrings; change those -->",
        "",
        "Every public name with its arguments, result, errors and an example. [An overview](../api.md) has the same names on one page.",
        "",
        *(f"- [{page.title}]({page.file}): {', '.join(f'`{n}`' for n in page.names)}" for page in PAGES),
        "",
        "## Types in the tables",
        "",
        "| Type | Meaning |",
        "|---|---|",
        *(f"| `{name}` | {meaning} |" for name, meaning in TYPES.items()),
        "",
    ]
    return "\n".join(lines)


def pages() -> dict[str, str]:
    """All pages by the name of their file."""
    return {"index.md": index_text(), **{page.file: page_text(page) for page in PAGES}}


def stale() -> list[str]:
    """The files that are not as the docstrings have them, and those that no longer belong."""
    wanted = pages()
    there = {p.name: p.read_text() for p in FOLDER.glob("*.md")}
    return sorted(name for name in wanted.keys() | there.keys() if wanted.get(name) != there.get(name))


def main() -> int:
    """Writes the pages, or checks them."""
    if "--check" in sys.argv:
        for name in stale():
            sys.stderr.write(f"docs/reference/api/{name} is stale: make reference\n")
        return int(bool(stale()))
    FOLDER.mkdir(parents=True, exist_ok=True)
    for old in set(stale()) - set(pages()):
        (FOLDER / old).unlink()
    for name, text in pages().items():
        (FOLDER / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
