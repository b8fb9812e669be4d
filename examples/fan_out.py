"""Three sources, four branches, five sinks, one query: each source is read once per batch.

penstock run --once examples/fan_out.py
penstock run --batch examples/fan_out.py
python examples/fan_out.py
"""

import tempfile
from pathlib import Path

import penstock as ps

OUT = Path(tempfile.gettempdir()) / "penstock-fan-out"
ORDERS = [(n, f"customer{n % 7}", 10.0 * (n % 23)) for n in range(500)]
RETURNS = [(n, f"customer{n % 7}", -10.0 * (n % 23)) for n in range(0, 500, 20)]
GOODWILL = [(n, f"customer{n % 7}", 5.0) for n in range(1000, 1050)]
FIELDS = "id bigint, customer string, amount double"

flow = ps.Flow("fan-out")
orders = flow.source("orders", ps.items(ORDERS, FIELDS, batches=3))
returns = flow.source("returns", ps.items(RETURNS, FIELDS, batches=3))
goodwill = flow.source("goodwill", ps.items(GOODWILL, FIELDS, batches=3))

entries = orders.union("entries", returns, goodwill)
parts = entries.branch("size", negative="amount < 0", small="amount < 50", large="amount >= 150")
parts.negative.sink("negatives", ps.write_files(OUT / "negatives", format="json"))
parts.small.sink("small", ps.write_files(OUT / "small", format="json"))
flagged = parts.large.map("flag", lambda row: (row.id, row.customer.upper(), row.amount))
flagged.sink("large", ps.write_files(OUT / "large", format="json"))
parts.otherwise.sink("middle", ps.write_files(OUT / "middle", format="json"))
entries.key_by("customer").aggregate("balance", balance="sum(amount)", entries="count(*)").sink(
    "balances", ps.console()
)

if __name__ == "__main__":
    ps.run(flow, batch=True)
