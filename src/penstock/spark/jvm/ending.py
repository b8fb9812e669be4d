"""Keeps pyspark quiet when the JVM goes away under it.

Whoever waits for the JVM gets an error, which becomes a message. Beside that py4j logs where it noticed, and the thread that takes
counts from the JVM ends with an error of its own: two tracebacks that tell nobody anything.
"""

from __future__ import annotations

import logging
import sys
from socketserver import BaseServer
from typing import Any

_GONE = (EOFError, ConnectionError)
"""What a thread gets whose connection the JVM has left."""


def quiet_ending() -> None:
    """Has pyspark's own threads end without a word when the JVM is gone. What else befalls them is shown as before."""
    from pyspark.accumulators import AccumulatorTCPServer, AccumulatorUnixServer

    logging.getLogger().addFilter(_is_news)
    for server in (AccumulatorTCPServer, AccumulatorUnixServer):
        server.handle_error = _handle_error  # type: ignore[assignment, method-assign]  # pyspark makes the server itself


def _is_news(record: logging.LogRecord) -> bool:
    """Whether a record of the root logger is anything but py4j's of a call that it also lets fail."""
    return not record.pathname.endswith("/py4j/java_gateway.py")


def _handle_error(server: BaseServer, request: Any, client_address: Any) -> None:
    if not isinstance(sys.exc_info()[1], _GONE):
        BaseServer.handle_error(server, request, client_address)
