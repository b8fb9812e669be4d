"""Events of Nexmark, made from a seed: a small auction house, with ties avoided so that every engine has one answer."""

from __future__ import annotations

import datetime
import random
from typing import Any

BASE = datetime.datetime(2026, 5, 1, 11, 59, tzinfo=datetime.UTC)
FIRST = 1050
_STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")


def events(count: int, seed: int = 7) -> list[tuple[Any, ...]]:
    """So many events, in the order of their time: of 50 one is a person, three are auctions, the rest are bids."""
    chance = random.Random(seed)
    people = auctions = 0
    made: list[tuple[Any, ...]] = []
    for n in range(count):
        at = BASE + datetime.timedelta(milliseconds=100 * n)
        if n % 50 == 0:
            people += 1
            made.append((0, _person(people, at, chance), None, None))
        elif n % 50 < 4:
            auctions += 1
            made.append((1, None, _auction(auctions, people, at, chance), None))
        else:
            made.append((2, None, None, _bid(n, auctions, people, at, chance)))
    return made


def _person(number: int, at: datetime.datetime, chance: random.Random) -> dict[str, Any]:
    state = chance.choice(_STATES)
    name = f"person-{number}"
    return {
        "id": FIRST + number,
        "name": name,
        "emailAddress": f"{name}@example.org",
        "creditCard": "0000",
        "city": f"city-{number % 5}",
        "state": state,
        "dateTime": at,
        "extra": "ccc"[: number % 4],
    }


def _auction(number: int, people: int, at: datetime.datetime, chance: random.Random) -> dict[str, Any]:
    price = chance.randrange(100, 1_000)
    ends = at + datetime.timedelta(milliseconds=chance.randrange(1, 20_000))
    seller = FIRST + chance.randrange(max(people - 3, 1), people + 1)
    return {
        "id": FIRST + number,
        "itemName": f"item-{number}",
        "description": "things",
        "initialBid": price,
        "reserve": price * 2,
        "dateTime": at,
        "expires": ends,
        "seller": seller,
        "category": 10 + number % 5,
        "extra": "abc",
    }


def _bid(n: int, auctions: int, people: int, at: datetime.datetime, chance: random.Random) -> dict[str, Any]:
    hot = chance.random() < 0.5
    auction = FIRST + max(auctions - (0 if hot else chance.randrange(10)), 1)
    price = round(10 ** (chance.random() * 6) * 100) * 10_000 + n
    if chance.random() < 0.5:
        channel = chance.choice(_CHANNELS)
        url = f"https://www.example.org/a{n % 3}/b/c/item.htm?query=1"
    else:
        channel = f"channel-{chance.randrange(100)}"
        url = "https://www.example.org/x/y/z/item.htm?query=1" + (
            f"&channel_id={n % 7}" if chance.random() < 0.9 else ""
        )
    return {
        "auction": auction,
        "bidder": FIRST + chance.randrange(1, people + 1),
        "price": price % 60_000_000,
        "channel": channel,
        "url": url,
        "dateTime": at,
        "extra": "abcc"[: n % 5],
    }
