"""Texts that are almost right."""

from __future__ import annotations

import random

PIECES = ("(", ")", "[", "]", "{", "}", ",", ":", "->", "-[", "]>", "'", '"', "`", "@", "=", ".", "..", " ", "\n", "\\", "é", "\x00", "9" * 12, "every ", "not ", "where ", "timer:", "until ")  # fmt: skip


def mutated(rolled: random.Random, texts: list[str]) -> str:
    """One of the texts with one to three changes."""
    text = rolled.choice(texts)
    for _ in range(rolled.randint(1, 3)):
        text = _changed(rolled, text, texts)
    return text


def _changed(rolled: random.Random, text: str, texts: list[str]) -> str:
    at = rolled.randint(0, len(text))
    how = rolled.randint(0, 5)
    if how == 0:
        return text[:at] + rolled.choice(PIECES) + text[at:]
    if how == 1:
        return text[:at] + text[at + rolled.randint(1, 4) :]
    if how == 2:
        return text[:at]
    if how == 3:
        return text[:at] + rolled.choice(texts)[rolled.randint(0, 10) :]
    if how == 4:
        words = text.split(" ")
        rolled.shuffle(words)
        return " ".join(words)
    return text[:at] + chr(rolled.randint(32, 126)) + text[at + 1 :]
