"""Requests that the manager sends to others: no proxies of the environment, no redirects, and never to the addresses by which machines of a cloud tell their secrets."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import urllib.request
from typing import Any


def check_address(address: str) -> None:
    """Refuses addresses that are nobody's to be told: link-local ones, those of groups, and none at all.

    >>> check_address("192.0.2.1")
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    inner = getattr(found, "ipv4_mapped", None) or found
    if inner.is_link_local or inner.is_multicast or inner.is_unspecified or inner.is_reserved:
        raise OSError(f"the address {address} is not one to send to")


def connect(address: tuple[str, int], timeout: float | None = None, source: Any = None) -> socket.socket:
    """Connects to the first address of a host that answers. What is checked is what is connected to: the name is looked up once."""
    last: OSError | None = None
    for family, kind, protocol, _, where in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        check_address(str(where[0]))
        made = socket.socket(family, kind, protocol)
        try:
            made.settimeout(timeout)
            made.connect(where)
        except OSError as error:
            made.close()
            last = error
        else:
            return made
    raise last or OSError("the host has no address")


class _Http(http.client.HTTPConnection):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._create_connection = connect


class _Https(http.client.HTTPSConnection):
    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._create_connection = connect


class _HttpHandler(urllib.request.HTTPHandler):
    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Opens a connection that is checked."""
        return self.do_open(_Http, req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Opens a connection that is checked."""
        return self.do_open(_Https, req)


def opener() -> urllib.request.OpenerDirector:
    """What sends requests."""
    made = urllib.request.OpenerDirector()
    for handler in (
        _HttpHandler(),
        _HttpsHandler(),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made
