"""IN, EXISTS, ANY and ALL wherever an expression may stand: as DuckDB answers, nulls among them, uncut and in random cuts."""

from __future__ import annotations

import random

import pytest

import penstock as ps
from penstock.errors import SqlError
from penstock.testing import BARRIER, run_local
from tests.sql.corpus import TABLES, answer, by_duckdb, in_order, standing, tables

QUERIES = """
SELECT id FROM orders WHERE customer IN (SELECT name FROM people WHERE city = 'Rome') OR amount > 20
SELECT id FROM orders WHERE NOT (customer IN (SELECT name FROM people WHERE city = 'Rome') AND amount > 20)
SELECT id, customer IN (SELECT name FROM people) AS known, customer NOT IN (SELECT name FROM people) AS other FROM orders
SELECT name, name IN (SELECT customer FROM orders) AS known, name NOT IN (SELECT customer FROM orders) AS other FROM people
SELECT id, amount IN (SELECT age FROM people) AS a, amount NOT IN (SELECT age FROM people WHERE age > 100) AS b FROM orders
SELECT id, CASE WHEN customer IN (SELECT name FROM people WHERE age > 30) THEN 'old' WHEN EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id) THEN 'paid' ELSE 'none' END AS c FROM orders o
SELECT id, EXISTS (SELECT * FROM payments y WHERE y.order_id = o.id) AS paid, EXISTS (SELECT * FROM payments WHERE paid > 1000) AS big FROM orders o
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id) OR customer IS NULL
SELECT id FROM orders o WHERE NOT EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id) = (amount = 10)
SELECT id, EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid > o.amount) AS more FROM orders o
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM orders i WHERE i.customer = o.customer AND i.id <> o.id) OR price > 3
SELECT id FROM orders WHERE amount = ANY (SELECT paid FROM payments)
SELECT id FROM orders WHERE amount <> ALL (SELECT paid FROM payments)
SELECT id FROM orders WHERE amount <> ALL (SELECT age FROM people)
SELECT id, amount = ANY (SELECT age FROM people) AS e, amount <> ANY (SELECT age FROM people) AS n, amount = ALL (SELECT age FROM people) AS ea, amount <> ALL (SELECT age FROM people) AS na FROM orders
SELECT id, amount > ANY (SELECT age FROM people) AS a, amount >= ANY (SELECT age FROM people) AS b, amount < ANY (SELECT age FROM people) AS c, amount <= ANY (SELECT age FROM people) AS d FROM orders
SELECT id, amount > ALL (SELECT age FROM people) AS a, amount >= ALL (SELECT age FROM people) AS b, amount < ALL (SELECT age FROM people) AS c, amount <= ALL (SELECT age FROM people) AS d FROM orders
SELECT id, amount > ALL (SELECT age FROM people WHERE age > 99) AS a, amount > ANY (SELECT age FROM people WHERE age > 99) AS b, amount = ALL (SELECT age FROM people WHERE age > 99) AS c FROM orders
SELECT id FROM orders WHERE amount > ALL (SELECT paid FROM payments WHERE paid < 20) AND price < 5
SELECT id FROM orders WHERE NOT (amount <= ANY (SELECT age FROM people WHERE age < 40))
SELECT id, amount > ANY (SELECT paid FROM payments y WHERE y.order_id = o.id) AS a, amount <= ALL (SELECT paid FROM payments y WHERE y.order_id = o.id) AS b FROM orders o
SELECT id, amount IN (SELECT paid FROM payments y WHERE y.order_id = o.id) AS a, amount NOT IN (SELECT paid FROM payments y WHERE y.order_id = o.id) AS b FROM orders o
SELECT id FROM orders o WHERE amount NOT IN (SELECT i.amount FROM orders i WHERE i.price = o.price AND i.id <> o.id)
SELECT name FROM people p WHERE age NOT IN (SELECT amount FROM orders o WHERE o.customer = p.name)
SELECT name, age NOT IN (SELECT amount FROM orders o WHERE o.customer = p.name) AS n FROM people p
SELECT name, 20 IN (SELECT amount FROM orders o WHERE o.customer = p.name OR p.age < 30) AS n, 99 > ALL (SELECT amount FROM orders o WHERE o.customer < p.name) AS m FROM people p
SELECT id FROM orders WHERE (customer, amount) IN (SELECT name, age FROM people) OR id = 7
SELECT id, (customer, amount) IN (SELECT name, age FROM people) AS a, (customer, amount) NOT IN (SELECT name, age FROM people) AS b FROM orders
SELECT id FROM orders WHERE (customer, amount) NOT IN (SELECT name, age FROM people)
SELECT id FROM orders WHERE amount IN (SELECT max(paid) FROM payments) OR amount >= ALL (SELECT avg(age) FROM people)
SELECT id, amount = ANY (SELECT max(paid) FROM payments y WHERE y.order_id = o.id) AS m FROM orders o
SELECT id, id IN (SELECT order_id FROM payments GROUP BY order_id HAVING count(*) > 1) AS twice FROM orders
SELECT id FROM orders o WHERE EXISTS (SELECT paid FROM payments y WHERE y.order_id = o.id GROUP BY paid HAVING count(*) > 0)
SELECT id, EXISTS (SELECT max(paid) FROM payments WHERE paid > 1000) AS e FROM orders
SELECT id, amount IN (SELECT age FROM people UNION SELECT paid FROM payments) AS u FROM orders
SELECT id FROM orders WHERE amount IN (VALUES (10), (25)) OR amount IS NULL
SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id LIMIT 1) OR id = 6
SELECT id, price > ANY (SELECT paid FROM payments) AS p, price = ANY (SELECT price FROM orders WHERE id > 2) AS q FROM orders
SELECT customer, count(*) AS n FROM orders GROUP BY customer HAVING customer IN (SELECT name FROM people) OR count(*) > 5
SELECT customer, sum(amount) AS s, sum(amount) IN (SELECT paid FROM payments) AS b, sum(amount) > ALL (SELECT paid FROM payments) AS m FROM orders GROUP BY customer
SELECT customer, EXISTS (SELECT 1 FROM people p WHERE p.name = o.customer) AS e FROM orders o GROUP BY customer
SELECT count(*) FILTER (WHERE customer IN (SELECT name FROM people)) AS n, sum(CASE WHEN amount IN (SELECT paid FROM payments) THEN 1 ELSE 0 END) AS m FROM orders
SELECT customer, n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t WHERE n IN (SELECT count(*) FROM payments GROUP BY order_id) OR customer = 'zoe'
SELECT customer, n, n > ALL (SELECT count(*) FROM payments GROUP BY order_id) AS a, n = ANY (SELECT count(*) FROM payments GROUP BY order_id) AS b FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t
SELECT customer, n, EXISTS (SELECT 1 FROM payments y WHERE y.order_id > t.n) AS a FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t
SELECT o.id, p.name FROM orders o JOIN people p ON o.customer = p.name WHERE o.amount IN (SELECT paid FROM payments) OR p.age IN (SELECT amount FROM orders)
SELECT o.id, p.name FROM orders o JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments)
SELECT o.id, p.name FROM orders o JOIN people p ON o.customer = p.name AND (p.age > 30 OR EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id)) LEFT JOIN payments z ON z.order_id = o.id
SELECT id, coalesce(amount, 0) + 10 IN (SELECT paid + 10 FROM payments) AS a FROM orders
SELECT id, (SELECT max(paid) FROM payments) IN (SELECT amount FROM orders) AS a FROM orders
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments)
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND o.amount NOT IN (SELECT paid FROM payments)
SELECT o.id, p.name FROM orders o RIGHT JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments)
SELECT o.id, p.name FROM orders o FULL JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments)
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND p.age IN (SELECT amount + 10 FROM orders)
SELECT o.id, p.name FROM orders o RIGHT JOIN people p ON o.customer = p.name AND p.age NOT IN (SELECT amount FROM orders WHERE amount IS NOT NULL)
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND (p.age > 30 OR EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id))
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid < p.age)
SELECT o.id, p.name FROM orders o RIGHT JOIN people p ON o.customer = p.name AND EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid < p.age)
SELECT o.id, p.name FROM orders o FULL JOIN people p ON o.customer = p.name AND EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid < p.age)
SELECT o.id, p.name FROM orders o FULL JOIN people p ON o.customer = p.name AND NOT EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid < p.age)
SELECT o.id, p.name FROM orders o FULL JOIN people p ON EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid < p.age)
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.amount + p.age IN (SELECT paid + 16 FROM payments)
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.amount < (SELECT avg(paid) FROM payments) AND p.age > o.amount
SELECT o.id, p.name FROM orders o FULL JOIN people p ON o.amount < (SELECT max(paid) FROM payments y WHERE y.order_id = o.id) AND p.age > o.amount
SELECT o.id, p.name FROM orders o FULL JOIN people p ON o.amount < (SELECT max(paid) FROM payments) AND p.age < (SELECT max(amount) FROM orders)
SELECT o.id, p.name, y.paid FROM orders o LEFT JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments) LEFT JOIN payments y ON y.order_id = o.id AND EXISTS (SELECT 1 FROM people q WHERE q.age > y.paid AND q.age > o.amount)
SELECT o.id, p.name, y.paid FROM orders o JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments) RIGHT JOIN payments y ON y.order_id = o.id
SELECT o.id FROM orders o SEMI JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments)
SELECT o.id FROM orders o ANTI JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments)
SELECT o.id FROM orders o SEMI JOIN people p ON o.customer = p.name AND EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid < p.age)
SELECT o.id FROM orders o ANTI JOIN people p ON o.customer = p.name AND EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid < p.age)
SELECT a.customer, b.order_id, a.n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) a LEFT JOIN (SELECT order_id, count(*) AS n FROM payments GROUP BY order_id) b ON a.n = b.n AND a.customer IN (SELECT name FROM people WHERE age IS NOT NULL)
SELECT a.customer, b.order_id, a.n FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) a FULL JOIN (SELECT order_id, count(*) AS n FROM payments GROUP BY order_id) b ON a.n = b.n AND (a.customer, b.order_id) IN (SELECT customer, id FROM orders)
SELECT * FROM orders o LEFT JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments)
SELECT p.* FROM orders o LEFT JOIN people p ON o.customer = p.name AND EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id AND y.paid < p.age)
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND p.age > ALL (SELECT paid FROM payments y WHERE y.order_id = o.id)
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND o.price > ANY (SELECT paid FROM payments)
SELECT a.id, b.id AS other FROM orders a LEFT JOIN orders b ON a.customer = b.customer AND a.id < b.id AND a.amount IN (SELECT paid FROM payments)
SELECT a.id, b.id AS other FROM orders a LEFT JOIN orders b ON a.customer = b.customer AND a.id < b.id AND EXISTS (SELECT 1 FROM orders c WHERE c.id > a.id AND c.id < b.id)
SELECT count(*) AS n, count(p.name) AS m FROM orders o LEFT JOIN people p ON o.customer = p.name AND EXISTS (SELECT 1 FROM payments)
SELECT amount IN (SELECT paid FROM payments) AS k, count(*) AS n FROM orders GROUP BY amount IN (SELECT paid FROM payments) HAVING amount IN (SELECT paid FROM payments) IS NOT NULL
SELECT CASE WHEN amount IN (SELECT paid FROM payments) THEN 'paid' ELSE 'no' END AS k, count(*) AS n, sum(price) AS s FROM orders GROUP BY CASE WHEN amount IN (SELECT paid FROM payments) THEN 'paid' ELSE 'no' END
SELECT (SELECT max(age) FROM people p WHERE p.name = o.customer) AS k, count(*) AS n FROM orders o GROUP BY (SELECT max(age) FROM people p WHERE p.name = o.customer)
SELECT EXISTS (SELECT 1 FROM payments y WHERE y.order_id = o.id) AS k, customer, count(*) AS n FROM orders o GROUP BY 1, 2
SELECT amount > (SELECT avg(amount) FROM orders) AS big, count(*) FILTER (WHERE customer IN (SELECT name FROM people)) AS n, customer IN (SELECT name FROM people) AS c FROM orders GROUP BY big, c
SELECT customer, customer IN (SELECT name FROM people) AS c, count(*) AS n FROM orders GROUP BY customer, customer IN (SELECT name FROM people)
SELECT customer, customer IN (SELECT name FROM people) OR amount > 10 AS c, customer IN (SELECT name FROM people) AS d, count(*) AS n FROM orders GROUP BY customer, customer IN (SELECT name FROM people) OR amount > 10
SELECT customer IN (SELECT name FROM people) AS c, amount, count(*) AS n FROM orders GROUP BY GROUPING SETS ((customer IN (SELECT name FROM people)), (customer IN (SELECT name FROM people), amount), ())
SELECT customer IN (SELECT name FROM people) AS c, amount, count(*) AS n, grouping(amount) AS g FROM orders GROUP BY ROLLUP (customer IN (SELECT name FROM people), amount)
SELECT c, count(*) AS n FROM (SELECT customer IN (SELECT name FROM people) AS c, count(*) AS n FROM orders GROUP BY customer, c) t GROUP BY c
SELECT DISTINCT amount IN (SELECT paid FROM payments) AS c FROM orders GROUP BY amount IN (SELECT paid FROM payments), id
SELECT count(*) AS n FROM orders GROUP BY amount NOT IN (SELECT paid FROM payments)
SELECT max(id) AS m FROM orders GROUP BY amount = ANY (SELECT paid FROM payments), price > ALL (SELECT 1 FROM payments)
SELECT id, (SELECT count(*) FROM payments y WHERE y.paid < o.amount) AS n FROM orders o
SELECT id, (SELECT max(paid) - min(paid) FROM payments y WHERE y.paid <> o.amount OR o.amount IS NULL) AS n FROM orders o
SELECT id, (SELECT sum(y.paid * o.price) FROM payments y WHERE y.order_id = o.id AND y.paid < o.amount) AS n FROM orders o
SELECT id, (SELECT max(y.paid + o.id) FROM payments y) AS n FROM orders o
SELECT id, (SELECT sum(paid) + o.id FROM payments y WHERE y.order_id > o.id HAVING count(*) > 1) AS n FROM orders o
SELECT id, (SELECT count(DISTINCT y.order_id) FROM payments y JOIN people p ON p.age > y.paid WHERE p.name <> o.customer AND y.paid IN (SELECT amount FROM orders)) AS n FROM orders o
SELECT id FROM orders o WHERE amount > (SELECT avg(age) FROM people p WHERE p.name > o.customer) OR 2 = (SELECT count(*) FROM orders i WHERE i.customer = o.customer AND i.id <= o.id)
SELECT customer, n, (SELECT count(*) FROM payments y WHERE y.order_id <= t.n) AS m FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) t
SELECT (SELECT count(*) FROM payments y WHERE y.paid < o.amount) AS k, count(*) AS n FROM orders o GROUP BY (SELECT count(*) FROM payments y WHERE y.paid < o.amount)
SELECT o.id, p.name FROM orders o LEFT JOIN people p ON o.customer = p.name AND p.age > (SELECT avg(paid) FROM payments y WHERE y.order_id < o.id)
SELECT id, (SELECT count(*) FROM payments y WHERE y.order_id = o.id AND 1 = o.id) AS n, amount IN (SELECT paid FROM payments y WHERE 10 = o.amount) AS m FROM orders o
SELECT o.id, p.name, y.paid FROM orders o JOIN people p ON o.customer = p.name AND o.amount IN (SELECT paid FROM payments) AND p.age NOT IN (SELECT paid FROM payments) LEFT JOIN payments y ON y.order_id = o.id AND y.paid IN (SELECT amount FROM orders) AND o.id IN (SELECT order_id FROM payments)
"""
LISTED = [line for line in QUERIES.strip().splitlines() if line.strip()]


@pytest.mark.parametrize("text", LISTED)
def test_an_answer_is_that_of_duckdb(text: str) -> None:
    assert answer(text) == by_duckdb(text)


@pytest.mark.parametrize("text", LISTED)
def test_a_query_that_is_cut_at_random_ends_with_the_same_table(text: str) -> None:
    chance = random.Random(text)
    wanted = by_duckdb(text)
    for _ in range(2):
        flow = ps.sql_flow(text, tables())
        known = {source.name for source in flow.graph.sources}
        given = {name: _cut(rows, chance) for name, (_, rows) in TABLES.items() if name in known}
        assert in_order(standing(run_local(flow, given))) == wanted


def _cut(rows: list[tuple[object, ...]], chance: random.Random) -> list[object]:
    """Rows in another order, with ends of batches between some of them."""
    made: list[object] = []
    for row in chance.sample(rows, len(rows)):
        made += [row, BARRIER] if chance.random() < 0.4 else [row]
    return made


@pytest.mark.parametrize(
    "text",
    [
        "SELECT id FROM orders WHERE amount IN (SELECT m FROM (SELECT max(paid) AS m FROM payments GROUP BY order_id) q WHERE m > 1) OR id = 1",
        "SELECT name, (SELECT max(n) FROM (SELECT customer, count(*) AS n FROM orders GROUP BY customer) q WHERE q.customer = p.name) AS n FROM people p",
    ],
)
def test_no_step_of_a_subquery_is_left_unread(text: str) -> None:
    flow = ps.sql_flow(text, tables())
    read = {port.step for node in flow.graph.nodes for port in node.inputs}
    steps = [node for node in flow.graph.nodes if node.name.startswith("result.")]
    assert [node.name for node in steps if node.name not in read] == []


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            "SELECT id FROM orders o WHERE EXISTS (SELECT 1 FROM payments y WHERE EXISTS (SELECT 1 FROM people p WHERE p.age = o.amount AND p.age > y.paid))",
            "1:115: table 'o' is further out: a subquery reads the query directly around it; join the tables of both subqueries",
        ),
        (
            "SELECT id, (SELECT max(paid) FROM payments y WHERE y.paid = (SELECT min(age) FROM people p WHERE p.age = o.amount)) AS n FROM orders o",
            "1:106: table 'o' is further out",
        ),
        (
            "SELECT id, (SELECT max(paid) FROM payments y WHERE y.paid < o.amount LIMIT 1) AS n FROM orders o",
            "1:20: expected a subquery without LIMIT, since it reads the query around it",
        ),
    ],
)
def test_what_a_subquery_cannot_read_is_refused_with_its_place(text: str, says: str) -> None:
    with pytest.raises(SqlError) as refused:
        ps.sql_flow(text, tables())
    assert says in str(refused.value)


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        (
            "SELECT TUMBLE_START(ts, INTERVAL '10' SECOND) AS s, count(*) FILTER (WHERE customer IN (SELECT name FROM people)) AS n "
            "FROM orders GROUP BY TUMBLE(ts, INTERVAL '10' SECOND)",
            "SELECT window_start AS s, count(*) FILTER (WHERE customer IN (SELECT name FROM people)) AS n "
            "FROM TABLE(TUMBLE(TABLE orders, DESCRIPTOR(ts), INTERVAL '10' SECOND)) GROUP BY window_start, window_end",
        ),
        (
            "SELECT customer, SESSION_END(ts, INTERVAL '20' SECOND) AS s, sum(price) FILTER (WHERE customer IN (SELECT name FROM people)) AS n "
            "FROM orders GROUP BY SESSION(ts, INTERVAL '20' SECOND), customer",
            "SELECT customer, window_end AS s, sum(price) FILTER (WHERE customer IN (SELECT name FROM people)) AS n "
            "FROM TABLE(SESSION(TABLE orders PARTITION BY customer, DESCRIPTOR(ts), INTERVAL '20' SECOND)) "
            "GROUP BY window_start, window_end, customer",
        ),
    ],
)
def test_windows_of_group_by_beside_a_subquery_are_those_of_the_table_functions(older: str, newer: str) -> None:
    found = answer(older)
    assert len(found) >= 5
    assert found == answer(newer)


@pytest.mark.parametrize(
    "test", ["EXISTS ({0})", "NOT EXISTS ({0})", "o.customer IN ({0})", "(EXISTS ({0}) OR o.id = 1)"]
)
@pytest.mark.parametrize("kind", ["INTERSECT", "UNION"])
def test_a_set_operation_that_reads_the_query_around_it_says_how_to_write_it(test: str, kind: str) -> None:
    inner = f"SELECT p.name FROM people p WHERE p.name = o.customer {kind} SELECT city FROM people"
    with pytest.raises(SqlError, match=f"a side of {kind} reads the query around it; put {kind} into FROM"):
        ps.sql_flow(f"SELECT o.id FROM orders o WHERE {test.format(inner)}", tables())


def test_what_is_said_of_a_set_operation_works() -> None:
    both = "SELECT name FROM people INTERSECT SELECT customer FROM orders"
    text = f"SELECT o.id FROM orders o WHERE EXISTS (SELECT 1 FROM ({both}) AS s WHERE s.name = o.customer)"
    assert answer(text) == [(1,), (2,), (3,), (4,), (6,)]
