"""Statements that are broken in many ways: by characters, by words, by parts of other statements."""

from __future__ import annotations

import random
import re

TABLES = {
    "bids": "auction bigint, bidder bigint, price double, channel string, ts timestamp, tags array<string>, who struct<name: string, age: int>",
    "people": "id bigint, name string, city string",
}
STATEMENTS = (
    "SELECT auction, price * 2 AS double_price FROM bids WHERE price > 10 AND channel LIKE 'a%'",
    "SELECT channel, count(*) AS n, sum(price) AS total, avg(price) FROM bids GROUP BY channel HAVING count(*) > 1",
    "SELECT DISTINCT channel FROM bids",
    "CREATE TABLE t (a INT, b AS a + 1, ts TIMESTAMP(3), WATERMARK FOR ts AS ts - INTERVAL '5' SECOND, PRIMARY KEY (a) NOT ENFORCED) "
    "WITH ('connector' = 'filesystem', 'path' = '/tmp/none', 'format' = 'json')",
    "CREATE VIEW v AS SELECT auction, max(price) AS m FROM bids GROUP BY auction; SELECT m, count(*) AS n FROM v GROUP BY m",
    "WITH big AS (SELECT * FROM bids WHERE price > 100) SELECT upper(channel) AS c, cast(price AS INT) FROM big",
    "SELECT CASE WHEN price > 5 THEN 'high' WHEN price IS NULL THEN NULL ELSE 'low' END AS level FROM bids",
    "SELECT auction, b.price, substring(channel, 1, 3), coalesce(channel, 'none'), who.name, tags[1] FROM bids AS b",
    "SELECT window_start, window_end, count(*) AS n FROM TABLE(TUMBLE(TABLE bids, DESCRIPTOR(ts), INTERVAL '10' MINUTES)) GROUP BY window_start, window_end",
    "SELECT b.auction, p.name FROM bids b JOIN people p ON b.bidder = p.id WHERE p.city IN ('x', 'y')",
    "SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rn FROM bids) WHERE rn <= 3",
    "SELECT auction FROM bids UNION ALL SELECT id FROM people",
    "SELECT channel, count(DISTINCT bidder) FILTER (WHERE price > 3) AS d FROM bids GROUP BY channel",
    "SELECT auction FROM bids WHERE bidder IN (SELECT id FROM people WHERE city = 'Oslo')",
    "INSERT INTO people SELECT auction, channel, 'x' FROM bids",
    "SET 'execution.runtime-mode' = 'batch'; SELECT 1 + 2 * 3 AS seven FROM bids -- a comment\n",
    "SELECT auction FROM bids /* between */ WHERE ts >= TIMESTAMP '2026-01-01 00:00:00' AND NOT (price BETWEEN 1 AND 2)",
    "SELECT p.*, 'it''s' AS quoted, `auction` FROM bids LEFT JOIN people AS p ON p.id = auction",
    "EXPLAIN SELECT channel, count(*) AS n FROM bids GROUP BY ROLLUP (channel, auction)",
    "SELECT * FROM bids MATCH_RECOGNIZE (PARTITION BY auction ORDER BY ts MEASURES A.price AS first_price ONE ROW PER MATCH "
    "AFTER MATCH SKIP PAST LAST ROW PATTERN (A B+) DEFINE B AS B.price > A.price)",
    "CREATE STANDING QUERY q AS SELECT channel, count(*) AS n FROM bids WHERE auction = 7 GROUP BY channel HAVING count(*) > 2 "
    "EVERY 5 MINUTES WITH SNAPSHOT UNTIL n > 100 INTO out; CREATE STANDING QUERY r AS SELECT * FROM bids WHERE price > 1.5 "
    "WHEN price > 9 INTO out; CREATE STANDING QUERY s AS SELECT * FROM bids WHERE price > 2.5 WHEN price > 8 INTO out",
    "CREATE STANDING QUERY q AS SELECT CASE WHEN price > 5 THEN 'a' ELSE 'b' END AS c FROM bids EVERY INTERVAL '1' HOUR BY PROCTIME() INTO out",
    "SELECT * FROM ISTREAM(SELECT channel, COUNT(*) AS n FROM bids [RANGE 10 MINUTES SLIDE 5 MINUTES] GROUP BY channel)",
    "SELECT a.channel, b.price FROM bids [RANGE 1 HOUR] AS a JOIN bids [RANGE 2 HOURS] AS b ON a.auction = b.auction",
)
_WORDS = (
    "SELECT FROM WHERE GROUP BY HAVING AND OR NOT NULL ( ) , ; . * + - / % = <> <= 'x' \"y\" ` ' 1 1.5e3 bids people auction price ts "
    "count sum cast AS INT STRING CASE WHEN END JOIN ON IN EXISTS OVER INTERVAL '1' DAY TUMBLE DESCRIPTOR TABLE WITH UNION DISTINCT LIMIT -- /* */ "
    "{ } [ ] $ @ ? :: => || ORDER ARRAY ROW TRUE IS BETWEEN LIKE nothing \\ \x00 é 😀"
)
WORDS = _WORDS.split(" ")
_TOKENS = re.compile(r"\w+|'[^']*'|\s+|.", re.DOTALL)


def mutated(chance: random.Random) -> str:
    """A statement with one to four things wrong with it, or perhaps none."""
    text = chance.choice(STATEMENTS)
    for _ in range(chance.randint(1, 4)):
        text = chance.choice(_CHANGES)(text, chance)
    return text


def _cut(text: str, chance: random.Random) -> str:
    return text[: chance.randrange(len(text) + 1)]


def _without_word(text: str, chance: random.Random) -> str:
    words = _TOKENS.findall(text)
    if words:
        del words[chance.randrange(len(words))]
    return "".join(words)


def _other_word(text: str, chance: random.Random) -> str:
    words = _TOKENS.findall(text) or [""]
    words[chance.randrange(len(words))] = chance.choice(WORDS)
    return "".join(words)


def _further_word(text: str, chance: random.Random) -> str:
    words = _TOKENS.findall(text)
    words.insert(chance.randrange(len(words) + 1), f" {chance.choice(WORDS)} ")
    return "".join(words)


def _swapped(text: str, chance: random.Random) -> str:
    words = _TOKENS.findall(text)
    if len(words) > 1:
        one, other = chance.sample(range(len(words)), 2)
        words[one], words[other] = words[other], words[one]
    return "".join(words)


def _character(text: str, chance: random.Random) -> str:
    at = chance.randrange(len(text) + 1)
    return text[:at] + chance.choice("();,.'\"`-+*/<>=[]{}\\\n\t a0_%é\x00") + text[at + chance.randint(0, 1) :]


def _spliced(text: str, chance: random.Random) -> str:
    words, others = _TOKENS.findall(text), _TOKENS.findall(chance.choice(STATEMENTS))
    at, begin = chance.randrange(len(words) + 1), chance.randrange(len(others))
    return "".join([*words[:at], " ", *others[begin : begin + chance.randint(1, 12)], " ", *words[at:]])


def _nested(text: str, chance: random.Random) -> str:
    many = chance.choice((2, 5, 40))
    return text.replace("price", "(" * many + "price" + ")" * chance.choice((many, many, many - 1)), 1)


_CHANGES = (_cut, _without_word, _other_word, _further_word, _swapped, _character, _spliced, _nested)
