"""The Nexmark queries as they are written for Flink, each as the SELECT of its INSERT, and the same for DuckDB."""

from __future__ import annotations

_HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
_RANKS = ("", "price < 10000", "price >= 10000 and price < 1000000", "price >= 1000000")


def _counters() -> str:
    made = []
    for what, name in (("*", "bids"), ("distinct bidder", "bidders"), ("distinct auction", "auctions")):
        for at, condition in enumerate(_RANKS):
            only = f" filter (where {condition})" if condition else ""
            made.append(f"count({what}){only} AS {f'rank{at}' if at else 'total'}_{name}")
    return ",\n    ".join(made)


QUERIES = {
    "q0": "SELECT auction, bidder, price, `dateTime`, extra FROM bid",
    "q1": "SELECT auction, bidder, 0.908 * price as price, `dateTime`, extra FROM bid",
    "q2": "SELECT auction, price FROM bid WHERE MOD(auction, 123) = 0",
    "q3": """
        SELECT P.name, P.city, P.state, A.id
        FROM auction AS A INNER JOIN person AS P on A.seller = P.id
        WHERE A.category = 10 and (P.state = 'OR' OR P.state = 'ID' OR P.state = 'CA')""",
    "q4": """
        SELECT Q.category, AVG(Q.final)
        FROM (
            SELECT MAX(B.price) AS final, A.category
            FROM auction A, bid B
            WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
            GROUP BY A.id, A.category
        ) Q
        GROUP BY Q.category""",
    "q5": f"""
        SELECT AuctionBids.auction, AuctionBids.num
        FROM (
            SELECT auction, count(*) AS num, window_start AS starttime, window_end AS endtime
            FROM {_HOP}
            GROUP BY auction, window_start, window_end
        ) AS AuctionBids
        JOIN (
            SELECT max(CountBids.num) AS maxn, CountBids.starttime, CountBids.endtime
            FROM (
                SELECT count(*) AS num, window_start AS starttime, window_end AS endtime
                FROM {_HOP}
                GROUP BY auction, window_start, window_end
            ) AS CountBids
            GROUP BY CountBids.starttime, CountBids.endtime
        ) AS MaxBids
        ON AuctionBids.starttime = MaxBids.starttime AND AuctionBids.endtime = MaxBids.endtime AND AuctionBids.num >= MaxBids.maxn""",
    "q7": """
        SELECT B.auction, B.price, B.bidder, B.`dateTime`, B.extra
        from bid B
        JOIN (
            SELECT MAX(price) AS maxprice, window_end as `dateTime`
            FROM TABLE(TUMBLE(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
            GROUP BY window_start, window_end
        ) B1
        ON B.price = B1.maxprice
        WHERE B.`dateTime` BETWEEN B1.`dateTime` - INTERVAL '10' SECOND AND B1.`dateTime`""",
    "q8": """
        SELECT P.id, P.name, P.starttime
        FROM (
            SELECT id, name, window_start AS starttime, window_end AS endtime
            FROM TABLE(TUMBLE(TABLE person, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
            GROUP BY id, name, window_start, window_end
        ) P
        JOIN (
            SELECT seller, window_start AS starttime, window_end AS endtime
            FROM TABLE(TUMBLE(TABLE auction, DESCRIPTOR(`dateTime`), INTERVAL '10' SECOND))
            GROUP BY seller, window_start, window_end
        ) A
        ON P.id = A.seller AND P.starttime = A.starttime AND P.endtime = A.endtime""",
    "q9": """
        SELECT id, itemName, description, initialBid, reserve, `dateTime`, expires, seller, category, extra,
            auction, bidder, price, bid_dateTime, bid_extra
        FROM (
            SELECT A.*, B.auction, B.bidder, B.price, B.`dateTime` AS bid_dateTime, B.extra AS bid_extra,
                ROW_NUMBER() OVER (PARTITION BY A.id ORDER BY B.price DESC, B.`dateTime` ASC) AS rownum
            FROM auction A, bid B
            WHERE A.id = B.auction AND B.`dateTime` BETWEEN A.`dateTime` AND A.expires
        )
        WHERE rownum <= 1""",
    "q10": "SELECT auction, bidder, price, `dateTime`, extra, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd'), DATE_FORMAT(`dateTime`, 'HH:mm') FROM bid",
    "q11": """
        SELECT B.bidder, count(*) as bid_count,
            SESSION_START(B.`dateTime`, INTERVAL '10' SECOND) as starttime,
            SESSION_END(B.`dateTime`, INTERVAL '10' SECOND) as endtime
        FROM bid B
        GROUP BY B.bidder, SESSION(B.`dateTime`, INTERVAL '10' SECOND)""",
    "q12": """
        SELECT bidder, count(*) as bid_count, window_start AS starttime, window_end AS endtime
        FROM TABLE(TUMBLE(TABLE B, DESCRIPTOR(p_time), INTERVAL '10' SECOND))
        GROUP BY bidder, window_start, window_end""",
    "q13": """
        SELECT B.auction, B.bidder, B.price, B.`dateTime`, S.`value`
        FROM (SELECT *, PROCTIME() as p_time FROM bid) B
        JOIN side_input FOR SYSTEM_TIME AS OF B.p_time AS S
        ON mod(B.auction, 10000) = S.key""",
    "q14": """
        SELECT auction, bidder, 0.908 * price as price,
            CASE
                WHEN HOUR(`dateTime`) >= 8 AND HOUR(`dateTime`) <= 18 THEN 'dayTime'
                WHEN HOUR(`dateTime`) <= 6 OR HOUR(`dateTime`) >= 20 THEN 'nightTime'
                ELSE 'otherTime'
            END AS bidTimeType,
            `dateTime`, extra, count_char(extra, 'c') AS c_counts
        FROM bid
        WHERE 0.908 * price > 1000000 AND 0.908 * price < 50000000""",
    "q15": f"""
        SELECT DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') as `day`, {_counters()}
        FROM bid GROUP BY DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q16": f"""
        SELECT channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') as `day`, max(DATE_FORMAT(`dateTime`, 'HH:mm')) as `minute`, {_counters()}
        FROM bid GROUP BY channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q17": """
        SELECT auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') as `day`, count(*) AS total_bids,
            count(*) filter (where price < 10000) AS rank1_bids,
            count(*) filter (where price >= 10000 and price < 1000000) AS rank2_bids,
            count(*) filter (where price >= 1000000) AS rank3_bids,
            min(price) AS min_price, max(price) AS max_price, avg(price) AS avg_price, sum(price) AS sum_price
        FROM bid GROUP BY auction, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q18": """
        SELECT auction, bidder, price, channel, url, `dateTime`, extra
        FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY bidder, auction ORDER BY `dateTime` DESC) AS rank_number FROM bid)
        WHERE rank_number <= 1""",
    "q19": """
        SELECT * FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY auction ORDER BY price DESC) AS rank_number FROM bid)
        WHERE rank_number <= 10""",
    "q20": """
        SELECT auction, bidder, price, channel, url, B.`dateTime`, B.extra,
            itemName, description, initialBid, reserve, A.`dateTime`, expires, seller, category, A.extra
        FROM bid AS B INNER JOIN auction AS A on B.auction = A.id
        WHERE A.category = 10""",
    "q21": r"""
        SELECT auction, bidder, price, channel,
            CASE
                WHEN lower(channel) = 'apple' THEN '0'
                WHEN lower(channel) = 'google' THEN '1'
                WHEN lower(channel) = 'facebook' THEN '2'
                WHEN lower(channel) = 'baidu' THEN '3'
                ELSE REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2)
            END AS channel_id
        FROM bid
        where REGEXP_EXTRACT(url, '(&|^)channel_id=([^&]*)', 2) is not null
            or lower(channel) in ('apple', 'google', 'facebook', 'baidu')""",
    "q22": """
        SELECT auction, bidder, price, channel,
            SPLIT_INDEX(url, '/', 3) as dir1, SPLIT_INDEX(url, '/', 4) as dir2, SPLIT_INDEX(url, '/', 5) as dir3
        FROM bid""",
    "q23": """
        SELECT B.auction, B.bidder, B.price, P.name, P.city, A.id, A.itemName
        FROM bid AS B
        INNER JOIN person AS P ON P.id = B.bidder
        INNER JOIN auction AS A ON A.seller = B.bidder""",
}
"""Queries that Flink runs; q6 it does not."""

BEFORE = {"q12": "CREATE TEMPORARY VIEW B AS SELECT *, PROCTIME() as p_time FROM bid;"}
"""What stands before a query."""

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
    "q15": f"SELECT {_DATE}, {_counters()} FROM bid GROUP BY 1",
    "q16": f"SELECT channel, {_DATE}, max(strftime(dateTime, '%H:%M')), {_counters()} FROM bid GROUP BY 1, 2",
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
