"""The demo's flow and its board, without Spark."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from rich.console import Console

from penstock.cli.tools.demo import Top
from penstock.demo.posts import TOPICS, hashtags, post, weights
from penstock.demo.trending import FADES, Score, posts_topic, trending
from penstock.testing import run_local


def test_posts_are_the_same_whenever_they_are_made() -> None:
    assert [post(n, 100) for n in range(50)] == [post(n, 100) for n in range(50)]
    assert all(tag.tag in TOPICS for n in range(200) for tag in hashtags(post(n, 100)))


def test_what_is_talked_about_shifts() -> None:
    first, later = weights(0.0), weights(30.0)
    assert first.index(max(first)) != later.index(max(later))


def test_the_flow_counts_and_scores(tmp_path: Path) -> None:
    """Every hashtag's mentions are those of the posts; the score is at most as high."""
    shown: list[Any] = []
    flow = trending(posts_topic(tmp_path / "log"), lambda rows, batch: shown.extend(rows), tmp_path)
    posts = [post(n, 100) for n in range(300)]
    results = run_local(flow, {"posts": posts})
    expected = [tag.tag for each in posts for tag in hashtags(each)]
    last = {row.tag: row for row in results["board"]}
    assert {tag: row.mentions for tag, row in last.items()} == {tag: expected.count(tag) for tag in set(expected)}
    assert all(0 < row.score <= row.mentions for row in last.values())


def test_the_board_fades_what_is_not_talked_about() -> None:
    top = Top()
    top([Score("old", 100, 100.0, 0.0)], None)
    top([Score("new", 60, 60.0, FADES)], None)
    assert [(s.tag, round(s.score)) for s in top.first()] == [("new", 60), ("old", 50)]
    assert top.line() == "trending #new 60 #old 50"


def test_the_board_shows_bars_and_who_rose() -> None:
    top = Top()
    top([Score("a", 10, 10.0, 1.0), Score("b", 5, 5.0, 1.0)], None)
    top([Score("b", 25, 20.0, 1.0)], None)
    console = Console(file=io.StringIO(), width=100, color_system=None)
    console.print(top.picture())
    text = console.file.getvalue()  # type: ignore[attr-defined]  # the StringIO above
    rows = [line.split() for line in text.splitlines()[1:]]
    assert rows[0][:2] == ["▲", "#b"]
    assert rows[1][:2] == ["▼", "#a"]
    assert len(rows[0][2]) == 2 * len(rows[1][2])


def test_an_empty_board_says_nothing() -> None:
    assert Top().line() == ""
