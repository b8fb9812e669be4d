"""Orders of records: fields, each ascending or descending."""

from __future__ import annotations

from dataclasses import dataclass

from penstock.errors import FlowError


@dataclass(frozen=True)
class Term:
    """A field to order by. As in SQL, null is the smallest value and not-a-number the largest."""

    column: str
    descending: bool = False

    def __str__(self) -> str:
        return f"{self.column} desc" if self.descending else self.column


def terms_of(by: str) -> tuple[Term, ...]:
    """The fields of an order such as `score desc, name`.

    Raises:
        FlowError: it is not written as an order is.

    >>> terms_of("n desc, s")
    (Term(column='n', descending=True), Term(column='s', descending=False))
    """
    return tuple(map(_term, by.split(","))) if by.strip() else ()


def _term(text: str) -> Term:
    words = text.split()
    if not 1 <= len(words) <= 2 or words[1:] not in ([], ["asc"], ["desc"]):
        raise FlowError(f"an order is of fields, each with asc or desc after it if you like, got {text.strip()!r}")
    return Term(words[0], words[1:] == ["desc"])
