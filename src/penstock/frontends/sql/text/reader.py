"""Each statement from its tokens: CREATE, INSERT, SET and the like, up to where a query begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from sqlglot.tokenizer_core import Token

from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.hints import check_all_read, take_hint
from penstock.frontends.sql.text.reading import TokenReader, statements_in, tokens_of
from penstock.frontends.sql.text.source import SqlText
from penstock.frontends.sql.text.standing import StandingReader

_QUERY = ("SELECT", "WITH", "VALUES", "(", "FROM")


def read_statements(text: SqlText) -> list[s.Statement]:
    """The statements of a text, in order.

    Raises:
        SqlError: one cannot be read; with its position and what was expected there.
    """
    standing = StandingReader(text)
    made: list[s.Statement] = []
    explained = False
    for tokens in statements_in(tokens_of(text)):
        reader = TokenReader(text, tokens)
        if not explained and reader.found("EXPLAIN", "STATEMENT", "SET", "BEGIN"):
            explained = True
        elif reader.found("EXECUTE", "STATEMENT", "SET", "BEGIN"):
            made.append(s.BeginSet(tokens[0].start, tokens[reader.at - 1].end + 1))
        elif explained and reader.found("END"):
            explained = False
        elif reader.found("EXECUTE"):
            pass
        rest = reader.rest()
        if rest:
            read = read_statement(text, rest, standing)
            made.append(s.Explain(read.at, read.end, read) if explained else read)
    check_all_read(text)
    return made


def read_statement(text: SqlText, tokens: Sequence[Token], standing: StandingReader | None = None) -> s.Statement:
    """One statement from its tokens; what is known of the standing queries before it saves the parsing of those like them."""
    reader = TokenReader(text, tokens)
    if reader.found("CREATE", "STANDING", "QUERY"):
        return (standing or StandingReader(text)).read(tokens)
    span = (tokens[0].start, tokens[-1].end + 1)
    word = reader.word
    if word in _QUERY:
        return s.Select(*span, reader.query())
    read = STATEMENTS.get(word)
    if read is None:
        if word in ELSEWHERE:
            raise text.error(tokens[0].start, f"{word} is no statement here: {ELSEWHERE[word]}")
        known = ", ".join(sorted({"SELECT", "WITH", *STATEMENTS}))
        raise reader.error(f"a statement that begins with one of {known}")
    made = read(reader, span)
    reader.end()
    return made


Span = tuple[int, int]


def _insert(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("INSERT")
    if reader.word == "OVERWRITE":
        raise reader.error("INTO: a sink adds to what is there, and says so")
    if not reader.found("INTO"):
        raise reader.error("INTO")
    table = reader.path("the name of a table")
    hint = take_hint(reader.text, int(reader.tokens[reader.at - 1].end))
    columns: tuple[str, ...] = ()
    if reader.word == "PARTITION":
        raise reader.error("a query: the values of a partition are columns of it")
    if reader.word == "(" and reader.ahead(1) not in ("SELECT", "WITH", "VALUES", "("):
        columns = reader.names()
    return s.InsertInto(*span, table, columns, reader.query(), hint.options if hint is not None else ())


def _create(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("CREATE")
    replace = reader.found("OR", "REPLACE")
    system = reader.found("TEMPORARY") and reader.found("SYSTEM")
    if reader.found("VIEW"):
        return _view(reader, span, replace)
    if reader.found("FUNCTION"):
        return _function(reader, span)
    if reader.word in ("CATALOG", "DATABASE"):
        raise reader.error("TABLE, VIEW or FUNCTION: there is one catalog, whose tables are those of the text")
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


def _function(reader: TokenReader, span: Span) -> s.Statement:
    exists = _if_not_exists(reader)
    name = reader.path("the name of a function")
    reader.expect("AS")
    target = reader.string("the Python function as 'module.name'")
    if not reader.found("LANGUAGE"):
        raise reader.error("LANGUAGE PYTHON")
    if not reader.found("PYTHON"):
        raise reader.error("PYTHON")
    return s.CreateFunction(*span, name, target, exists)


def _comment(reader: TokenReader) -> None:
    if reader.found("COMMENT"):
        reader.string()


def _stops_column(word: str) -> bool:
    return word in (",", "COMMENT", "METADATA", "NOT", "NULL", "PRIMARY", "FIRST", "AFTER")


class TableParts:
    """What stands between the parentheses of CREATE TABLE; in ALTER TABLE a column `has_places`, FIRST or AFTER another."""

    def __init__(self, has_places: bool = False) -> None:
        self.stops = (",", "COMMENT", "FIRST", "AFTER") if has_places else (",", "COMMENT")
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
            computed = reader.expression(lambda word: word in self.stops)
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
    parts = TableParts()
    if reader.word == "(":
        parts.read(reader)
    _comment(reader)
    partitioned = reader.names() if reader.found("PARTITIONED", "BY") else ()
    options = read_options(reader) if reader.found("WITH") else ()
    like = reader.path("the name of a table") if reader.found("LIKE") else ""
    takes = _like_options(reader) if like and reader.word == "(" else ()
    query = reader.query() if reader.found("AS") else None
    return s.CreateTable(
        *span, name, tuple(parts.columns), parts.watermark, parts.key, partitioned, options, query, exists, like, takes
    )


_LIKE_PARTS = ("ALL", "CONSTRAINTS", "GENERATED", "METADATA", "OPTIONS", "PARTITIONS", "WATERMARKS")


def _like_options(reader: TokenReader) -> tuple[tuple[str, str, int], ...]:
    """What is taken of the other table: how, of which part, and where that stands."""
    reader.expect("(")
    made = []
    while reader.word != ")":
        at, how = reader.offset, reader.word
        if how not in ("INCLUDING", "EXCLUDING", "OVERWRITING"):
            raise reader.error("INCLUDING, EXCLUDING or OVERWRITING")
        reader.at += 1
        part = reader.word
        if part not in _LIKE_PARTS:
            raise reader.error(", ".join(_LIKE_PARTS))
        reader.at += 1
        made.append((how, part, at))
    reader.expect(")")
    return tuple(made)


def read_options(reader: TokenReader) -> s.Options:
    """Options in parentheses."""
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
    while reader.word in ("PLAN", "FOR", "ESTIMATED_COST", "CHANGELOG_MODE", "JSON_EXECUTION_PLAN", "PLAN_ADVICE", ","):
        details.append(reader.word)
        reader.at += 1
    if reader.word not in (*_QUERY, "INSERT", "CREATE"):
        raise reader.error("a query, INSERT or CREATE TABLE ... AS")
    return s.Explain(
        *span, read_statement(reader.text, reader.rest()), tuple(d for d in details if d not in ("FOR", ","))
    )


def _describe(reader: TokenReader, span: Span) -> s.Statement:
    reader.at += 1
    if reader.word in ("EXTENDED", "TABLE") and reader.ahead(1) not in ("", "."):
        reader.at += 1
    return s.Describe(*span, reader.path("the name of a table"))


_SHOWN = ("TABLES", "VIEWS", "FUNCTIONS", "CATALOGS", "DATABASES")


def _show(reader: TokenReader, span: Span) -> s.Statement:
    reader.at += 1
    if reader.found("CREATE", "TABLE") or reader.found("CREATE", "VIEW"):
        return s.Show(*span, "CREATE", reader.path("the name of a table"))
    if reader.found("CURRENT"):
        if reader.word not in ("CATALOG", "DATABASE"):
            raise reader.error("CATALOG or DATABASE")
        reader.at += 1
        return s.Show(*span, f"{reader.tokens[reader.at - 1].text.upper()}S")
    if reader.found("COLUMNS"):
        if not (reader.found("FROM") or reader.found("IN")):
            raise reader.error("FROM")
        table = reader.path("the name of a table")
        return s.Describe(*span, table, _pattern(reader))
    reader.found("USER")
    what = reader.word
    if what not in _SHOWN:
        raise reader.error("TABLES, VIEWS, FUNCTIONS, COLUMNS FROM, CREATE TABLE, CREATE VIEW, CATALOGS or DATABASES")
    reader.at += 1
    if reader.found("FROM") or reader.found("IN"):
        reader.path("the name of a database")
    return s.Show(*span, what, like=_pattern(reader))


def _pattern(reader: TokenReader) -> str:
    """The pattern after LIKE; empty where there is none."""
    return reader.string("a pattern in single quotes") if reader.found("LIKE") else ""


def _use(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("USE")
    kind = "CATALOG" if reader.found("CATALOG") else "DATABASE"
    at, name = reader.offset, reader.path(f"the name of a {kind.lower()}")
    own = s.CATALOG if kind == "CATALOG" else s.DATABASE
    if name.lower() != own:
        raise reader.text.error(at, f"no {kind.lower()} {name!r}: there is one, {own!r}")
    return s.Use(*span, name)


def _set(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("SET")
    if reader.next is None:
        return s.SetOption(*span)
    name = _option_name(reader)
    reader.expect("=")
    if reader.word == "":
        return s.SetOption(*span, name, reader.string("a value in single quotes"))
    value = reader.text.text[reader.offset : reader.tokens[-1].end + 1]
    reader.rest()
    return s.SetOption(*span, name, value)


def _option_name(reader: TokenReader) -> str:
    """The name of an option in single quotes, or as it is: a.b-c."""
    if reader.word == "":
        return reader.string("the name of an option in single quotes")
    begin = reader.offset
    taken = reader.until(lambda word: word == "=")
    if not taken:
        raise reader.error("the name of an option in single quotes")
    return reader.text.text[begin : taken[-1].end + 1]


def _reset(reader: TokenReader, span: Span) -> s.Statement:
    reader.expect("RESET")
    return s.SetOption(*span, _option_name(reader) if reader.next is not None else "", resets=True)


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
    "USE": _use,
    "BEGIN": _begin,
    "END": _end,
}
"""How each statement is read, by its first word. A family of statements adds itself here."""
ELSEWHERE = {
    "DELETE": "rows of a table go when those that made them go",
    "UPDATE": "rows of a table change when those that made them change",
    "TRUNCATE": "a sink adds to what is there",
    "ANALYZE": "plans need no statistics",
    "CALL": "there are no procedures",
    "ADD": "functions are written in Python: CREATE FUNCTION f AS 'module.name' LANGUAGE PYTHON",
    "REMOVE": "functions are written in Python",
    "LOAD": "there are no modules",
    "UNLOAD": "there are no modules",
    "COMPILE": "a plan is made whenever a flow starts; EXPLAIN shows it",
    "STOP": "penstock jobs lists what runs, and ends it",
    "MERGE": "INSERT INTO a table with a PRIMARY KEY replaces rows",
    "HELP": "\\? lists the commands of the shell",
}
"""Statements of others that there are not, by their first word, and why."""
