"""ALTER TABLE and ALTER VIEW, as Flink writes them."""

from __future__ import annotations

from penstock.frontends.sql.text import reader as r
from penstock.frontends.sql.text import statements as s
from penstock.frontends.sql.text.reading import TokenReader

_KEY, _WATERMARK = "PRIMARY KEY", "WATERMARK"


def read_alter(reader: TokenReader, span: r.Span) -> s.Statement:
    """ALTER, up to the end of the statement."""
    reader.expect("ALTER")
    if reader.word in ("FUNCTION", "DATABASE", "CATALOG", "MATERIALIZED"):
        raise reader.error("TABLE or VIEW: DROP anything else and CREATE it again")
    if reader.found("VIEW"):
        return _view(reader, span)
    if not reader.found("TABLE"):
        raise reader.error("TABLE or VIEW")
    exists = reader.found("IF", "EXISTS")
    name = reader.path("the name of a table")
    read = _CHANGES.get(reader.word)
    if read is None:
        raise reader.error(", ".join(_CHANGES))
    verb = reader.word
    reader.at += 1
    return s.AlterTable(*span, name, exists, read(reader, verb))


def _view(reader: TokenReader, span: r.Span) -> s.Statement:
    exists = reader.found("IF", "EXISTS")
    name = reader.path("the name of a view")
    if reader.found("RENAME", "TO"):
        return s.AlterView(*span, name, exists, rename=reader.path("the new name"))
    if not reader.found("AS"):
        raise reader.error("RENAME TO or AS")
    return s.AlterView(*span, name, exists, query=reader.query())


def _rename(reader: TokenReader, verb: str) -> s.Alteration:
    if reader.found("TO"):
        return s.Alteration(verb, rename=reader.path("the new name"))
    at, old = reader.offset, reader.name("TO, or the name of a column")
    reader.expect("TO")
    return s.Alteration("RENAME COLUMN", names=((old, at),), rename=reader.name("the new name"))


def _parts(reader: TokenReader, verb: str) -> s.Alteration:
    """ADD and MODIFY: columns, the key and the watermark, one or several in parentheses."""
    if reader.word in ("PARTITION", "IF"):
        raise reader.error("a column, PRIMARY KEY or WATERMARK: partitions are made by the rows that are written")
    parts, places, several = r.TableParts(has_places=True), [], reader.found("(")
    while True:
        before = len(parts.columns)
        parts.one(reader)
        place = _place(reader)
        places += [place] * (len(parts.columns) - before)
        if not (several and reader.found(",")):
            break
    if several:
        reader.expect(")")
    columns = tuple(zip(parts.columns, places, strict=True))
    return s.Alteration(verb, columns=columns, watermark=parts.watermark, key=parts.key)


def _place(reader: TokenReader) -> tuple[str, int] | None:
    """FIRST or AFTER a column: the name of that column, empty for FIRST; None where nothing is said."""
    at = reader.offset
    if reader.found("FIRST"):
        return "", at
    return (reader.name("a column"), at) if reader.found("AFTER") else None


def _drop(reader: TokenReader, verb: str) -> s.Alteration:
    if reader.found("PRIMARY", "KEY"):
        return s.Alteration(verb, parts=(_KEY,))
    if reader.found("WATERMARK"):
        return s.Alteration(verb, parts=(_WATERMARK,))
    if reader.found("CONSTRAINT"):
        reader.name("the name of a constraint")
        return s.Alteration(verb, parts=(_KEY,))
    if reader.word in ("PARTITION", "IF"):
        raise reader.error(
            "a column, PRIMARY KEY, CONSTRAINT or WATERMARK: partitions are made by the rows that are written"
        )
    several = reader.found("(")
    names = [(reader.offset, reader.name("a column"))]
    while several and reader.found(","):
        names.append((reader.offset, reader.name("a column")))
    if several:
        reader.expect(")")
    return s.Alteration(verb, names=tuple((name, at) for at, name in names))


def _set(reader: TokenReader, verb: str) -> s.Alteration:
    return s.Alteration(verb, options=r.read_options(reader))


def _reset(reader: TokenReader, verb: str) -> s.Alteration:
    reader.expect("(")
    names = [(reader.offset, reader.string("the name of an option in single quotes"))]
    while reader.found(","):
        names.append((reader.offset, reader.string("the name of an option in single quotes")))
    reader.expect(")")
    return s.Alteration(verb, names=tuple((name, at) for at, name in names))


_CHANGES = {"RENAME": _rename, "ADD": _parts, "MODIFY": _parts, "DROP": _drop, "SET": _set, "RESET": _reset}
r.STATEMENTS["ALTER"] = read_alter
