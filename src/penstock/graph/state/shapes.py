"""Whether a step can go on with the state that an earlier form of it kept."""

from __future__ import annotations

from collections.abc import Iterator


def fits(kept: str, wanted: str) -> bool:
    """Whether a step can go on with what it kept: fields may be gained, a process class may also give up cells.

    >>> fits("reduce by a int: a int", "reduce by a int: a int, b decimal(3,1)"), fits("reduce by a int: a int", "reduce by a int: a bigint")
    (True, False)
    """
    if kept == wanted or _says_less(kept, wanted):
        return True
    (head, _, before), (now, _, after) = kept.partition(": "), wanted.partition(": ")
    if head != now or head.partition(" ")[0] not in _MAY_GAIN:
        return False
    if head.startswith(("changelog", "net")):
        (before, _, totals), (after, _, wanted_totals) = before.partition("; "), after.partition("; ")
        if totals != wanted_totals:
            return False
    old, new = dict(_fields(before)), dict(_fields(after))
    if head.startswith("process"):
        return all(new[name] == old[name] for name in old.keys() & new.keys())
    gained = [form for name, form in new.items() if name not in old]
    own = head.startswith("aggregate") and any("(" not in form for form in gained)
    return not own and all(new.get(name) == form for name, form in old.items())


_MAY_GAIN = ("aggregate", "reduce", "process", "changelog", "net")


def _says_less(kept: str, wanted: str) -> bool:
    """Whether an earlier build wrote a text, which said of joins, sorts and the like the keys alone, and of bolts too much.

    >>> _says_less("sort by a int", "sort by a int: a int, b int"), _says_less("sort by a int", "sort by b int: a int, b int")
    (True, False)
    """
    return wanted.startswith(f"{kept}: ") or (wanted == "bolt" and kept.startswith("bolt by "))


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """The fields of a text, by name. Commas inside brackets belong to a type.

    >>> list(_fields("a decimal(3,1), n=sum(a, b) int"))
    [('a', 'decimal(3,1)'), ('n', 'sum(a, b) int')]
    """
    depth, begin = 0, 0
    for at, sign in enumerate(f"{text}, "):
        depth += (sign in "(<[") - (sign in ")>]")
        if sign == "," and depth == 0 and text[begin:at].strip():
            part = text[begin:at].strip()
            name = part.replace("=", " ", 1).split(" ", 1)[0]
            yield name, part[len(name) + 1 :]
            begin = at + 1
