"""The demo's flow as a job: posts are checked, hashtags get scores that fade, and mentions are counted by windows of event time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import penstock as ps
from penstock.demo.posts import hashtags
from penstock.demo.trending import Trend, posts_topic

NAME = "trending-hashtags"
_FILE = """\
from pathlib import Path

from penstock.demo.job import trending_job

flow = trending_job(Path({log!r}), {began!r})
"""


def job_file(folder: Path, began: float) -> str:
    """The file of the flow: what a user would write."""
    return _FILE.format(log=str(folder / "log"), began=began)


def checked(row: Any) -> Any:
    """The post, if it can be read; a few cannot.

    >>> from penstock.demo.posts import Post
    >>> checked(Post("user1", "so much #rain", 1.0)).author
    'user1'
    """
    if row.text.startswith("never never"):
        raise ValueError(f"{row.author} repeats a word")
    return row


def trending_job(log: Path, began: float) -> ps.Flow:
    """Trending hashtags over the posts in a log; `began` is when the first was written."""
    flow = ps.Flow(NAME, on_error="dead_letter")
    posts = flow.source("posts", posts_topic(log)).map(
        "check", checked, schema="author string, text string, second double"
    )
    tags = posts.flat_map("hashtags", hashtags, schema="tag string, second double")
    counted = tags.key_by("tag").aggregate("count", mentions="count(*)", second="max(second)")
    scores = counted.as_records("changes").key_by("tag").process("trend", Trend())
    scores.sink("scores", ps.write_topic("scores", key="tag", path=log))
    moments = tags.select("moment", tag="tag", at=f"timestamp_seconds(second + {began!r})")
    timed = moments.event_time("timed", "at", lateness="2s")
    windows = timed.key_by("tag").window(ps.tumbling("10s")).count("mentions")
    windows.sink("windows", ps.write_topic("mentions-by-10s", key="tag", path=log))
    return flow
