"""Events of Nexmark, made from a seed by the rules of its generator, so that every engine gets the same ones.

Of 50 events one is a person, three are auctions, the rest are bids. Half the bids are on the hot auction, three in four are by the hot bidder, three in four auctions are of
the hot seller. No two bids on an auction have the same price, and no two events the same time, so that every query has one answer.
"""

from __future__ import annotations

import datetime
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BASE = datetime.datetime(2026, 5, 1, 11, 59, tzinfo=datetime.UTC)
FIRST = 1000
"""The first id of a person and of an auction."""
STATES = ("AZ", "CA", "ID", "OR", "WA", "WY")
CITIES = (
    "Phoenix",
    "Los Angeles",
    "San Francisco",
    "Boise",
    "Portland",
    "Bend",
    "Redmond",
    "Seattle",
    "Kent",
    "Cheyenne",
)
NAMES = ("Peter", "Paul", "Luke", "John", "Saul", "Vicky", "Kate", "Julie", "Sarah", "Deiter", "Walter")
SURNAMES = ("Shultz", "Abrams", "Spencer", "White", "Bartels", "Walton", "Smith", "Jones", "Noris")
CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
HOT, ACTIVE_PEOPLE, IN_FLIGHT, AHEAD = 100, 1_000, 100, 10
"""Ids are hot in steps of so many; people who are active; auctions that are open; ids that are taken before they are there."""
FILES, TOGETHER = 2, 500
"""Events go to files in turns, so many to each."""
Event = tuple[int, dict[str, Any] | None, dict[str, Any] | None, dict[str, Any] | None]


class House:
    """An auction house: what has happened in it so far, and what happens next."""

    def __init__(self, seed: int, gap: int) -> None:
        self.chance, self.gap = random.Random(seed), datetime.timedelta(milliseconds=gap)
        self.people = self.auctions = 0
        self.prices: set[tuple[int, int]] = set()
        self.filling = "".join(self.chance.choices("abcdefghijklmnopqrstuvwxyz ", k=10_000))
        self.urls = {name: self._url() for name in CHANNELS}

    def event(self, n: int) -> Event:
        """The event of a number."""
        at = BASE + self.gap * n
        if n % 50 == 0:
            self.people += 1
            return 0, self._person(at), None, None
        if n % 50 < 4:
            self.auctions += 1
            return 1, None, self._auction(at), None
        return 2, None, None, self._bid(at)

    def _person(self, at: datetime.datetime) -> dict[str, Any]:
        pick = self.chance.choice
        name = f"{pick(NAMES)} {pick(SURNAMES)}"
        made = {
            "id": FIRST + self.people - 1,
            "name": name,
            "emailAddress": f"{name.replace(' ', '.').lower()}@{self._text(4, 8)}.com",
            "creditCard": " ".join(f"{self.chance.randrange(10_000):04}" for _ in range(4)),
            "city": pick(CITIES),
            "state": pick(STATES),
            "dateTime": at,
        }
        return {**made, "extra": self._text(60, 100)}

    def _auction(self, at: datetime.datetime) -> dict[str, Any]:
        first = self._price()
        open_for = 2 * 1_666 * self.gap.total_seconds() * 1_000
        return {
            "id": FIRST + self.auctions - 1,
            "itemName": self._text(8, 20),
            "description": self._text(60, 100),
            "initialBid": first,
            "reserve": first + self._price(),
            "dateTime": at,
            "expires": at + datetime.timedelta(milliseconds=1 + int(self.chance.random() * open_for)),
            "seller": self._someone(4, 0),
            "category": 10 + self.chance.randrange(5),
            "extra": self._text(160, 240),
        }

    def _bid(self, at: datetime.datetime) -> dict[str, Any]:
        auction, price = self._open_auction(), self._price()
        while (auction, price) in self.prices:
            price += 1
        self.prices.add((auction, price))
        channel, url = self._channel()
        names = ("auction", "bidder", "price", "channel", "url", "dateTime", "extra")
        return dict(
            zip(names, (auction, self._someone(4, 1), price, channel, url, at, self._text(20, 40)), strict=True)
        )

    def _open_auction(self) -> int:
        if self.chance.random() < 0.5:
            return FIRST + (self.auctions - 1) // HOT * HOT
        return FIRST + self.chance.randrange(max(self.auctions - IN_FLIGHT, 0), self.auctions + AHEAD)

    def _someone(self, of: int, shift: int) -> int:
        """A person: the hot one, or so many after it, but for one time of so many."""
        if self.chance.randrange(of):
            return FIRST + (self.people - 1) // HOT * HOT + shift
        return FIRST + self.chance.randrange(max(self.people - ACTIVE_PEOPLE, 0), self.people + AHEAD)

    def _price(self) -> int:
        return round(10 ** (self.chance.random() * 6) * 100)

    def _channel(self) -> tuple[str, str]:
        if self.chance.random() < 0.5:
            channel = self.chance.choice(CHANNELS)
            return channel, self.urls[channel]
        number = self.chance.randrange(10_000)
        known = f"&channel_id={number}" if self.chance.random() < 0.9 else ""
        return f"channel-{number}", self._url() + known

    def _url(self) -> str:
        parts = "/".join(self._text(3, 5).replace(" ", "_") for _ in range(3))
        return f"https://www.nexmark.com/{parts}/item.htm?query=1"

    def _text(self, least: int, most: int) -> str:
        start = self.chance.randrange(len(self.filling) - most)
        return self.filling[start : start + self.chance.randint(least, most)]


def events(count: int, seed: int = 7, gap: int = 100) -> Iterator[Event]:
    """So many events, in the order of their time, so many milliseconds after each other."""
    house = House(seed, gap)
    return (house.event(n) for n in range(count))


def write(directory: Path, count: int, gap: int, seed: int = 7) -> Path:
    """Events as lines of JSON, in files that are as far in time as each other."""
    directory.mkdir()
    files = [(directory / f"events-{at}.json").open("w") for at in range(FILES)]
    try:
        for n, event in enumerate(events(count, seed, gap)):
            files[n // TOGETHER % FILES].write(line(event) + "\n")
    finally:
        for file in files:
            file.close()
    return directory


def line(event: Event) -> str:
    """An event as a line."""
    named = dict(zip(("event_type", "person", "auction", "bid"), event, strict=True))
    return json.dumps(
        {name: value for name, value in named.items() if value is not None}, default=shown, separators=(",", ":")
    )


def shown(moment: datetime.datetime) -> str:
    """A moment as SQL writes it."""
    return moment.strftime("%Y-%m-%d %H:%M:%S.") + f"{moment.microsecond // 1000:03}"
