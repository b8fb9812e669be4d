"""A client of the server of jobs: every route of its API as a method, with types, retries and streams of events."""

from penstock.client.client import Client
from penstock.client.connection import ServerError, ServerEvent

__all__ = ["Client", "ServerError", "ServerEvent"]
