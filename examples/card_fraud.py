"""Card fraud: cards that are tried out, cards in two places at once, and amounts over the limit that held at that moment; alerts are written exactly once.

penstock run examples/card_fraud.py:flow --for 30s        2,000 payments a second
penstock run examples/card_fraud.py:peak --for 30s        47,000 payments a second
penstock run examples/card_fraud.py:bounded --batch
"""

from __future__ import annotations

import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

import penstock as ps

START = datetime(2026, 3, 2, 8, tzinfo=UTC)
CARDS, EVERY = 10_007, 5_000
"""How many cards there are; of so many payments four are of a card that is tried out, and two of one in two places."""
PAYMENT = "id bigint, card int, amount double, country string, at timestamp"


def payment(number: int, rate: int = 2_000) -> tuple[int, int, float, str, datetime]:
    """The payment of a number. A thief tries small amounts before a large one; another is in two countries within a minute."""
    block, at = divmod(number, EVERY)
    card, amount, country = number * 7919 % CARDS, 5.0 + number * 31 % 400, "CH"
    if at in (1000, 1100, 1200, 1300):
        card, amount = CARDS + block, 1.0 if at < 1300 else 480.0
    if at in (2000, 2100):
        card, country = 2 * CARDS + block, "CH" if at == 2000 else "BR"
    if at == 3000:
        amount = 2_000.0
    return number, card, amount, country, START + timedelta(seconds=number / rate)


def limits(number: int) -> tuple[int, float, datetime]:
    """What a card may pay at once, and since when: 1,000, and for every third card 5,000 from a second later on."""
    card = number % CARDS
    most = 5_000.0 if number >= CARDS and card % 3 == 0 else 1_000.0
    return card, most, START + timedelta(seconds=number // CARDS)


def alerts(name: str, rate: int, limit: int | None = None) -> ps.Flow:
    """The flow, for so many payments a second."""
    flow = ps.Flow(name, delivery="exactly_once")
    made = ps.generate(lambda number: payment(number, rate), PAYMENT, rows_per_second=rate, limit=limit)
    payments = flow.source("payments", made, event_time="at", lateness="2s")
    versions = ps.generate(limits, "card int, most double, since timestamp", rows_per_second=100_000, limit=2 * CARDS)
    allowed = flow.source("limits", versions, event_time="since", lateness="2s")

    tried = ps.pattern("tried").begin("probe", "amount < 2", times=3).followed_by("big", "amount > 300").within("10m")
    moved = (
        ps.pattern("moved")
        .begin("here", "true")
        .next("there", "country != here.country")
        .within("1m")
        .after_match("past_last")
    )
    by_card = payments.key_by("card")
    found = by_card.match("tried", tried, select={"card": "card", "amount": "big.amount", "at": "big.at"})
    travels = by_card.match("moved", moved, select={"card": "card", "amount": "there.amount", "at": "there.at"})
    over = (
        payments.asof_join("limit", allowed, "card")
        .where("over", "amount > most")
        .select("large", "card", "amount", "at")
    )

    labelled = [
        each.with_columns(f"{why}-alert", why=ps.lit(why))
        for why, each in (("tried", found), ("moved", travels), ("over", over))
    ]
    every = labelled[0].union("alerts", *labelled[1:])
    every.sink("written", ps.write_files(Path(tempfile.gettempdir()) / f"penstock-{name}", format="json"))
    return flow


flow = alerts("card-fraud", 2_000)
peak = alerts("card-fraud-peak", 47_000)
bounded = alerts("card-fraud-bounded", 2_000, limit=20_000)

if __name__ == "__main__":
    ps.run(bounded, batch=True)
