"""Each statement from its tokens: CREATE, INSERT, SET and the like, up to where a query begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot.tokenizer_core import Token

from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.reading import TokenReader, statements_in, tokens_of
from penstock.frontends.sql.text.source import SqlText

_QUERY = ("SELECT", "WITH", "VALUES", "(", "FROM")


def read_statements(text: SqlText) -> list[s.Statement]:
    """The statements of a text, in order.

    Raises:
        SqlError: one cannot be read; with its position and what was expected there.
    """
    return [read_statement(text, tokens) for tokens in statements_in(tokens_of(text))]


def read_statement(text: SqlText, tokens: Sequence[Token]) -> s.Statement:
    """One statement from its tokens."""
    reader = TokenReader(text, tokens)
    span = (tokens[0].start, tokens[-1].end + 1)
    word = reader.word
    if word in _QUERY:
        return s.Select(*span, reader.query())
    read = STATEMENTS.get(word)
    if read is None:
        known = ", ".join(sorted({"SELECT", "WITH", *STATEMENTS}))
        raise reader.error(f"a statement that begins with one of {known}")
    made = read(reader, span)
    reader.end()
    return made


Span = tuple[int, int]


def _insert(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("INSERT")
    if not reader.found("INTO"):
        raise reader.error("INTO")
    table = reader.path("the name of a table")
    columns: tuple[str, ...] = ()
    if reader.word == "(" and reader.ahead(1) not in ("SELECT", "WITH", "VALUES", "("):
        columns = reader.names()
    return s.InsertInto(*span, table, columns, reader.query())


def _create(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("CREATE")
    replace = reader.found("OR", "REPLACE")
    system = reader.found("TEMPORARY") and reader.found("SYSTEM")
    if reader.found("VIEW"):
        return _view(reader, span, replace)
    if reader.found("FUNCTION"):
        return _function(reader, span)
    if reader.found("STANDING", "QUERY"):
        return _standing(reader, span)
    if system or not reader.found("TABLE"):
        raise reader.error("TABLE, VIEW, FUNCTION or STANDING QUERY")
    return _table(reader, span)


def _if_not_exists(reader: TokenReader) -> bool:
    return reader.found("IF", "NOT", "EXISTS")


def _view(reader: TokenReader, span: Span, replace: bool) -> s.Statement:
    exists = _if_not_exists(reader)
    name = reader.path("the name of a view")
    columns = reader.names() if reader.word == "(" else ()
    _comment(reader)
    reader.expect("AS")
    return s.CreateView(*span, name, columns, reader.query(), exists, replace)


_AFTER_QUERY = ("EVERY", "WHEN", "UNTIL", "INTO", "SNAPSHOT")


def _standing(reader: TokenReader, span: Span) -> s.Statement:
    from penstock.frontends.sql.standing.shapes import moment

    name = reader.path("the name of a standing query")
    reader.expect("AS")
    inner = TokenReader(reader.text, reader.until(lambda word: word in _AFTER_QUERY))
    if reader.word in ("EVERY", "WHEN", "SNAPSHOT"):
        raise reader.error(
            "UNTIL or INTO: EVERY, WHEN and WITH SNAPSHOT are not planned yet, results come as they change"
        )
    at, until = reader.offset, None
    if reader.found("UNTIL"):
        reader.found("TIMESTAMP")
        until = moment(reader.text, reader.string("a moment in single quotes; conditions are not planned yet"), at)
    if not reader.found("INTO"):
        raise reader.error("INTO and the table for the results")
    sink = reader.path("the name of a table")
    return s.CreateStandingQuery(*span, name, inner.query(), sink, until)


def _function(reader: TokenReader, span: Span) -> s.Statement:
    exists = _if_not_exists(reader)
    name = reader.path("the name of a function")
    reader.expect("AS")
    target = reader.string("the Python function as 'module.name'")
    if not reader.found("LANGUAGE", "PYTHON"):
        raise reader.error("LANGUAGE PYTHON")
    return s.CreateFunction(*span, name, target, exists)


def _comment(reader: TokenReader) -> None:
    if reader.found("COMMENT"):
        reader.string()


def _stops_column(word: str) -> bool:
    return word in (",", "COMMENT", "METADATA", "NOT", "NULL", "PRIMARY")


class _TableParts:
    """What stands between the parentheses of CREATE TABLE."""

    def __init__(self) -> None:
        self.columns: list[s.ColumnDefinition] = []
        self.watermark: s.WatermarkDefinition | None = None
        self.key: tuple[str, ...] = ()

    def read(self, reader: TokenReader) -> None:
        """One of them after the other."""
        reader.expect("(")
        self.one(reader)
        while reader.found(","):
            self.one(reader)
        reader.expect(")")

    def one(self, reader: TokenReader) -> None:
        """A column, the watermark or the key."""
        if reader.word == "WATERMARK" and reader.ahead(1) == "FOR":
            self.watermark = self.timed(reader)
        elif reader.word == "CONSTRAINT" or (
            reader.word in ("PRIMARY", "PRIMARY KEY") and reader.ahead(1) in ("KEY", "(")
        ):
            if reader.found("CONSTRAINT"):
                reader.name("the name of a constraint")
            reader.expect("PRIMARY", "KEY")
            self.keyed(reader, reader.names())
        else:
            self.columns.append(self.column(reader))

    def keyed(self, reader: TokenReader, names: tuple[str, ...]) -> None:
        """A primary key; what it promises is taken as said."""
        if self.key:
            raise reader.error("one PRIMARY KEY")
        self.key = names
        reader.found("NOT", "ENFORCED")

    def timed(self, reader: TokenReader) -> s.WatermarkDefinition:
        """WATERMARK FOR column AS expression."""
        at = reader.offset
        if self.watermark is not None:
            raise reader.error("one WATERMARK")
        reader.expect("WATERMARK", "FOR")
        column = reader.path("a column")
        reader.expect("AS")
        return s.WatermarkDefinition(column, reader.expression(lambda word: word == ","), at)

    def column(self, reader: TokenReader) -> s.ColumnDefinition:
        """A column of a type, computed, or of metadata."""
        at, name = reader.offset, reader.name("the name of a column")
        if reader.found("AS"):
            computed = reader.expression(lambda word: word in (",", "COMMENT"))
            _comment(reader)
            return s.ColumnDefinition(name, at, computed=computed)
        kind = reader.type(_stops_column)
        metadata = ""
        if reader.found("METADATA"):
            metadata = reader.string("the name of the metadata") if reader.found("FROM") else name
            reader.found("VIRTUAL")
        nullable = True
        while reader.word in ("NOT", "NULL", "PRIMARY", "PRIMARY KEY"):
            if reader.found("NOT", "NULL"):
                nullable = False
            elif not reader.found("NULL"):
                reader.expect("PRIMARY", "KEY")
                self.keyed(reader, (name,))
        _comment(reader)
        return s.ColumnDefinition(name, at, kind, metadata=metadata, nullable=nullable)


def _table(reader: TokenReader, span: Span) -> s.Statement:
    exists = _if_not_exists(reader)
    name = reader.path("the name of a table")
    parts = _TableParts()
    if reader.word == "(":
        parts.read(reader)
    _comment(reader)
    partitioned = reader.names() if reader.found("PARTITIONED", "BY") else ()
    options = _options(reader) if reader.found("WITH") else ()
    like = reader.path("the name of a table") if reader.found("LIKE") else ""
    query = reader.query() if reader.found("AS") else None
    return s.CreateTable(
        *span, name, tuple(parts.columns), parts.watermark, parts.key, partitioned, options, query, exists, like
    )


def _options(reader: TokenReader) -> s.Options:
    reader.expect("(")
    made = []
    while reader.word != ")":
        at, name = reader.offset, reader.string("the name of an option in single quotes")
        reader.expect("=")
        made.append((name, reader.string("the value of an option in single quotes"), at))
        if not reader.found(","):
            break
    reader.expect(")")
    return tuple(made)


def _drop(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("DROP")
    reader.found("TEMPORARY")
    kind = reader.word
    if kind not in ("TABLE", "VIEW", "FUNCTION"):
        raise reader.error("TABLE, VIEW or FUNCTION")
    reader.expect(kind)
    exists = reader.found("IF", "EXISTS")
    return s.Drop(*span, kind, reader.path(), exists)


def _explain(reader: TokenReader, span: Span) -> s.Statement:
    reader.at += 1
    details = []
    while reader.word in ("PLAN", "FOR", "ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", ","):
        details.append(reader.word)
        reader.at += 1
    if reader.next is None:
        raise reader.error("a statement")
    return s.Explain(
        *span, read_statement(reader.text, reader.rest()), tuple(d for d in details if d not in ("FOR", ","))
    )


def _describe(reader: TokenReader, span: Span) -> s.Statement:
    reader.at += 1
    return s.Describe(*span, reader.path("the name of a table"))


_SHOWN = ("TABLES", "VIEWS", "FUNCTIONS")


def _show(reader: TokenReader, span: Span) -> s.Statement:
    reader.at += 1
    if reader.found("CREATE", "TABLE") or reader.found("CREATE", "VIEW"):
        return s.Show(*span, "CREATE", reader.path("the name of a table"))
    if reader.found("COLUMNS"):
        reader.expect("FROM")
        return s.Describe(*span, reader.path("the name of a table"))
    reader.found("USER")
    what = reader.word
    if what not in _SHOWN:
        raise reader.error("TABLES, VIEWS, FUNCTIONS, COLUMNS FROM or CREATE TABLE")
    reader.at += 1
    return s.Show(*span, what)


def _set(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("SET")
    if reader.next is None:
        return s.SetOption(*span)
    name = reader.string("the name of an option in single quotes") if reader.word == "" else reader.path("an option")
    reader.expect("=")
    value = reader.string("a value in single quotes") if reader.word == "" else str(reader.tokens[reader.at].text)
    reader.at += reader.next is not None and reader.word != ""
    return s.SetOption(*span, name, value)


def _reset(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("RESET")
    return s.SetOption(*span, reader.string() if reader.next is not None else "")


def _begin(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("BEGIN")
    reader.expect("STATEMENT", "SET")
    return s.BeginSet(*span)


def _end(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("END")
    return s.EndSet(*span)


Read = Callable[[TokenReader, Span], s.Statement]
STATEMENTS: dict[str, Read] = {
    "INSERT": _insert,
    "CREATE": _create,
    "DROP": _drop,
    "EXPLAIN": _explain,
    "DESCRIBE": _describe,
    "DESC": _describe,
    "SHOW": _show,
    "SET": _set,
    "RESET": _reset,
    "BEGIN": _begin,
    "END": _end,
}
"""How each statement is read, by its first word. A family of statements adds itself here."""
