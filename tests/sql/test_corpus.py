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
SELECT o.id, p.name, y.paid FROM orders o JOIN people p ON o.customer = p.name RIGHT JOIN payments y ON y.order_id = o.id WHERE o.amount > p.age
SELECT o.id, p.name, y.paid FROM orders o, people p FULL JOIN payments y ON y.paid > p.age WHERE o.customer = p.name
SELECT o.id, p.name, y.paid FROM orders o FULL JOIN payments y ON y.order_id = o.id JOIN people p ON o.customer = p.name WHERE o.amount < p.age
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
SELECT sum(DISTINCT amount) AS s, avg(DISTINCT amount) AS a, count(DISTINCT amount) AS c FROM orders
SELECT customer, sum(DISTINCT amount) AS s, avg(DISTINCT price) AS a FROM orders GROUP BY customer
SELECT sum(DISTINCT amount) FILTER (WHERE id < 6) AS s, max(DISTINCT amount) AS m, min(DISTINCT price) AS l FROM orders
SELECT stddev_pop(DISTINCT amount) AS s, var_samp(DISTINCT amount) AS v, median(DISTINCT amount) AS m FROM orders
SELECT sum(DISTINCT n) AS s, avg(DISTINCT n) AS a FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) AS t
SELECT n % 2 AS k, sum(DISTINCT n) AS d FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t GROUP BY n % 2
SELECT id, sum(DISTINCT amount) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS s FROM orders
SELECT id, count(DISTINCT amount) OVER (PARTITION BY customer ORDER BY ts) AS s FROM orders
SELECT id, nth_value(amount, 2) OVER (PARTITION BY customer ORDER BY ts) AS v FROM orders
SELECT id, nth_value(price, 2) OVER (ORDER BY ts ROWS BETWEEN 2 PRECEDING AND CURRENT ROW) AS v FROM orders
SELECT id, ntile(3) OVER (ORDER BY price, id) AS t, ntile(10) OVER (ORDER BY id) AS u FROM orders
SELECT id, percent_rank() OVER (ORDER BY amount) AS p, cume_dist() OVER (ORDER BY amount) AS c FROM orders WHERE amount IS NOT NULL
SELECT id, percent_rank() OVER (PARTITION BY customer ORDER BY ts) AS p, cume_dist() OVER (PARTITION BY customer ORDER BY ts) AS c FROM orders
SELECT id, sum(price) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 1 PRECEDING) AS s FROM orders
SELECT id, count(*) OVER (ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS s, first_value(id) OVER (ORDER BY ts ROWS BETWEEN 1 FOLLOWING AND 2 FOLLOWING) AS f FROM orders
SELECT id, sum(price) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS s, last_value(id) OVER (ORDER BY ts ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS l FROM orders
SELECT id, sum(price) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '20' SECOND PRECEDING AND INTERVAL '5' SECOND PRECEDING) AS s FROM orders
SELECT id, sum(price) OVER (ORDER BY ts RANGE BETWEEN INTERVAL '5' SECOND FOLLOWING AND INTERVAL '20' SECOND FOLLOWING) AS s FROM orders
SELECT id, sum(id) OVER (ORDER BY amount RANGE BETWEEN 10 PRECEDING AND 5 PRECEDING) AS s FROM orders WHERE amount IS NOT NULL
SELECT id, first_value(price) OVER (ORDER BY ts ROWS BETWEEN 3 PRECEDING AND 2 PRECEDING) AS f FROM orders
SELECT price, count(*) AS n FROM orders GROUP BY price
SELECT price * 0 AS zero, count(*) AS n, sum(id) AS s FROM orders GROUP BY price * 0
SELECT x, count(*) AS n FROM (SELECT CASE WHEN id < 3 THEN CAST('nan' AS double) WHEN id < 5 THEN -0.0 * price ELSE 0.0 * price END AS x FROM orders) t GROUP BY x
SELECT amount, price, max(id) AS m FROM orders GROUP BY amount, price HAVING price > 1
SELECT CAST(price AS decimal(10, 2)) AS d, count(*) AS n FROM orders GROUP BY CAST(price AS decimal(10, 2))
SELECT n, count(*) AS m FROM (SELECT price, count(*) AS n FROM orders GROUP BY price) t GROUP BY n
SELECT a.id, b.id AS other FROM orders a JOIN orders b ON a.price = b.price * 2
SELECT a.id, b.id AS other FROM orders a LEFT JOIN orders b ON a.price = b.price + b.price
SELECT id, row_number() OVER (PARTITION BY price * 0 ORDER BY id) AS n FROM orders
SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY price > 2, price * 0 ORDER BY id) AS rn FROM orders) t WHERE rn = 1
SELECT id FROM orders WHERE price IN (SELECT price + 0 FROM orders WHERE id < 3)
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
SELECT name, (SELECT coalesce(sum(amount), 0) FROM orders o WHERE o.customer = p.name) AS s, (SELECT count(*) + 1 FROM orders o WHERE o.customer = p.name) AS n FROM people p
SELECT customer, sum(amount) AS s, (SELECT max(age) FROM people) AS m FROM orders GROUP BY customer HAVING sum(amount) > (SELECT min(paid) FROM payments)
SELECT o.customer, sum(amount - (SELECT min(paid) FROM payments)) AS s, (SELECT count(*) FROM people p WHERE p.name = o.customer) AS n FROM orders o GROUP BY o.customer
SELECT customer FROM (SELECT customer FROM orders) NATURAL JOIN (SELECT name AS customer FROM people)
SELECT customer, city FROM (SELECT customer FROM orders) JOIN (SELECT name AS customer, city FROM people) USING (customer)
SELECT p.name, z.n, z.s FROM people p, LATERAL (SELECT count(*) AS n, sum(amount) AS s FROM orders o WHERE o.customer = p.name) AS z
SELECT p.name, z.big, z.s FROM people p, LATERAL (SELECT amount > 15 AS big, sum(price) AS s FROM orders o WHERE o.customer = p.name GROUP BY amount > 15) AS z
SELECT p.name, z.twice FROM people p LEFT JOIN LATERAL (SELECT amount * 2 FROM orders o WHERE o.customer = p.name AND price > 1) AS z(twice) ON TRUE
SELECT p.name, z.id FROM people p, LATERAL (SELECT id FROM orders o WHERE o.customer = p.name ORDER BY price DESC LIMIT 1) AS z
SELECT substring(customer FROM 2 FOR 2) AS s, position('a' IN customer) AS p, trim(customer) AS t FROM orders
"""


@pytest.mark.parametrize("text", [line for line in QUERIES.strip().splitlines() if line.strip()])
def test_an_answer_is_that_of_duckdb(text: str) -> None:
    wanted = by_duckdb(text)
    assert answer(text) == wanted
    assert answer(text, cuts=3) == wanted
