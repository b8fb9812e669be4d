"""Whether a Redis server answers."""

from __future__ import annotations

from penstock.connectors.preflight import Preflight
from penstock.connectors.redis.wire import Address, driver
from penstock.errors import SetupError


def check_server(asked: Preflight) -> None:
    """The server must answer a ping."""
    errors = driver().RedisError
    address = Address.of(dict(asked.options))
    try:
        address.client().ping()
    except errors as error:
        raise SetupError(
            f"{asked.step!r} needs the Redis at {address.url}, which does not answer: {address.clean(error).strip()}"
        ) from None
