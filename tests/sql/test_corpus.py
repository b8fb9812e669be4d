"""Bounded answers are those of DuckDB, and those of any cut into batches."""

from __future__ import annotations

import pytest

from tests.sql.corpus import answer, by_duckdb

QUERIES = """
SELECT * FROM orders
SELECT id, amount * 2 AS twice, upper(customer) AS who FROM orders WHERE amount >= 10 AND price < 5
SELECT customer, CASE WHEN amount > 20 THEN 'large' WHEN amount IS NULL THEN 'none' ELSE 'small' END AS size FROM orders
SELECT id FROM orders WHERE customer IN ('ada', 'bob') OR customer IS NULL
SELECT id FROM orders WHERE NOT (amount BETWEEN 10 AND 20)
SELECT id FROM orders WHERE customer LIKE 'a%'
SELECT coalesce(customer, 'nobody') AS c, nullif(amount, 10) AS n FROM orders
SELECT customer, count(*) AS n, sum(amount) AS total, min(price) AS low, max(price) AS high FROM orders GROUP BY customer
SELECT customer, avg(amount) AS mean FROM orders GROUP BY customer HAVING count(*) > 1
SELECT count(*) AS n, count(amount) AS a, count(DISTINCT customer) AS c FROM orders
SELECT customer, count(*) FILTER (WHERE amount > 15) AS n, sum(amount) FILTER (WHERE price > 1) AS s FROM orders GROUP BY customer
SELECT amount % 20 AS rest, count(*) AS n FROM orders GROUP BY amount % 20
SELECT amount % 20 AS rest, count(*) AS n FROM orders GROUP BY rest
SELECT length(customer) AS l, sum(price) AS s FROM orders GROUP BY 1
SELECT customer, sum(amount) / count(*) AS r FROM orders WHERE amount IS NOT NULL GROUP BY customer
SELECT n, count(*) AS m FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t GROUP BY n
SELECT max(n) AS most FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t
WITH t AS (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer), u AS (SELECT * FROM t WHERE total > 20) SELECT total FROM u
SELECT DISTINCT customer FROM orders
SELECT DISTINCT amount, customer FROM orders WHERE amount = 10
SELECT o.id, p.city FROM orders AS o JOIN people AS p ON o.customer = p.name
SELECT o.id, p.city FROM orders o LEFT JOIN people p ON o.customer = p.name
SELECT o.id, p.name FROM orders o RIGHT JOIN people p ON o.customer = p.name
SELECT o.id, p.name FROM orders o FULL JOIN people p ON o.customer = p.name
SELECT o.id, p.name FROM orders o JOIN people p ON o.customer = p.name AND o.amount < p.age
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND o.amount < p.age
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name WHERE p.name IS NULL
SELECT o.id, p.name FROM orders o, people p WHERE o.customer = p.name AND p.city = 'Rome'
SELECT o.id, p.name FROM orders o CROSS JOIN people p WHERE o.amount > p.age
SELECT o.id, p.city, y.paid FROM orders o JOIN people p ON o.customer = p.name JOIN payments y ON y.order_id = o.id
SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.customer = b.customer AND a.id < b.id
SELECT city, count(*) AS n FROM orders o JOIN people p ON o.customer = p.name GROUP BY city
SELECT t.customer, p.city, t.total FROM (SELECT customer, sum(amount) AS total FROM orders GROUP BY customer) t LEFT JOIN people p ON p.name = t.customer
SELECT id FROM orders WHERE customer IN (SELECT name FROM people WHERE city = 'Rome')
SELECT id FROM orders WHERE customer IN (SELECT customer FROM orders WHERE amount > 10)
SELECT id FROM orders WHERE id IN (SELECT id FROM orders GROUP BY id HAVING count(*) = 1)
SELECT id FROM orders WHERE amount = (SELECT max(amount) FROM orders) AND id > 0
SELECT id, amount FROM orders o WHERE amount >= (SELECT avg(amount) FROM orders i WHERE i.customer = o.customer)
SELECT id FROM orders o WHERE EXISTS (SELECT id FROM orders i WHERE i.customer = o.customer AND i.id <> o.id) AND id > 1
SELECT id FROM orders WHERE customer IS NOT NULL AND customer NOT IN (SELECT name FROM people)
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id)
SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid > 5)
SELECT id FROM orders WHERE amount > (SELECT avg(amount) FROM orders)
SELECT name, (SELECT count(*) FROM orders o WHERE o.customer = p.name) AS n FROM people p
SELECT id FROM orders o WHERE amount = (SELECT max(amount) FROM orders i WHERE i.customer = o.customer)
SELECT id FROM orders WHERE id IN (SELECT order_id FROM payments GROUP BY order_id HAVING count(*) > 1)
SELECT id FROM orders WHERE amount > 10 UNION ALL SELECT order_id FROM payments
SELECT customer FROM orders UNION SELECT name FROM people
SELECT id, amount FROM orders ORDER BY price DESC, id LIMIT 3
SELECT id FROM orders ORDER BY id LIMIT 2 OFFSET 1
SELECT customer, sum(amount) AS s FROM orders GROUP BY customer ORDER BY s DESC, customer LIMIT 2
SELECT id, customer FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY price DESC) AS rn FROM orders) t WHERE rn = 1
SELECT customer, price, rn FROM (SELECT customer, price, row_number() OVER (PARTITION BY customer ORDER BY price DESC) AS rn FROM orders) t WHERE rn <= 2
SELECT id FROM orders QUALIFY row_number() OVER (PARTITION BY customer ORDER BY price) = 1
SELECT customer, s FROM (SELECT customer, s, row_number() OVER (ORDER BY s DESC, customer) AS rn FROM (SELECT customer, sum(price) AS s FROM orders GROUP BY customer) a) b WHERE rn <= 2
SELECT id, ts FROM (SELECT *, row_number() OVER (PARTITION BY customer ORDER BY ts) AS rn FROM orders) t WHERE rn = 1
SELECT 1 AS a, 'x' AS b
SELECT id FROM orders WHERE customer NOT IN (SELECT name FROM people)
SELECT name FROM people WHERE name NOT IN (SELECT customer FROM orders)
SELECT id FROM orders WHERE amount NOT IN (SELECT paid FROM payments WHERE paid > 1000)
SELECT customer FROM orders INTERSECT SELECT name FROM people
SELECT customer FROM orders INTERSECT ALL SELECT name FROM people
SELECT name FROM people EXCEPT SELECT customer FROM orders
SELECT DISTINCT price FROM orders
SELECT customer, amount, count(*) AS n FROM orders GROUP BY GROUPING SETS ((customer), (amount), ())
SELECT customer, amount, sum(price) AS n FROM orders GROUP BY ROLLUP (customer, amount)
SELECT customer, amount, sum(price) AS n, grouping(customer) AS g FROM orders GROUP BY CUBE (customer, amount)
SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY ts) AS s FROM orders
SELECT id, sum(amount) OVER (PARTITION BY customer ORDER BY ts ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s, lag(amount) OVER (PARTITION BY customer ORDER BY ts) AS p FROM orders
SELECT id, count(*) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '10' SECOND PRECEDING AND CURRENT ROW) AS s FROM orders
SELECT id, avg(price) OVER w AS a FROM orders WINDOW w AS (PARTITION BY amount ORDER BY ts)
SELECT id, rank() OVER (PARTITION BY customer ORDER BY price) AS r FROM orders QUALIFY r = 1
SELECT id, row_number() OVER (PARTITION BY customer ORDER BY price, id) AS n FROM orders
SELECT id, n FROM (SELECT id, row_number() OVER (PARTITION BY customer ORDER BY price, id) AS n FROM orders) t
SELECT a + 1 AS c, b FROM (VALUES (1, 'x'), (2, 'y')) AS v(a, b)
SELECT o.id FROM orders o JOIN payments y ON o.id = y.order_id AND y.ts BETWEEN o.ts AND o.ts + INTERVAL '10' SECOND
SELECT o.id, y.paid FROM orders o LEFT JOIN payments y ON o.id = y.order_id AND y.ts BETWEEN o.ts AND o.ts + INTERVAL '10' SECOND
SELECT o.id, y.paid FROM orders o, payments y WHERE o.id = y.order_id AND y.ts >= o.ts - INTERVAL '1' MINUTE AND y.ts < o.ts + INTERVAL '9' SECOND
SELECT id, customer FROM orders JOIN people ON customer = name WHERE age > 30
SELECT p.* FROM people p WHERE p.age IS NOT NULL
SELECT count(*) AS n FROM orders WHERE 1 = 2 OR id > 3
SELECT cast(amount AS varchar) AS t, cast(amount AS double) AS i FROM orders
SELECT extract(day FROM ts) AS d, extract(minute FROM ts) AS m FROM orders
SELECT substring(customer FROM 2 FOR 2) AS s, position('a' IN customer) AS p, trim(customer) AS t FROM orders
"""


@pytest.mark.parametrize("text", [line for line in QUERIES.strip().splitlines() if line.strip()])
def test_an_answer_is_that_of_duckdb(text: str) -> None:
    wanted = by_duckdb(text)
    assert answer(text) == wanted
    assert answer(text, cuts=3) == wanted
