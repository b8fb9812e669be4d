"""The names of folders that stand for a field and its value, `city=Rome`, as Hive and Spark write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from penstock.graph import types as t

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder of null, and of the empty text, which Spark takes for null here."""
_ESCAPED = re.compile(r'[\x01-\x1f\x7f"#%\'*/:=?\\{\[\]^]')


def escaped(text: str) -> str:
    """A text as a part of the name of a folder.

    >>> escaped("a/b: 50%"), escaped("Köln")
    ('a%2Fb%3A 50%25', 'Köln')
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", text)


def unescaped(text: str) -> str:
    """The text that a part of the name of a folder stands for.

    >>> unescaped("a%2Fb"), unescaped("100%"), unescaped("%zz")
    ('a/b', '100%', '%zz')
    """
    return re.sub(r"%([0-9A-Fa-f]{2})", lambda found: chr(int(found.group(1), 16)), text)


def values_of(path: str) -> dict[str, str | None]:
    """The fields that the folders of a path name, with their values as text.

    >>> values_of("out/day=2026-05-01/city=__HIVE_DEFAULT_PARTITION__/a.json")
    {'day': '2026-05-01', 'city': None}
    """
    found: dict[str, str | None] = {}
    for folder in PurePosixPath(path).parts[:-1]:
        name, sign, value = folder.partition("=")
        if sign and name:
            found[unescaped(name)] = None if value == NULL else unescaped(value)
    return found


def fields_of(paths: Iterable[str]) -> tuple[t.Field, ...]:
    """The fields that the folders of some files name: whole numbers and dates where all values are that, else text.

    >>> [str(f.type) for f in fields_of(["n=1/day=2026-05-01/city=Rome/a.json", "n=2/day=2026-05-02/city=7/a.json"])]
    ['bigint', 'date', 'string']
    """
    found: dict[str, list[str]] = {}
    for path in paths:
        for name, value in values_of(path).items():
            found.setdefault(name, []).extend([] if value is None else [value])
    return tuple(t.Field(name, _type_of(values)) for name, values in found.items())


def _type_of(values: list[str]) -> t.DataType:
    if values and all(re.fullmatch(r"-?(0|[1-9]\d{0,17})", v) for v in values):
        return t.BIGINT
    return t.DATE if values and all(re.fullmatch(r"\d{4}-\d\d-\d\d", v) for v in values) else t.STRING
