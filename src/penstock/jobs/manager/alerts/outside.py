"""Requests that the manager sends to others: no proxies of the environment, no redirects, no addresses of its own network but those of hosts that were named, and never those by which machines of a cloud tell their secrets."""

from __future__ import annotations

import http.client
import ipaddress
import socket
import urllib.request
from collections.abc import Callable, Collection
from functools import partial
from typing import Any

from penstock.errors import OptionError

IpAddress = ipaddress.IPv4Address | ipaddress.IPv6Address
CLOUDS = frozenset(
    map(ipaddress.ip_address, ("169.254.169.254", "fd00:ec2::254", "100.100.100.200", "192.0.0.192", "168.63.129.16"))
)
"""Where machines of clouds are told their secrets: AWS, Google, Azure; AWS by IPv6; Alibaba; Oracle; Azure."""
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class Inside(OSError):
    """An address is not one to send to."""


def check_address(address: str, *, is_named: bool = False) -> None:
    """Refuses addresses to which nothing may be sent, and those of loopback and of private networks, unless their host `is_named`.

    >>> check_address("1.1.1.1")
    >>> check_address("127.0.0.1", is_named=True)
    """
    for found in _meant(ipaddress.ip_address(address.partition("%")[0])):
        is_nobodys = found.is_link_local or found.is_multicast or found.is_unspecified or found in CLOUDS
        if is_nobodys or (found.is_reserved and not found.is_loopback):
            raise Inside(f"the address {address} is not one to send to")
        if not (found.is_global or is_named):
            raise Inside(f"the address {address} is inside; start the server with --alert-host HOST to send there")


def _meant(address: IpAddress) -> list[IpAddress]:
    """The addresses that one leads to: itself, or the IPv4 address inside it."""
    if isinstance(address, ipaddress.IPv4Address):
        return [address]
    inner = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if address in _NAT64:
        inner.append(ipaddress.IPv4Address(int(address) & 0xFFFF_FFFF))
    return [each for each in inner if each is not None] or [address]


def check_host(host: str, named: Collection[str]) -> None:
    """Refuses a host that is such an address by its spelling, or this machine; a name is looked up when something is sent.

    Raises:
        OptionError: it is one.
    """
    is_here = f".{host.rstrip('.')}".endswith(".localhost")
    try:
        check_address("127.0.0.1" if is_here else host, is_named=host in named)
    except Inside as error:
        raise OptionError(str(error)) from None
    except ValueError:  # a name
        return


def connect(
    is_named: Callable[[str], bool], address: tuple[str, int], timeout: float | None = None, source: Any = None
) -> socket.socket:
    """Connects to the first address of a host that answers. What is checked is what is connected to: the name is looked up once."""
    last: OSError | None = None
    for family, kind, protocol, _, where in socket.getaddrinfo(*address, type=socket.SOCK_STREAM):
        check_address(str(where[0]), is_named=is_named(address[0]))
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
    def __init__(self, is_named: Callable[[str], bool], *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._create_connection = partial(connect, is_named)


class _Https(http.client.HTTPSConnection):
    def __init__(self, is_named: Callable[[str], bool], *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._create_connection = partial(connect, is_named)


class _HttpHandler(urllib.request.HTTPHandler):
    is_named: Callable[[str], bool]

    def http_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Opens a connection that is checked."""
        return self.do_open(partial(_Http, self.is_named), req)


class _HttpsHandler(urllib.request.HTTPSHandler):
    is_named: Callable[[str], bool]

    def https_open(self, req: urllib.request.Request) -> http.client.HTTPResponse:
        """Opens a connection that is checked."""
        return self.do_open(partial(_Https, self.is_named), req)


def opener(is_named: Callable[[str], bool] = lambda host: False) -> urllib.request.OpenerDirector:
    """What sends requests. `is_named` says which hosts may be inside the network of this machine."""
    made = urllib.request.OpenerDirector()
    plain, secure = _HttpHandler(), _HttpsHandler()
    plain.is_named = secure.is_named = is_named
    for handler in (plain, secure, urllib.request.HTTPDefaultErrorHandler(), urllib.request.HTTPErrorProcessor()):
        made.add_handler(handler)
    return made
