"""The names of folders that stand for a field and its value, `city=Rome`, as Hive and Spark write them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from penstock.graph import types as t

NULL = "__HIVE_DEFAULT_PARTITION__"
"""The folder of null, and of the empty text, which Spark takes for null here."""
ESCAPED = r'[\x01-\x1f\x7f"#%\'*/:=?\\{\[\]^]'
_ESCAPED = re.compile(ESCAPED)
LONGEST = 255
"""So many bytes the name of a folder has at most, on all common file systems."""


def escaped(text: str) -> str:
    """A text as a part of the name of a folder.

    >>> escaped("a/b: 50%"), escaped("Köln")
    ('a%2Fb%3A 50%25', 'Köln')
    """
    return _ESCAPED.sub(lambda found: f"%{ord(found.group()):02X}", text)


def folder_of(name: str, text: str | None) -> str:
    """The folder of a field's value.

    >>> folder_of("city", "a/b"), folder_of("city", None)
    ('city=a%2Fb', 'city=__HIVE_DEFAULT_PARTITION__')
    """
    return f"{escaped(name)}={escaped(text) if text else NULL}"


def unnameable(name: str, folder: str, value: object) -> str:
    r"""Why a value cannot name a folder; empty when it can.

    >>> unnameable("city", "city=Rome", "Rome"), unnameable("city", "city=a\0", "a\0")
    ('', "field 'city' names a folder, and no folder is named 'a\\x00': a name has at most 255 bytes, and no NUL")
    """
    if "\0" not in folder and len(folder.encode()) <= LONGEST:
        return ""
    return f"field {name!r} names a folder, and no folder is named {str(value)[:40]!r}: {RULE}"


RULE = f"a name has at most {LONGEST} bytes, and no NUL"


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
