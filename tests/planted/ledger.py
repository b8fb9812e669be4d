"""Bugs of the ledger and of what a run does with it. No JVM."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from penstock.connectors import delivery
from penstock.connectors.base import Batch
from penstock.connectors.delivery import WRITE, Entry, verdict
from penstock.spark.batch.sinks import Sinks, reconcile
from tests.connectors import test_delivery, test_log_endpoints
from tests.planted.plant import Bug, Check, Room, function, method, nothing

Verdict = Any
REFUSED = "DID NOT RAISE .*DeliveryError"


def no_fence(right: Verdict, entry: Entry | None, batch: Batch, fence: int) -> str:
    return str(right(entry and replace(entry, fence=0), batch, fence))


def any_fingerprint(right: Verdict, entry: Entry | None, batch: Batch, fence: int) -> str:
    return str(right(entry, replace(batch, fingerprint=entry.fingerprint) if entry else batch, fence))


def never_skipped(right: Verdict, *about: Any) -> str:
    return right(*about) and WRITE


def backwards(right: Verdict, entry: Entry | None, batch: Batch, fence: int) -> str:
    return WRITE if entry is not None and entry.batch > batch.id else str(right(entry, batch, fence))


def no_reconcile(right: Any, *_: Any) -> Iterator[str]:
    return iter(())


def refuses(number: int, fingerprint: str, text: str) -> Check:
    """The topic of a sink at batch 1 must not take this one."""
    test = test_log_endpoints.test_a_batch_that_does_not_fit_the_ledger_is_refused
    return lambda room: test(room.path, number, fingerprint, text)


def fenced(room: Room) -> None:
    test_delivery.test_what_does_not_fit_is_refused(Entry(2, "f2", 9), "another driver of this flow has taken over")


def once(room: Room) -> None:
    test_log_endpoints.test_a_batch_that_comes_again_is_stored_once_and_weaker_deliveries_store_it_again(room.path)


def at_most_once(room: Room) -> None:
    test = test_delivery.test_a_batch_that_runs_again_comes_at_most_once_where_that_is_asked
    test(room.path, "at_most_once", [0, 1])


BUGS = [
    Bug("the ledger has no fence", function(verdict, no_fence), fenced, REFUSED),
    Bug(
        "the fingerprint is not compared",
        function(verdict, any_fingerprint),
        refuses(1, "other", "made of other offsets"),
        REFUSED,
    ),
    Bug("a batch that comes again is written again", function(verdict, never_skipped), once, "8 == 4"),
    Bug(
        "a gap is accepted",
        function(delivery._next, lambda *_: WRITE),
        refuses(3, "f3", "sink is older than the checkpoint"),
        REFUSED,
    ),
    Bug(
        "a batch that goes backwards is accepted",
        function(verdict, backwards),
        refuses(0, "f0", "checkpoint is older than the sink"),
        REFUSED,
    ),
    Bug(
        "a ledger that is gone is accepted",
        method(Sinks, "_check_ledger", nothing),
        lambda room: test_delivery.test_a_ledger_that_is_gone_is_refused(room.path),
        REFUSED,
    ),
    Bug("at most once, but no claim before the write", method(Sinks, "_claim", nothing), at_most_once, r"\[0, 1, 1\]"),
    Bug(
        "nothing is reconciled: lost offsets",
        function(reconcile, no_reconcile),
        lambda room: test_delivery.test_a_ledger_ahead_gives_back_lost_offsets(room.path),
        "any",
    ),
    Bug(
        "nothing is reconciled: a sink from a backup",
        function(reconcile, no_reconcile),
        lambda room: test_delivery.test_a_sink_from_a_backup_rewinds_the_checkpoint(room.path),
        "any",
    ),
]
