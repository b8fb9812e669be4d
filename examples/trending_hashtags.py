"""Trending hashtags over generated posts: Python where it must be, native where it can be.

penstock run --for 20s examples/trending_hashtags.py   live
penstock run --batch examples/trending_hashtags.py     the same posts, all at once
python examples/trending_hashtags.py
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import penstock as ps

TAGS = ("rain", "coffee", "python", "music", "spark")
RATE, POSTS = 200, 3_000


class Post(NamedTuple):
    """What somebody wrote, and when."""

    author: str
    text: str
    second: int


class Trend(NamedTuple):
    """The mentions of a hashtag within ten seconds, and how they compare with the ten before."""

    tag: str
    mentions: int
    growth: int


def post(number: int) -> Post:
    """The post of a number. What people write about shifts with time."""
    second = number // RATE
    first, second_tag = TAGS[(number * 7 + second // 5) % 3], TAGS[(second // 5 + number % 2) % len(TAGS)]
    return Post(f"user{number % 50}", f"hello #{first} and #{second_tag}", second)


def hashtags(row: Post) -> Iterator[tuple[str, int]]:
    """The hashtags of a post, each with the time of the post."""
    return ((word[1:], row.second) for word in row.text.split() if word.startswith("#"))


class Trending(ps.Process):
    """Counts mentions in spans of ten seconds of the posts' own time, one hashtag at a time."""

    span = ps.value(int, default=0)
    mentions = ps.value(int, default=0)
    before = ps.value(int, default=0)

    def on_event(self, row: Any) -> Iterator[Trend]:
        """A mention. When it is the first of a new span, the span before it is done."""
        if row.second // 10 > self.span:
            yield Trend(self.key, self.mentions, self.mentions - self.before)
            self.before, self.mentions, self.span = self.mentions, 0, row.second // 10
        self.mentions += 1


flow = ps.Flow("trending-hashtags-example")
posts = flow.source(
    "posts", ps.generate(post, "author string, text string, second int", rows_per_second=RATE, limit=POSTS)
)
tags = posts.flat_map("hashtags", hashtags, schema="tag string, second int")
tags.key_by("tag").count("total").sink("totals", ps.console())
trends = tags.key_by("tag").process("trend", Trending, schema="tag string, mentions bigint, growth bigint")
trends.where("rising", "growth > 0").sink("risen", ps.console())

if __name__ == "__main__":
    ps.run(flow, batch=True)
