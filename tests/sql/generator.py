"""Queries made at random from a grammar, over tables that do not change: what they answer is compared with DuckDB.

Only what SQL defines alike for all is generated: no division by zero, no overflow, floats that add up exactly, texts of ASCII, comparisons of equal types.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

Column = tuple[str, str]
"""A name and a type: int, float, text or bool."""

SCHEMAS: dict[str, tuple[Column, ...]] = {
    "bids": (("id", "int"), ("auction", "int"), ("price", "float"), ("channel", "text"), ("open", "bool")),
    "people": (("pid", "int"), ("name", "text"), ("city", "text"), ("age", "int")),
}
TYPES = {"int": "bigint", "float": "double", "text": "string", "bool": "boolean"}
DUCK_TYPES = {"int": "BIGINT", "float": "DOUBLE", "text": "VARCHAR", "bool": "BOOLEAN"}
TEXTS = ("web", "app", "Shop", "", "a b", "it''s")


def rows(table: str, chance: random.Random, many: int) -> list[tuple[object, ...]]:
    """Rows of a table, some of their values null; the first column is a number of its own for each."""
    made = []
    for at in range(many):
        values: list[object] = [at]
        for _, kind in SCHEMAS[table][1:]:
            values.append(None if chance.random() < 0.12 else _value(kind, chance))
        made.append(tuple(values))
    return made


def _value(kind: str, chance: random.Random) -> object:
    if kind == "int":
        return chance.randint(0, 6)
    if kind == "float":
        return chance.randint(-8, 8) / 4
    return chance.random() < 0.5 if kind == "bool" else chance.choice(TEXTS).replace("''", "'")


@dataclass
class Generator:
    """Makes queries.

    Args:
        chance: where the randomness comes from.
        features: what may be in a query: see `SHAPES`.
    """

    chance: random.Random
    features: Sequence[str]
    depth: int = field(default=0)

    def query(self) -> str:
        """A query whose columns have names of their own."""
        shape = self.chance.choice([s for s in SHAPES if s in self.features])
        return SHAPES[shape](self)

    # ---- expressions

    def expr(self, kind: str, columns: Sequence[Column], depth: int = 2) -> str:
        """An expression of a type over columns."""
        own = [name for name, of in columns if of == kind]
        if depth <= 0 or self.chance.random() < 0.3:
            if own and self.chance.random() < 0.8:
                return self.chance.choice(own)
            return self.literal(kind)
        made = self.chance.choice(_EXPRESSIONS[kind])
        return made(self, columns, depth - 1)

    def literal(self, kind: str) -> str:
        """A constant."""
        if kind == "int":
            return str(self.chance.randint(-3, 9))
        if kind == "float":
            return f"CAST({self.chance.randint(-8, 8) / 4} AS DOUBLE)"
        return self.chance.choice(("TRUE", "FALSE")) if kind == "bool" else f"'{self.chance.choice(TEXTS)}'"

    def kind(self) -> str:
        """A type."""
        return self.chance.choice(("int", "float", "text", "bool"))

    def condition(self, columns: Sequence[Column]) -> str:
        """A condition."""
        return self.expr("bool", columns, 3)

    def where(self, columns: Sequence[Column]) -> str:
        """A WHERE, or none."""
        return f" WHERE {self.condition(columns)}" if self.chance.random() < 0.6 else ""

    def aggregate(self, columns: Sequence[Column]) -> tuple[str, str]:
        """An aggregate, and the type of its result."""
        numbers = [c for c in columns if c[1] in ("int", "float")]
        name, kind = self.chance.choice(numbers)
        calls = [
            ("count(*)", "int"), (f"count({self.chance.choice(columns)[0]})", "int"), (f"sum({name})", kind), (f"min({name})", kind),
            (f"max({name})", kind), (f"avg({name})", "float"), (f"count(DISTINCT {name})", "int"),
            (f"sum(CASE WHEN {self.expr('bool', columns, 1)} THEN 1 ELSE 0 END)", "int"),
        ]  # fmt: skip
        call, of = self.chance.choice(calls)
        if self.chance.random() < 0.2:
            call = f"{call} FILTER (WHERE {self.expr('bool', columns, 1)})"
        return call, of

    # ---- relations

    def relation(self) -> tuple[str, list[Column]]:
        """What stands in FROM, and its columns."""
        table = self.chance.choice(list(SCHEMAS))
        if self.depth < 2 and "subquery" in self.features and self.chance.random() < 0.3:
            self.depth += 1
            columns = [(f"c{at}", self.kind()) for at in range(self.chance.randint(1, 3))]
            inner = ", ".join(f"{self.expr(kind, SCHEMAS[table])} AS {name}" for name, kind in columns)
            return f"(SELECT {inner} FROM {table}{self.where(SCHEMAS[table])}) AS q{self.depth}", columns
        return table, list(SCHEMAS[table])


def _select(g: Generator) -> str:
    source, columns = g.relation()
    kinds = [g.kind() for _ in range(g.chance.randint(1, 4))]
    items = ", ".join(f"{g.expr(kind, columns, 3)} AS x{at}" for at, kind in enumerate(kinds))
    return f"SELECT {items} FROM {source}{g.where(columns)}"


def _distinct(g: Generator) -> str:
    source, columns = g.relation()
    kinds = [g.chance.choice(("int", "text", "bool")) for _ in range(g.chance.randint(1, 3))]
    items = ", ".join(f"{g.expr(kind, columns, 1)} AS x{at}" for at, kind in enumerate(kinds))
    return f"SELECT DISTINCT {items} FROM {source}{g.where(columns)}"


def _grouped(g: Generator, having: bool = True) -> str:
    source, columns = g.relation()
    keys = [g.expr(g.chance.choice(("int", "text", "bool")), columns, 1) for _ in range(g.chance.randint(1, 2))]
    keys = [f"({key})" for key in dict.fromkeys(keys) if not _is_constant(key, columns)]
    calls = [g.aggregate(columns)[0] for _ in range(g.chance.randint(1, 3))] if _has_number(columns) else ["count(*)"]
    items = [
        *(f"{key} AS k{at}" for at, key in enumerate(keys)),
        *(f"{call} AS a{at}" for at, call in enumerate(calls)),
    ]
    by = f" GROUP BY {', '.join(keys)}" if keys else ""
    only = f" HAVING count(*) > {g.chance.randint(0, 4)}" if having and keys and g.chance.random() < 0.4 else ""
    return f"SELECT {', '.join(items)} FROM {source}{g.where(columns)}{by}{only}"


def _has_number(columns: Sequence[Column]) -> bool:
    return any(kind in ("int", "float") for _, kind in columns)


def _is_constant(expr: str, columns: Sequence[Column]) -> bool:
    return not any(name in expr for name, _ in columns)


def _total(g: Generator) -> str:
    source, columns = g.relation()
    calls = [g.aggregate(columns)[0] for _ in range(g.chance.randint(1, 3))] if _has_number(columns) else ["count(*)"]
    return f"SELECT {', '.join(f'{call} AS a{at}' for at, call in enumerate(calls))} FROM {source}{g.where(columns)}"


def _group_of_groups(g: Generator) -> str:
    """A query over a table that changes: how many groups have each total."""
    table = g.chance.choice(list(SCHEMAS))
    columns = SCHEMAS[table]
    key = g.chance.choice([name for name, kind in columns if kind in ("int", "text", "bool")][1:])
    call = g.chance.choice(("count(*)", "max(id)" if table == "bids" else "max(pid)", "sum(1)"))
    inner = f"SELECT {key} AS k, {call} AS m FROM {table}{g.where(columns)} GROUP BY {key}"
    outer = g.chance.choice(("count(*)", "count(k)", "max(m)", "min(m)", "sum(m)"))
    if g.chance.random() < 0.5:
        return f"SELECT m, {outer} AS n FROM ({inner}) AS t GROUP BY m"
    return f"SELECT m + 1 AS m1, k FROM ({inner}) AS t WHERE m > {g.chance.randint(0, 4)}"


def _with(g: Generator) -> str:
    table = g.chance.choice(list(SCHEMAS))
    inner = f"SELECT * FROM {table}{g.where(SCHEMAS[table])}"
    kinds = [g.kind() for _ in range(g.chance.randint(1, 3))]
    items = ", ".join(f"{g.expr(kind, SCHEMAS[table])} AS x{at}" for at, kind in enumerate(kinds))
    return f"WITH w AS ({inner}) SELECT {items} FROM w"


def _union(g: Generator) -> str:
    kinds = [g.kind() for _ in range(g.chance.randint(1, 3))]
    parts = []
    for _ in range(g.chance.randint(2, 3)):
        table = g.chance.choice(list(SCHEMAS))
        items = ", ".join(f"{g.expr(kind, SCHEMAS[table])} AS x{at}" for at, kind in enumerate(kinds))
        parts.append(f"SELECT {items} FROM {table}{g.where(SCHEMAS[table])}")
    return " UNION ALL ".join(parts)


def _union_distinct(g: Generator) -> str:
    return _sets(g, (" UNION ",))


def _sets(g: Generator, operators: Sequence[str] = (" INTERSECT ", " EXCEPT ")) -> str:
    kinds = [g.chance.choice(("int", "text", "bool")) for _ in range(g.chance.randint(1, 2))]
    parts = []
    for _ in range(2):
        table = g.chance.choice(list(SCHEMAS))
        items = ", ".join(f"{g.expr(kind, SCHEMAS[table], 1)} AS x{at}" for at, kind in enumerate(kinds))
        parts.append(f"SELECT {items} FROM {table}{g.where(SCHEMAS[table])}")
    return g.chance.choice(operators).join(parts)


def _joined(g: Generator) -> str:
    columns = [(f"b.{n}", k) for n, k in SCHEMAS["bids"]] + [(f"p.{n}", k) for n, k in SCHEMAS["people"]]
    how = g.chance.choice(("JOIN", "LEFT JOIN", "RIGHT JOIN", "FULL JOIN"))
    on = g.chance.choice(("b.auction = p.age", "b.channel = p.name", "b.auction = p.pid"))
    kinds = [g.kind() for _ in range(g.chance.randint(1, 3))]
    items = ", ".join(f"{g.expr(kind, columns)} AS x{at}" for at, kind in enumerate(kinds))
    return f"SELECT b.id AS bid, p.pid AS person, {items} FROM bids AS b {how} people AS p ON {on}{g.where(columns)}"


def _semi(g: Generator) -> str:
    inner = f"SELECT age FROM people{' WHERE age IS NOT NULL' if g.chance.random() < 0.7 else ''}"
    how = g.chance.choice(
        (
            "auction IN ({})",
            "EXISTS (SELECT 1 FROM people AS p WHERE p.age = b.auction)",
            "NOT EXISTS (SELECT 1 FROM people AS p WHERE p.age = b.auction)",
        )
    )
    return f"SELECT b.id, b.channel FROM bids AS b WHERE {how.format(inner)}"


def _tested(g: Generator) -> str:
    """Subqueries as values: IN, EXISTS, ANY and ALL under AND, OR and NOT, of rows and of groups."""
    tests = [_test(g) for _ in range(g.chance.randint(1, 2))]
    own = g.expr("bool", [(f"b.{n}", k) for n, k in SCHEMAS["bids"]], 1)
    whole = f"({tests[0]}) {g.chance.choice(('AND', 'OR'))} {g.chance.choice(('', 'NOT '))}({own})"
    source = "bids AS b"
    if g.chance.random() < 0.3:
        source = "(SELECT auction, max(id) AS id, min(channel) AS channel, max(price) AS price, max(open) AS open FROM bids GROUP BY auction) AS b"
    items = f"b.id, {tests[-1]} AS x, CASE WHEN {tests[0]} THEN 'yes' WHEN NOT ({tests[0]}) THEN 'no' END AS y"
    return f"SELECT {items} FROM {source}" + (f" WHERE {whole}" if g.chance.random() < 0.6 else "")


def _test(g: Generator) -> str:
    """A condition over the rows of a subquery, which may read the row around it."""
    value, member = g.chance.choice((("b.auction", "p.age"), ("b.id", "p.pid"), ("b.channel", "p.name")))
    shared = g.chance.choice(("", "", "p.age = b.auction", "p.name = b.channel", "p.pid < b.id", "p.city <> b.channel"))
    own = g.expr("bool", [(f"p.{n}", k) for n, k in SCHEMAS["people"]], 1)
    conditions = [c for c in (shared, own if g.chance.random() < 0.5 else "") if c]
    where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
    if g.chance.random() < 0.3:
        return f"EXISTS (SELECT * FROM people AS p{where})"
    how = g.chance.choice(
        ("IN", "NOT IN", *(f"{o} {q}" for o in ("=", "<>", "<", "<=", ">", ">=") for q in ("ANY", "ALL")))
    )
    return f"{value} {how} (SELECT {member} FROM people AS p{where})"


def _top(g: Generator) -> str:
    direction = g.chance.choice(("DESC", "ASC"))
    many = g.chance.randint(1, 3)
    key = g.chance.choice(("auction", "channel", "open"))
    inner = f"SELECT id, {key}, ROW_NUMBER() OVER (PARTITION BY {key} ORDER BY id {direction}) AS rn FROM bids{g.where(SCHEMAS['bids'])}"
    return f"SELECT id, {key}, rn FROM ({inner}) AS t WHERE rn <= {many}"


SHAPES: dict[str, Callable[[Generator], str]] = {
    "select": _select,
    "distinct": _distinct,
    "group": _grouped,
    "total": _total,
    "group of groups": _group_of_groups,
    "with": _with,
    "union all": _union,
    "union distinct": _union_distinct,
    "set operations": _sets,
    "join": _joined,
    "semi join": _semi,
    "top": _top,
    "subquery tests": _tested,
}
"""The shapes of queries; `subquery` among the features also puts queries into FROM."""

_Made = Callable[[Generator, Sequence[Column], int], str]
_EXPRESSIONS: dict[str, list[_Made]] = {
    "int": [
        lambda g, c, d: f"({g.expr('int', c, d)} {g.chance.choice('+-*')} {g.expr('int', c, d)})",
        lambda g, c, d: f"abs({g.expr('int', c, d)})",
        lambda g, c, d: f"CASE WHEN {g.expr('bool', c, d)} THEN {g.expr('int', c, d)} ELSE {g.expr('int', c, d)} END",
        lambda g, c, d: f"coalesce({g.expr('int', c, d)}, {g.literal('int')})",
        lambda g, c, d: f"CAST(char_length({g.expr('text', c, d)}) AS BIGINT)",
        lambda g, c, d: f"nullif({g.expr('int', c, d)}, {g.literal('int')})",
    ],
    "float": [
        lambda g, c, d: f"({g.expr('float', c, d)} {g.chance.choice('+-')} {g.expr('float', c, d)})",
        lambda g, c, d: f"CAST({g.expr('int', c, d)} AS DOUBLE)",
        lambda g, c, d: f"coalesce({g.expr('float', c, d)}, {g.literal('float')})",
        lambda g, c, d: f"CASE WHEN {g.expr('bool', c, d)} THEN {g.expr('float', c, d)} END",
    ],
    "text": [
        lambda g, c, d: f"upper({g.expr('text', c, d)})",
        lambda g, c, d: f"lower({g.expr('text', c, d)})",
        lambda g, c, d: f"({g.expr('text', c, d)} || {g.expr('text', c, d)})",
        lambda g, c, d: f"trim({g.expr('text', c, d)})",
        lambda g, c, d: f"coalesce({g.expr('text', c, d)}, {g.literal('text')})",
        lambda g, c, d: f"replace({g.expr('text', c, d)}, 'a', 'b')",
        lambda g, c, d: f"CAST({g.expr('int', c, d)} AS VARCHAR)",
        lambda g, c, d: f"CASE WHEN {g.expr('bool', c, d)} THEN {g.expr('text', c, d)} ELSE {g.expr('text', c, d)} END",
    ],
    "bool": [
        lambda g, c, d: (
            f"({g.expr('int', c, d)} {g.chance.choice(['=', '<>', '<', '<=', '>', '>='])} {g.expr('int', c, d)})"
        ),
        lambda g, c, d: f"({g.expr('float', c, d)} {g.chance.choice(['=', '<', '>='])} {g.expr('float', c, d)})",
        lambda g, c, d: f"({g.expr('text', c, d)} {g.chance.choice(['=', '<>', '<', '>='])} {g.expr('text', c, d)})",
        lambda g, c, d: f"({g.expr('bool', c, d)} {g.chance.choice(['AND', 'OR'])} {g.expr('bool', c, d)})",
        lambda g, c, d: f"(NOT {g.expr('bool', c, d)})",
        lambda g, c, d: f"({g.expr(g.kind(), c, d)} IS {g.chance.choice(['', 'NOT '])}NULL)",
        lambda g, c, d: f"({g.expr('int', c, d)} IN (1, 2, {g.literal('int')}))",
        lambda g, c, d: f"({g.expr('int', c, d)} BETWEEN {g.literal('int')} AND {g.expr('int', c, d)})",
        lambda g, c, d: f"({g.expr('text', c, d)} LIKE '{g.chance.choice(['%a%', 'w_b', 'S%', '%'])}')",
    ],
}
