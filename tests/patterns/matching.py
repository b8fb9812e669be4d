"""Small patterns over small events, for tests: an event is a word such as `b2`, and stage `b` takes words that begin with b."""

from __future__ import annotations

import datetime
from collections.abc import Sequence

import penstock as ps
from penstock.frontends.streams.patterns import PatternBuilder
from penstock.testing import run_local

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def found(pattern: PatternBuilder, words: str | Sequence[tuple[str, int]], side: str = "") -> list[str]:
    """The matches of a pattern, each as the words that it has taken in order; `words` may have times in seconds."""
    events = [(word, at) for at, word in enumerate(words.split())] if isinstance(words, str) else list(words)
    rows = [(word, word[0].lower(), START + datetime.timedelta(seconds=at)) for word, at in events]
    flow = ps.Flow("p")
    source = flow.source("events", ps.items(rows, "word string, kind string, at timestamp"), event_time="at")
    matches = source.match("m", pattern, select={"words": "collect_list(word)"})
    (matches.side(side) if side else matches).sink("out", ps.console())
    return sorted(" ".join(row.words) for row in run_local(flow)["out"])


def kind(name: str) -> str:
    """The condition of a stage."""
    return f"kind = '{name}'"
