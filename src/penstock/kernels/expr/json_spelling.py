r"""Values of JSON as Spark writes them: numbers as Java prints them, a name that occurs twice both times, rare characters as two escapes.

>>> json_spelling({"a": [1e308, True, None, "x\n"]}), json_spelling([float("inf"), 0.001])
('{"a":[1.0E308,true,null,"x\\n"]}', '["Infinity",0.001]')
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator

from penstock.kernels.expr.text import double_text

_ESCAPED = re.compile('[\x00-\x1f"\\\\\U00010000-\U0010ffff]')
_PAIRS = re.compile(r"((?<!\\)(?:\\\\)*)\\u(D[89AB]..)\\u(D[C-F]..)")
_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_WORDS = {True: "true", False: "false", None: "null"}


class _Sign(str):
    """A piece of text between values."""

    __slots__ = ()


def json_spelling(value: object) -> str:
    """A value as text. It may be nested as deep as any reader allows: nothing here calls itself."""
    made: list[str] = []
    waiting: list[object] = [value]
    while waiting:
        each = waiting.pop()
        if isinstance(each, dict):
            waiting.extend(reversed(list(_object(getattr(each, "pairs", None) or each.items()))))
        elif isinstance(each, list):
            waiting.extend(reversed(list(_array(each))))
        else:
            made.append(each if isinstance(each, _Sign) else _plain(each))
    return "".join(made)


def plain_spelling(value: object) -> str:
    """A value as text, with rare characters as they are."""
    return _PAIRS.sub(_unescaped, json_spelling(value))


def _unescaped(found: re.Match[str]) -> str:
    return found[1] + bytes.fromhex(found[2] + found[3]).decode("utf-16-be")


def _object(pairs: Iterable[tuple[str, object]]) -> Iterator[object]:
    for at, (name, value) in enumerate(pairs):
        yield _Sign(f"{',' if at else '{'}{_quoted(name)}:")
        yield value
    yield _Sign("}" if pairs else "{}")


def _array(items: list[object]) -> Iterator[object]:
    for at, value in enumerate(items):
        yield _Sign("," if at else "[")
        yield value
    yield _Sign("]" if items else "[]")


def _plain(value: object) -> str:
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, float):
        text = double_text(float(value))
        return text if math.isfinite(value) else f'"{text}"'
    return _WORDS[value] if value is None or isinstance(value, bool) else str(value)


def _quoted(text: str) -> str:
    return f'"{_ESCAPED.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    if found[0] in _SHORT:
        return _SHORT[found[0]]
    units = found[0].encode("utf-16-be").hex().upper()
    return "".join(f"\\u{units[at : at + 4]}" for at in range(0, len(units), 4))
