"""Posts out of nothing: each is a function of its number, so that a replay makes the same ones.

What people talk about shifts: every topic has its hour, comes round again, and now and then one of them bursts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

TOPICS = (
    *("rain", "football", "coffee", "python", "election", "music", "traffic", "holiday", "science", "cats"),
    *("movies", "recipes", "space", "markets", "gardening", "running", "books", "gaming", "fashion", "spark"),
)
WORDS = ("so", "today", "again", "everyone", "finally", "look", "this", "best", "never", "why", "love", "news")
ROUND = 60.0
"""Seconds until the same topic is at the top again."""
BURST = 17.0
"""Seconds between the bursts of single topics."""


class Post(NamedTuple):
    """One post; `second` is the time it was written at, counted from the first."""

    author: str
    text: str
    second: float


class Tag(NamedTuple):
    """One hashtag of a post."""

    tag: str
    second: float


def mixed(number: int, salt: int = 0) -> int:
    """A number that looks like chance and is always the same.

    >>> mixed(1) == mixed(1), mixed(1) == mixed(2), mixed(1) == mixed(1, salt=1)
    (True, False, False)
    """
    x = (number * 0x9E3779B97F4A7C15 + salt * 0xD1B54A32D192ED03 + 0x632BE59BD9B4E019) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & 0xFFFFFFFFFFFFFFFF
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & 0xFFFFFFFFFFFFFFFF
    return x ^ (x >> 31)


def weights(second: float) -> list[float]:
    """How much each topic is talked about at a time: a wave that goes round, and the burst of the moment."""
    many = len(TOPICS)
    waves = [math.exp(2.5 * math.cos(2 * math.pi * (second / ROUND - at / many))) for at in range(many)]
    waves[mixed(int(second // BURST), salt=7) % many] += 10.0
    return waves


_shares: tuple[int, list[float]] = (-1, [])


def topic(number: int, second: float, salt: int = 0) -> str:
    """The topic of a post, drawn by the weights of its moment."""
    global _shares
    if _shares[0] != int(second):
        _shares = (int(second), weights(int(second)))
    shares = _shares[1]
    drawn = (mixed(number, salt) % 1_000_000) / 1_000_000 * sum(shares)
    for name, share in zip(TOPICS, shares, strict=True):
        drawn -= share
        if drawn <= 0:
            return name
    return TOPICS[-1]


def post(number: int, rate: int) -> Post:
    """The post of a number, when there are `rate` of them a second.

    >>> post(7, rate=100) == post(7, rate=100)
    True
    """
    second = number / rate
    tags = {topic(number, second, salt) for salt in range(1 + mixed(number, 3) % 3)}
    words = [WORDS[mixed(number, 10 + i) % len(WORDS)] for i in range(2 + mixed(number, 4) % 4)]
    text = " ".join([*words, *(f"#{tag}" for tag in sorted(tags))])
    return Post(f"user{mixed(number, 5) % 500}", text, second)


def hashtags(row: Post) -> Iterator[Tag]:
    """The hashtags of a post.

    >>> [tag.tag for tag in hashtags(Post("ada", "so much #rain and #coffee", 1.0))]
    ['rain', 'coffee']
    """
    for word in row.text.split():
        if word.startswith("#"):
            yield Tag(word[1:], row.second)
