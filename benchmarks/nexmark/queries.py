"""The Nexmark queries as they are written for Flink: the tables, each query as the SELECT of its INSERT, and the columns that it fills."""

from __future__ import annotations

TABLES = """
CREATE TABLE nexmark (
    event_type INT,
    person ROW<id BIGINT, name VARCHAR, emailAddress VARCHAR, creditCard VARCHAR, city VARCHAR, state VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
    auction ROW<id BIGINT, itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, `dateTime` TIMESTAMP(3), expires TIMESTAMP(3),
        seller BIGINT, category BIGINT, extra VARCHAR>,
    bid ROW<auction BIGINT, bidder BIGINT, price BIGINT, channel VARCHAR, url VARCHAR, `dateTime` TIMESTAMP(3), extra VARCHAR>,
    `dateTime` AS CASE
        WHEN event_type = 0 THEN person.`dateTime`
        WHEN event_type = 1 THEN auction.`dateTime`
        ELSE bid.`dateTime`
    END,
    WATERMARK FOR `dateTime` AS `dateTime` - INTERVAL '4' SECOND
) WITH (@events);

CREATE VIEW person AS
SELECT person.id, person.name, person.emailAddress, person.creditCard, person.city, person.state, `dateTime`, person.extra
FROM nexmark WHERE event_type = 0;

CREATE VIEW auction AS
SELECT auction.id, auction.itemName, auction.description, auction.initialBid, auction.reserve, `dateTime`, auction.expires, auction.seller,
    auction.category, auction.extra
FROM nexmark WHERE event_type = 1;

CREATE VIEW bid AS
SELECT bid.auction, bid.bidder, bid.price, bid.channel, bid.url, `dateTime`, bid.extra
FROM nexmark WHERE event_type = 2;

CREATE TABLE side_input (key BIGINT, `value` VARCHAR) WITH (@side);
"""
"""The tables and views; their options are put in."""

_HOP = "TABLE(HOP(TABLE bid, DESCRIPTOR(`dateTime`), INTERVAL '2' SECOND, INTERVAL '10' SECOND))"
_RANKS = ("", "price < 10000", "price >= 10000 and price < 1000000", "price >= 1000000")


def counters() -> str:
    """The counters of bids, bidders and auctions by price."""
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
        SELECT DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') as `day`, {counters()}
        FROM bid GROUP BY DATE_FORMAT(`dateTime`, 'yyyy-MM-dd')""",
    "q16": f"""
        SELECT channel, DATE_FORMAT(`dateTime`, 'yyyy-MM-dd') as `day`, max(DATE_FORMAT(`dateTime`, 'HH:mm')) as `minute`, {counters()}
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


_BID = "auction BIGINT, bidder BIGINT, price BIGINT, "
_WHEN = "`dateTime` TIMESTAMP(3), extra VARCHAR"
_AUCTION = "itemName VARCHAR, description VARCHAR, initialBid BIGINT, reserve BIGINT, "
_COUNTED = ", ".join(
    f"{rank}_{what} BIGINT" for what in ("bids", "bidders", "auctions") for rank in ("total", "rank1", "rank2", "rank3")
)
SINKS = {
    "q0": f"{_BID}{_WHEN}",
    "q1": f"auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), {_WHEN}",
    "q2": "auction BIGINT, price BIGINT",
    "q3": "name VARCHAR, city VARCHAR, state VARCHAR, id BIGINT",
    "q4": "id BIGINT, final BIGINT",
    "q5": "auction BIGINT, num BIGINT",
    "q7": f"auction BIGINT, price BIGINT, bidder BIGINT, {_WHEN}",
    "q8": "id BIGINT, name VARCHAR, stime TIMESTAMP(3)",
    "q9": f"id BIGINT, {_AUCTION}`dateTime` TIMESTAMP(3), expires TIMESTAMP(3), seller BIGINT, category BIGINT, extra VARCHAR, "
    "auction BIGINT, bidder BIGINT, price BIGINT, bid_dateTime TIMESTAMP(3), bid_extra VARCHAR",
    "q10": f"{_BID}{_WHEN}, dt VARCHAR, hm VARCHAR",
    "q11": "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
    "q12": "bidder BIGINT, bid_count BIGINT, starttime TIMESTAMP(3), endtime TIMESTAMP(3)",
    "q13": f"{_BID}`dateTime` TIMESTAMP(3), `value` VARCHAR",
    "q14": f"auction BIGINT, bidder BIGINT, price DECIMAL(23, 3), bidTimeType VARCHAR, {_WHEN}, c_counts BIGINT",
    "q15": f"`day` VARCHAR, {_COUNTED}",
    "q16": f"channel VARCHAR, `day` VARCHAR, `minute` VARCHAR, {_COUNTED}",
    "q17": "auction BIGINT, `day` VARCHAR, total_bids BIGINT, rank1_bids BIGINT, rank2_bids BIGINT, rank3_bids BIGINT, min_price BIGINT, "
    "max_price BIGINT, avg_price BIGINT, sum_price BIGINT",
    "q18": f"{_BID}channel VARCHAR, url VARCHAR, {_WHEN}",
    "q19": f"{_BID}channel VARCHAR, url VARCHAR, {_WHEN}, rank_number BIGINT",
    "q20": f"{_BID}channel VARCHAR, url VARCHAR, bid_dateTime TIMESTAMP(3), bid_extra VARCHAR, {_AUCTION}auction_dateTime TIMESTAMP(3), "
    "expires TIMESTAMP(3), seller BIGINT, category BIGINT, auction_extra VARCHAR",
    "q21": f"{_BID}channel VARCHAR, channel_id VARCHAR",
    "q22": f"{_BID}channel VARCHAR, dir1 VARCHAR, dir2 VARCHAR, dir3 VARCHAR",
    "q23": f"{_BID}name VARCHAR, city VARCHAR, id BIGINT, itemName VARCHAR",
}
"""The columns of the table that each query fills."""


def tables(events: str, side: str) -> str:
    """The tables with the options of the events and of the side input."""
    return TABLES.replace("@events", events).replace("@side", side)
