"""The reach of a URL, as a function that is called from outside: how many people see a page that is linked by those they follow.

    penstock run examples/reach.py
    penstock drpc call reach foo.com --log .penstock/log

Each bolt carries the request as its first field; `finished_id` says that all followers of a request have been there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import penstock as ps

LINKED_BY = {"foo.com": ["sally", "bob", "tim"], "engineering.com": ["adam", "sally"], "quiet.com": []}
FOLLOWERS = {
    "sally": ["bob", "tim", "alice", "adam", "jim"],
    "bob": ["sally", "nathan", "jim", "mary", "david"],
    "tim": ["alex"],
    "adam": ["david", "carissa"],
}


class GetTweeters(ps.Bolt):
    """Who has linked the URL."""

    outputs = "request string, tweeter string"
    stateful = False

    def process(self, tup: Any) -> Iterator[Any]:
        """A tuple for each of them."""
        for tweeter in LINKED_BY.get(tup.args, []):
            yield tup.request, tweeter


class GetFollowers(ps.Bolt):
    """Who follows them."""

    outputs = "request string, follower string"
    stateful = False

    def process(self, tup: Any) -> Iterator[Any]:
        """A tuple for each follower."""
        for follower in FOLLOWERS.get(tup.tweeter, []):
            yield tup.request, follower


class PartialUniquer(ps.Bolt):
    """The different followers that reach this task."""

    outputs = "request string, n bigint"
    stateful = False

    def prepare(self, context: Any) -> None:
        """Begins without followers."""
        self._followers: dict[str, set[str]] = {}

    def process(self, tup: Any) -> None:
        """Remembers a follower."""
        self._followers.setdefault(tup.request, set()).add(tup.follower)

    def finished_id(self, request: str) -> Iterator[Any]:
        """How many there are."""
        yield request, len(self._followers.pop(request, ()))


class CountAggregator(ps.Bolt):
    """The sum over all tasks."""

    outputs = "request string, reach bigint"
    stateful = False

    def prepare(self, context: Any) -> None:
        """Begins with nothing."""
        self._counts: dict[str, int] = {}

    def process(self, tup: Any) -> None:
        """Adds the count of a task."""
        self._counts[tup.request] = self._counts.get(tup.request, 0) + tup.n

    def finished_id(self, request: str) -> Iterator[Any]:
        """The reach."""
        yield request, self._counts.pop(request, 0)


flow = ps.LinearDRPCTopologyBuilder("reach")
flow.add_bolt(GetTweeters, 2)
flow.add_bolt(GetFollowers, 2).shuffle_grouping()
flow.add_bolt(PartialUniquer, 3).fields_grouping("request", "follower")
flow.add_bolt(CountAggregator, 2).fields_grouping("request")
