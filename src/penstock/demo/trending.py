"""The demo's flow: posts come in, hashtags are counted, and each gets a score that fades with time."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import penstock as ps
from penstock.demo.feed import TOPIC
from penstock.demo.posts import hashtags
from penstock.graph.nodes import Endpoint

FADES = 8.0
"""A mention counts half after so many seconds."""


class Score(NamedTuple):
    """How a hashtag does: its mentions so far, and its score now."""

    tag: str
    mentions: int
    score: float
    second: float


class Trend(ps.Process):
    """Keeps the score of a hashtag: each mention adds one, and all of it fades."""

    mentions = ps.value(int, default=0)
    score = ps.value(float, default=0.0)
    second = ps.value(float, default=0.0)

    def on_event(self, row: Any) -> Iterator[Score]:
        """Takes the new total of a hashtag; returns its new score."""
        faded = self.score * math.exp2(-max(row.second - self.second, 0.0) / FADES)
        self.score = faded + row.mentions - self.mentions
        self.mentions, self.second = row.mentions, row.second
        yield Score(self.key, self.mentions, self.score, self.second)


def posts_topic(path: Path) -> Endpoint:
    """The topic into which the demo's people post."""
    return ps.topic(TOPIC, "author string, text string, second double", path=path, group="trending")


def trending(posts_from: Endpoint, show: Callable[[list[Any], Any], None], folder: Path) -> ps.Flow:
    """Trending hashtags over posts; `show` gets the scores that changed, batch by batch."""
    flow = ps.Flow("trending-hashtags")
    posts = flow.source("posts", posts_from)
    tags = posts.flat_map("hashtags", hashtags, schema="tag string, second double")
    counted = tags.key_by("tag").aggregate("count", mentions="count(*)", second="max(second)")
    scores = counted.as_records("changes").key_by("tag").process("trend", Trend())
    scores.sink("board", ps.callback(show))
    scores.sink("files", ps.write_files(folder, format="json"))
    return flow
