"""Asks an HTTP service about each record, fifty requests at a time. The service is a server that the example starts itself.

python examples/async_lookup.py
"""

import http.client
import json
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import penstock as ps


class Prices(BaseHTTPRequestHandler):
    """The service: a price per item after 20 ms; it knows no item 13."""

    def do_GET(self) -> None:
        """Answers /items/7."""
        item = int(self.path.rpartition("/")[2])
        time.sleep(0.02)
        found = item != 13
        self.send_response(200 if found else 404)
        self.end_headers()
        self.wfile.write(json.dumps({"price": item * 1.5}).encode() if found else b"no such item")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


class Server(ThreadingHTTPServer):
    """Takes as many connections at once as the step opens."""

    request_queue_size = 200


class Lookup:
    """A plain function with a setting: the port of the service. Each call gets a thread."""

    def __init__(self, port: int) -> None:
        self.port = port

    def __call__(self, row: ps.Row) -> tuple[int, float]:
        """The item with its price."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        connection.request("GET", f"/items/{row.item}")
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        if answer.status != 200:
            raise LookupError(f"{answer.status}: {body.decode()}")
        return row.item, json.loads(body)["price"]


def priced(port: int, items: int = 1_000) -> ps.Flow:
    """Items with their prices, and what could not be priced."""
    flow = ps.Flow("prices")
    orders = flow.source("orders", ps.items(range(items), "item bigint"))
    found = orders.map_async(
        "price", Lookup(port), "item bigint, price double", concurrency=50, timeout="5s", retries=2, backoff="10ms"
    )
    found.aggregate("all", items="count(*)", total="sum(price)").sink("totals", ps.console())
    flow.dead_letters("dead", ps.callback(lambda rows, batch: print(*(f"no price: {r.cause}" for r in rows))))
    return flow


if __name__ == "__main__":
    server = Server(("127.0.0.1", 0), Prices)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    ps.run(priced(server.server_port), batch=True)
    server.shutdown()
