"""Row patterns: the tree of a pattern read as SQL's MATCH_RECOGNIZE reads it, where each row starts at most one match, the preferred one."""

from __future__ import annotations

import enum
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TypeAlias

from penstock.errors import ExpressionError, FlowError, UnknownName, nearest
from penstock.graph import types as t
from penstock.graph.duration import shown
from penstock.graph.expr import Expr, columns_of, to_text
from penstock.graph.order import Term
from penstock.graph.patterns.conditions import CLASSIFIER, Look, Navigation, NavigationExpr, asks_for_number, navigated
from penstock.graph.patterns.pattern import AfterMatch, Skip
from penstock.graph.patterns.row_program import compile_rows
from penstock.graph.patterns.tree import (
    Absence,
    Choice,
    Exclusion,
    Part,
    Permutation,
    Preference,
    Repeat,
    Sequence,
    stages_of,
    walk,
)
from penstock.graph.schema import Schema

Definitions: TypeAlias = tuple[tuple[str, Expr], ...]
"""Expressions by name: the condition of a variable, or what a field is filled with."""
Subsets: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""Variables that stand for several."""


PAST_LAST_ROW = AfterMatch(Skip.PAST_LAST)
"""Where the search goes on unless something else is said."""


class RowsPerMatch(enum.Enum):
    """Which rows are emitted for a match."""

    ONE = "one"
    """One, also for an empty match."""
    ALL = "all"
    """Each of its rows; for an empty match the row at which it was found."""
    ALL_OMIT_EMPTY = "all omit empty"
    """Each of its rows, and nothing for an empty match."""
    ALL_WITH_UNMATCHED = "all with unmatched"
    """As ALL, and the rows that are in no match."""

    @property
    def is_one(self) -> bool:
        """Whether a match is one row."""
        return self is RowsPerMatch.ONE


@dataclass(frozen=True)
class RowPattern:
    """A row pattern without its expressions; checked when it is made.

    Args:
        root: the tree. Its stages are the variables; links and conditions in it are not read.
        subsets: variables that stand for several.
        rows: which rows are emitted for a match.
        after_match: where the search goes on; `Skip.NONE` is not among the answers.
        within: microseconds from the first row of a match to less than which its last must be, or None.
        order: fields by which rows of the same event time are ordered.
        most_rows: as many rows as a match may have, or None: so many are kept of a key at most.

    Raises:
        FlowError: the pattern is not sound. The message says what to write instead.
    """

    root: Part
    subsets: Subsets = ()
    rows: RowsPerMatch = RowsPerMatch.ONE
    after_match: AfterMatch = PAST_LAST_ROW
    within: int | None = None
    order: tuple[Term, ...] = ()
    most_rows: int | None = None

    def __post_init__(self) -> None:
        self._check_parts()
        self._check_subsets()
        self._check_skip()
        if self.within is not None and self.within <= 0:
            raise FlowError(f"within is a span of time above zero such as '10m', got {self.within} microseconds")
        if self.most_rows is not None and (
            isinstance(self.most_rows, bool) or not isinstance(self.most_rows, int) or self.most_rows < 1
        ):
            raise FlowError(f"most_rows is a whole number, at least 1, got {self.most_rows!r}")
        compile_rows(self.root)

    def __str__(self) -> str:
        return shown_pattern(self.root)

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables that rows are classified as, in the order of the pattern."""
        return tuple(dict.fromkeys(stage.name for stage in stages_of(self.root)))

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, and those that stand for several."""
        return (*self.variables, *(name for name, _ in self.subsets))

    def members(self, name: str) -> frozenset[str]:
        """The variables that a name stands for; the empty name stands for all."""
        if not name:
            return frozenset(self.variables)
        return frozenset(dict(self.subsets).get(name, (name,)))

    def _check_parts(self) -> None:
        for part in walk(self.root):
            if isinstance(part, Absence):
                raise FlowError(
                    f"a row pattern has no absence ({part}); exclude the rows by the condition of a variable"
                )
        excludes = any(isinstance(part, Exclusion) for part in walk(self.root))
        if excludes and self.rows is RowsPerMatch.ALL_WITH_UNMATCHED:
            raise FlowError(
                "{- -} leaves rows of a match out, and rows='all with unmatched' emits every row; use one of the two"
            )

    def _check_subsets(self) -> None:
        for name, members in self.subsets:
            if name in self.variables or [n for n, _ in self.subsets].count(name) > 1:
                raise FlowError(
                    f"subset {name!r} has the name of another variable; every variable needs a name of its own"
                )
            if not members:
                raise FlowError(f"subset {name!r} stands for no variable; name at least one")
            for member in members:
                need_name(f"subset {name!r}", member, self.variables)

    def _check_skip(self) -> None:
        after = self.after_match
        if after.skip is Skip.NONE:
            raise FlowError(
                "a row pattern goes on past the last row of a match, to the next row, or to the first or last row of a variable"
            )
        if after.skip in (Skip.TO_FIRST, Skip.TO_LAST):
            need_name("after_match", after.stage, self.names)
            self._check_progress()

    def _check_progress(self) -> None:
        """Refuses a skip that has no later row to go to, whatever rows are matched."""
        first, program, to = self.after_match.skip is Skip.TO_FIRST, compile_rows(self.root), self.after_match.stage
        at_start, members = program.first_variables(), self.members(to)
        if at_start and (at_start <= members if first else not members & program.later_variables()):
            raise FlowError(
                f"after_match skips to the {'first' if first else 'last'} row of {to}, which is the first row of every match, so the "
                f"search would never end; skip to a later row"
            )

    def settings(self) -> dict[str, str]:
        """The pattern as people read it."""
        made = {"pattern": str(self), "rows": self.rows.value}
        if self.after_match.skip is not Skip.PAST_LAST:
            made["after match"] = f"to {self.after_match}"
        if self.within is not None:
            made["within"] = shown(self.within)
        if self.most_rows is not None:
            made["most rows"] = str(self.most_rows)
        if self.order:
            made["order by"] = ", ".join(map(str, self.order))
        return made


def need_name(where: str, name: str, known: Iterable[str]) -> None:
    """Refuses a variable that is not in the pattern."""
    known = tuple(known)
    if name not in known:
        raise UnknownName(f"{where}: no variable {name!r} in the pattern; {nearest(name, known)}")


def shown_pattern(part: Part) -> str:
    """A tree as the text of PATTERN.

    >>> from penstock.graph.patterns.tree import Choice, Contiguity, Sequence, Stage
    >>> shown_pattern(Sequence((Stage("A"), Choice((Stage("B"), Stage("C")))), (Contiguity.STRICT,)))
    'A (B | C)'
    """
    if isinstance(part, Sequence):
        return " ".join(map(_in_brackets, part.parts))
    if isinstance(part, Choice):
        return " | ".join(map(_in_brackets, part.parts))
    if isinstance(part, Permutation):
        return f"permute({', '.join(map(shown_pattern, part.parts))})"
    if isinstance(part, Exclusion):
        return f"{{- {shown_pattern(part.part)} -}}"
    if isinstance(part, Repeat):
        reluctant = "?" if part.preference is Preference.RELUCTANT else ""
        inner = f"({shown_pattern(part.part)})" if isinstance(part.part, Repeat) else _in_brackets(part.part)
        return f"{inner}{part.mark}{reluctant}"
    return str(part)


def _in_brackets(part: Part) -> str:
    return f"({shown_pattern(part)})" if isinstance(part, Sequence | Choice) else shown_pattern(part)


@dataclass(frozen=True, eq=False)
class MatchClause:
    """A row pattern with its expressions, as `ps.row_pattern` makes it; `match_rows` puts it over a stream."""

    pattern: RowPattern
    define: Definitions = ()
    measures: Definitions = ()


@dataclass(frozen=True, eq=False)
class RowExpressions:
    """The expressions of a row pattern over the fields of its rows, typed, with what they look at elsewhere taken out.

    Args:
        pattern: the pattern.
        define: the condition of each variable that has one.
        measures: what each field of the output is filled with.
    """

    pattern: RowPattern
    define: tuple[tuple[str, NavigationExpr], ...]
    measures: tuple[tuple[str, NavigationExpr], ...]

    @classmethod
    def of(cls, pattern: RowPattern, define: Definitions, measures: Definitions, schema: Schema) -> RowExpressions:
        """The expressions over the fields of a stream.

        Raises:
            ExpressionError: one cannot be typed, or is not what it must be.
            UnknownName: a condition is of no variable of the pattern.
        """
        conditions = tuple((name, _condition(pattern, name, written, schema)) for name, written in define)
        values = tuple((name, _measure(pattern, name, written, schema)) for name, written in measures)
        return cls(pattern, conditions, values)

    @property
    def behind(self) -> int:
        """How many rows before a match its expressions may look at."""
        return max(0, *(-look.step for look in self.looks), 0)

    @property
    def ahead(self) -> int:
        """How many rows after the current one its conditions may look at."""
        return max(0, *(look.step for _, made in self.define for look in made.inputs), 0)

    @property
    def ahead_of_match(self) -> int:
        """How many rows after a match its measures may look at."""
        return max(0, *(look.step for _, made in self.measures for look in made.inputs), 0)

    @property
    def looks(self) -> Iterator[Navigation]:
        """All that its expressions look at elsewhere."""
        return (look for _, made in (*self.define, *self.measures) for look in made.inputs)

    @property
    def counts_matches(self) -> bool:
        """Whether the number of a match is asked for."""
        return any(map(asks_for_number, self.looks))

    def is_static(self, variable: str, look: Navigation) -> bool:
        """Whether a look of a variable's condition finds its row by the current row alone, whatever was matched before it."""
        if look.look is not Look.LAST or look.offset or look.value is None:
            return False
        if look.variable and variable not in self.pattern.members(look.variable):
            return False
        return look.step == 0 or not reads_classifier(look)


def reads_classifier(look: Navigation) -> bool:
    """Whether a look asks which variable a row is classified as."""
    if look.aggregate is not None:
        return CLASSIFIER in look.aggregate.reads
    return look.value is not None and CLASSIFIER in columns_of(look.value)


def _condition(pattern: RowPattern, variable: str, written: Expr, schema: Schema) -> NavigationExpr:
    if variable in dict(pattern.subsets):
        raise FlowError(f"define: {variable!r} stands for several variables and has no condition of its own")
    need_name("define", variable, pattern.variables)
    made = navigated(written, schema, pattern.names, own=variable, distinct=True)
    if made.type not in (t.BOOLEAN, t.NULL):
        raise ExpressionError(
            f"define {variable}: a condition is true or false, got {to_text(written)}, which is {made.type}"
        )
    for look in made.inputs:
        if look.final:
            raise ExpressionError(
                f"define {variable}: FINAL looks at rows that are matched later, which no condition can; use it in measures"
            )
    return made


def _measure(pattern: RowPattern, name: str, written: Expr, schema: Schema) -> NavigationExpr:
    made = navigated(written, schema, pattern.names, distinct=True)
    if made.type == t.NULL:
        raise ExpressionError(f"measure {name!r}: {to_text(written)} has no type; cast it")
    return made
