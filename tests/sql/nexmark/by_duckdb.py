"""What DuckDB is asked for each query of Nexmark."""

from __future__ import annotations

from benchmarks.nexmark.queries import QUERIES, counters

_DATE = "strftime(dateTime, '%Y-%m-%d')"
_WINDOW = "time_bucket(interval 10 second, dateTime, timestamptz '1970-01-01 00:00:00+00')"
_HOPPED = """
    SELECT auction, s AS starttime, count(*) AS num
    FROM bid, unnest([time_bucket(interval 2 second, dateTime, timestamptz '1970-01-01 00:00:00+00') - interval 2 second * k for k in range(5)]) AS u(s)
    GROUP BY auction, s"""
OTHERWISE = {
    "q5": f"WITH c AS ({_HOPPED}) SELECT c.auction, c.num FROM c JOIN (SELECT starttime, max(num) AS m FROM c GROUP BY 1) d ON c.starttime = d.starttime AND c.num >= d.m",
    "q7": f"""
        WITH w AS (SELECT max(price) AS maxprice, {_WINDOW} + interval 10 second AS ends FROM bid GROUP BY ends)
        SELECT b.auction, b.price, b.bidder, b.dateTime, b.extra FROM bid b JOIN w ON b.price = w.maxprice
        WHERE b.dateTime BETWEEN w.ends - interval 10 second AND w.ends""",
    "q8": f"""
        SELECT p.id, p.name, p.s FROM (SELECT DISTINCT id, name, {_WINDOW} AS s FROM person) p
        JOIN (SELECT DISTINCT seller, {_WINDOW} AS s FROM auction) a ON p.id = a.seller AND p.s = a.s""",
    "q10": f"SELECT auction, bidder, price, dateTime, extra, {_DATE}, strftime(dateTime, '%H:%M') FROM bid",
    "q11": """
        WITH n AS (SELECT *, CASE WHEN dateTime - lag(dateTime) OVER w < interval 10 second THEN 0 ELSE 1 END AS fresh FROM bid WINDOW w AS (PARTITION BY bidder ORDER BY dateTime)),
             g AS (SELECT *, sum(fresh) OVER (PARTITION BY bidder ORDER BY dateTime ROWS UNBOUNDED PRECEDING) AS nth FROM n)
        SELECT bidder, count(*), min(dateTime), max(dateTime) + interval 10 second FROM g GROUP BY bidder, nth""",
    "q13": "SELECT b.auction, b.bidder, b.price, b.dateTime, s.value FROM bid b JOIN side_input s ON b.auction % 10000 = s.key",
    "q14": """
        SELECT auction, bidder, 0.908 * price,
            CASE WHEN hour(dateTime) >= 8 AND hour(dateTime) <= 18 THEN 'dayTime' WHEN hour(dateTime) <= 6 OR hour(dateTime) >= 20 THEN 'nightTime' ELSE 'otherTime' END,
            dateTime, extra, length(extra) - length(replace(extra, 'c', ''))
        FROM bid WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"SELECT {_DATE}, {counters()} FROM bid GROUP BY 1",
    "q16": f"SELECT channel, {_DATE}, max(strftime(dateTime, '%H:%M')), {counters()} FROM bid GROUP BY 1, 2",
    "q21": r"""
        SELECT auction, bidder, price, channel,
            CASE lower(channel) WHEN 'apple' THEN '0' WHEN 'google' THEN '1' WHEN 'facebook' THEN '2' WHEN 'baidu' THEN '3'
                ELSE regexp_extract(url, '(&|^)channel_id=([^&]*)', 2) END
        FROM bid WHERE regexp_matches(url, '(&|^)channel_id=([^&]*)') OR lower(channel) IN ('apple', 'google', 'facebook', 'baidu')""",
    "q22": "SELECT auction, bidder, price, channel, split_part(url, '/', 4), split_part(url, '/', 5), split_part(url, '/', 6) FROM bid",
}
"""What DuckDB is asked where the query is not its SQL."""
OTHERWISE["q17"] = QUERIES["q17"].replace("DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')", _DATE).replace("`", '"')


def for_duckdb(name: str) -> str:
    """A query as DuckDB reads it."""
    return OTHERWISE.get(name) or QUERIES[name].replace("MOD(auction, 123)", "auction % 123").replace("`", '"')
