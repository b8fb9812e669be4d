"""Functions of texts and bytes."""

from __future__ import annotations

import base64
import hashlib
import urllib.parse
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from penstock.graph import types as t
from penstock.graph.expr.coerce import TypedExpr
from penstock.kernels.expr.regex import java_pattern, java_replacement, java_split, like_pattern

Run = Callable[[Any], Any]


def _substring(text: str | bytes, start: int, length: int = 2**31 - 1) -> str | bytes:
    begin = start - 1 if start > 0 else len(text) + start if start < 0 else 0
    end = begin + length
    return text[max(begin, 0) : end] if end > max(begin, 0) else text[:0]


def _left(text: str | bytes, length: int) -> str | bytes:
    return text[: max(length, 0)]


def _right(text: str, length: int) -> str:
    return text[-length:] if length > 0 else ""


def _locate(part: str, text: str, start: int) -> int:
    if start < 1:
        return 0
    return text.find(part, start - 1) + 1 if part else 1


def _located(node: TypedExpr, runs: list[Run]) -> Run:
    """A position that is null finds nothing, as in Spark; any other null returns null."""
    part, text, *start = runs

    def run(row: Sequence[Any]) -> int | None:
        position = start[0](row) if start else 1
        if position is None:
            return 0
        sought, whole = part(row), text(row)
        return None if sought is None or whole is None else _locate(sought, whole, position)

    return run


def _instr(text: str, part: str) -> int:
    return text.find(part) + 1


def _padding(text: str, length: int, pad: str) -> str:
    missing = length - len(text)
    return (pad * (missing // len(pad) + 1))[:missing] if missing > 0 and pad else ""


def _lpad(text: str, length: int, pad: str = " ") -> str:
    return (_padding(text, length, pad) + text)[: max(length, 0)] if len(text) < length else text[: max(length, 0)]


def _rpad(text: str, length: int, pad: str = " ") -> str:
    return (text + _padding(text, length, pad))[: max(length, 0)]


def _replace(text: str, old: str, new: str = "") -> str:
    return text.replace(old, new) if old else text


def _translate(text: str, old: str, new: str) -> str:
    table: dict[int, str | None] = {}
    for position, sign in enumerate(old):
        table.setdefault(ord(sign), new[position] if position < len(new) else None)
    return text.translate(table)


def _initcap(text: str) -> str:
    return " ".join(word[:1].title() + word[1:] for word in text.lower().split(" "))


def _split(text: str, pattern: str, limit: int = -1) -> list[str]:
    if pattern or not text:
        return java_split(text, pattern, limit) if pattern else [text]
    count = limit if 0 < limit < len(text) else len(text)
    return [*text[: count - 1], text[count - 1 :]]


def _split_part(text: str, mark: str, position: int) -> str:
    if position == 0:
        raise IndexError("the index 0 is invalid; parts are counted from 1, or from -1 backwards")
    parts = text.split(mark) if mark else [text]
    at = position - 1 if position > 0 else len(parts) + position
    return parts[at] if 0 <= at < len(parts) else ""


def _substring_index(text: str, mark: str, count: int) -> str:
    if not mark or count == 0:
        return ""
    parts = text.split(mark)
    return mark.join(parts[:count] if count > 0 else parts[count:])


def _regexp_replace(text: str, pattern: str, new: str) -> str:
    compiled = java_pattern(pattern)
    return compiled.sub(java_replacement(new, compiled.groups), text)


def _regexp_extract(text: str, pattern: str, group: int = 1) -> str:
    compiled = java_pattern(pattern)
    if not 0 <= group <= compiled.groups:
        raise IndexError(
            f"the regular expression {pattern!r} has {compiled.groups} groups; group {group} was asked for"
        )
    found = compiled.search(text)
    return (found[group] or "") if found else ""


def _regexp_extract_all(text: str, pattern: str, group: int = 1) -> list[str]:
    compiled = java_pattern(pattern)
    if not 0 <= group <= compiled.groups:
        raise IndexError(
            f"the regular expression {pattern!r} has {compiled.groups} groups; group {group} was asked for"
        )
    return [found[group] or "" for found in compiled.finditer(text)]


def _unhex(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text if len(text) % 2 == 0 else f"0{text}") if " " not in text else None
    except ValueError:
        return None


def _unbase64(text: str) -> bytes:
    signs = "".join(sign for sign in text if sign.isascii() and (sign.isalnum() or sign in "+/"))
    return base64.b64decode(signs + "=" * (-len(signs) % 4))


def _url_encode(text: str) -> str:
    return urllib.parse.quote_plus(text, safe="*").replace("~", "%7E")


def _url_decode(text: str) -> str:
    return urllib.parse.unquote_plus(text, errors="strict")


def _rlike(text: str, pattern: str) -> bool:
    return java_pattern(pattern).search(text) is not None


def _like(text: str, pattern: str) -> bool:
    return like_pattern(pattern).fullmatch(text) is not None


def _ilike(text: str, pattern: str) -> bool:
    return _like(text.lower(), pattern.lower())


def _base64(data: bytes) -> str:
    """In lines of 76 characters, as in mail."""
    text = base64.b64encode(data).decode()
    return "\r\n".join(text[at : at + 76] for at in range(0, len(text), 76))


def _sha2(data: bytes, bits: int) -> str | None:
    name = {0: "sha256", 224: "sha224", 256: "sha256", 384: "sha384", 512: "sha512"}.get(bits)
    return hashlib.new(name, data).hexdigest() if name else None


def _hex(value: int | str | bytes) -> str:
    if isinstance(value, int):
        return f"{value % 2**64:X}"
    return (value.encode() if isinstance(value, str) else value).hex().upper()


def _reverse(node: TypedExpr) -> Callable[[Any], Any]:
    return lambda value: value[::-1]


def _concat(node: TypedExpr) -> Callable[..., Any]:
    if isinstance(node.type, t.Array):
        return lambda *parts: [item for part in parts for item in part]
    empty: Any = b"" if node.type == t.BINARY else ""
    return lambda *parts: empty.join(parts)


def _concat_ws(node: TypedExpr, runs: list[Run]) -> Run:
    mark, *rest = runs

    def run(row: Sequence[Any]) -> str | None:
        between = mark(row)
        return None if between is None else between.join(_texts(part(row) for part in rest))

    return run


def _texts(values: Iterable[str | list[str | None] | None]) -> list[str]:
    found: list[str] = []
    for value in values:
        if isinstance(value, list):
            found.extend(v for v in value if v is not None)
        elif value is not None:
            found.append(value)
    return found


PLAIN: dict[str, Callable[..., Any]] = {
    "ascii": lambda text: ord(text[0]) if text else 0,
    "base64": _base64,
    "chr": lambda value: "" if value < 0 else chr(value & 0xFF),
    "contains": lambda text, part: part in text,
    "crc32": zlib.crc32,
    "endswith": str.endswith,
    "hex": _hex,
    "ilike": _ilike,
    "initcap": _initcap,
    "instr": _instr,
    "left": _left,
    "length": len,
    "like": _like,
    "lower": str.lower,
    "lpad": _lpad,
    "ltrim": lambda text: text.lstrip(" "),
    "md5": lambda data: hashlib.md5(data, usedforsecurity=False).hexdigest(),
    "regexp_extract": _regexp_extract,
    "regexp_extract_all": _regexp_extract_all,
    "regexp_replace": _regexp_replace,
    "repeat": lambda text, times: text * max(times, 0),
    "replace": _replace,
    "right": _right,
    "rlike": _rlike,
    "rpad": _rpad,
    "rtrim": lambda text: text.rstrip(" "),
    "sha1": lambda data: hashlib.sha1(data, usedforsecurity=False).hexdigest(),
    "sha2": _sha2,
    "split": _split,
    "split_part": _split_part,
    "startswith": str.startswith,
    "substring": _substring,
    "substring_index": _substring_index,
    "translate": _translate,
    "trim": lambda text: text.strip(" "),
    "unbase64": _unbase64,
    "unhex": _unhex,
    "upper": str.upper,
    "url_decode": _url_decode,
    "url_encode": _url_encode,
}

TYPED: dict[str, Callable[[TypedExpr], Callable[..., Any]]] = {"concat": _concat, "reverse": _reverse}

LAZY: dict[str, Callable[[TypedExpr, list[Run]], Run]] = {"concat_ws": _concat_ws, "locate": _located}
