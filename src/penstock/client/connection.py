"""One server and one token: requests that are sent again where that is safe, answers, streams of events, and problems as errors."""

from __future__ import annotations

import json
import random
import ssl
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from email.message import Message
from http.client import HTTPException, HTTPResponse
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote, urlencode

from penstock.errors import PenstockError, SetupError

PREFIX = "/api/v1"
Fields: TypeAlias = Mapping[str, object]
_AGAIN = frozenset({429, 502, 503, 504})
_LONGEST_WAIT = 30.0


class ServerError(PenstockError):
    """The server refused a request: problem details (RFC 9457).

    Attributes:
        status: that of HTTP.
        title: the status in words.
        detail: what is wrong, in a sentence.
        retry_after: the seconds after which it may be tried again, where the server says so.
    """

    def __init__(self, status: int, detail: str, title: str = "", retry_after: float | None = None) -> None:
        super().__init__(detail)
        self.status, self.detail, self.title, self.retry_after = status, detail, title, retry_after


@dataclass(frozen=True)
class ServerEvent:
    """What a stream tells: the name of the event, and its data."""

    event: str
    data: dict[str, Any]


@dataclass(frozen=True)
class Connection:
    """Speaks to one server, with one token.

    Attributes:
        url: the address of the server, such as `http://127.0.0.1:8880`.
        token: the token to show.
        certificate: the certificate of the server, where no authority that this machine knows has signed it.
        seconds: how long to wait for an answer.
        tries: how often a request is sent that the server could not take, or whose answer was lost. Changes carry an idempotency key, so they are
            made once.
    """

    url: str
    token: str = field(repr=False)
    certificate: Path | None = None
    seconds: float = 60.0
    tries: int = 4

    def path_of(self, template: str, **names: str) -> str:
        """The path of a route; names are quoted, so that none leads elsewhere."""
        return template.format(**{name: quote(value, safe="") for name, value in names.items()})

    def ask_json(self, method: str, path: str, **given: Any) -> Any:
        """The answer of a request, which is JSON."""
        try:
            return json.loads(self._read(method, path, **given) or b"{}")
        except ValueError:
            raise self._stranger("JSON") from None

    def ask_text(self, method: str, path: str, **given: Any) -> str:
        """The answer of a request, as text."""
        return self._read(method, path, **given).decode(errors="replace")

    def ask(self, method: str, path: str, **given: Any) -> None:
        """Sends a request whose answer is empty."""
        self._read(method, path, **given)

    def follow(self, method: str, path: str, **given: Any) -> Iterator[ServerEvent]:
        """The events of a stream, as they come, until it ends or is closed."""
        with self._open(self._request(method, path, **given)) as answer:
            event, data = "message", list[str]()
            for raw in answer:
                name, _, value = raw.decode(errors="replace").rstrip("\r\n").partition(":")
                if name == "event":
                    event = value.strip()
                elif name == "data":
                    data.append(value.removeprefix(" "))
                elif not name and not value and data:
                    yield ServerEvent(event, json.loads("\n".join(data)))
                    event, data = "message", []

    def _read(self, method: str, path: str, **given: Any) -> bytes:
        request = self._request(method, path, **given)
        for number in range(1, max(self.tries, 1) + 1):
            try:
                with self._open(request) as answer:
                    content: bytes = answer.read()
                    return content
            except ServerError as error:
                if error.status not in _AGAIN or number >= self.tries:
                    raise
                _wait(number, error.retry_after)
            except _Lost as lost:
                if number >= self.tries:
                    raise lost.error from None
                _wait(number, None)
        raise AssertionError("the last try returns or raises")

    def _request(
        self,
        method: str,
        path: str,
        *,
        query: Fields | None = None,
        header: Mapping[str, str] | None = None,
        body: Fields | None = None,
        content: bytes | None = None,
        kind: str = "application/json",
    ) -> urllib.request.Request:
        asked = {name: value for name, value in (query or {}).items() if value not in (None, "")}
        given = {name: value for name, value in (body or {}).items() if value is not None}
        data = content if body is None else json.dumps(given).encode()
        headers = {name: value for name, value in (header or {}).items() if value}
        if method != "GET":
            headers.setdefault("Idempotency-Key", uuid.uuid4().hex)
        if data is not None:
            headers["Content-Type"] = kind
        address = f"{self.url}{PREFIX}{path}" + (f"?{urlencode(asked)}" if asked else "")
        return urllib.request.Request(
            address, data, {"Authorization": f"Bearer {self.token}", **headers}, method=method
        )

    def _open(self, request: urllib.request.Request) -> HTTPResponse:
        try:
            answer: HTTPResponse = _opener(self.certificate).open(request, timeout=self.seconds)
            return answer
        except urllib.error.HTTPError as error:
            with error:
                raise _problem(error) from None
        except (urllib.error.URLError, OSError, HTTPException) as error:
            reason = getattr(error, "reason", error)
            if isinstance(reason, HTTPException) and not isinstance(reason, ConnectionError):
                raise self._stranger("HTTP") from None
            if isinstance(reason, ssl.SSLCertVerificationError):
                raise self._untrusted(reason.verify_message) from None
            why = (getattr(reason, "strerror", None) or str(reason)).lower()
            failure = SetupError(
                f"the server of jobs at {self.url} does not answer ({why}); start it with `penstock server`"
            )
            if isinstance(reason, ConnectionRefusedError | ssl.SSLError) or not isinstance(reason, OSError):
                raise failure from None
            raise _Lost(failure) from None

    def _untrusted(self, why: str) -> SetupError:
        return SetupError(
            f"the certificate of the server of jobs at {self.url} does not hold: {why}; name the one that signed it "
            f"(SSL_CERT_FILE=FILE, or certificate= of a Client), and the server as the certificate does"
        )

    def _stranger(self, expected: str) -> SetupError:
        return SetupError(f"what answers at {self.url} is no server of jobs: expected {expected}, got something else")


class _Lost(Exception):
    """A connection that ended; the request may be sent again."""

    def __init__(self, error: SetupError) -> None:
        super().__init__(str(error))
        self.error = error


def _wait(number: int, seconds: float | None) -> None:
    """As long as the server says, or longer each time, and not all clients at once."""
    time.sleep(min(_LONGEST_WAIT, seconds if seconds is not None else 0.1 * 2**number * random.uniform(0.5, 1.0)))


def _problem(error: urllib.error.HTTPError) -> ServerError:
    try:
        found = json.loads(error.read())
        return ServerError(error.code, str(found["detail"]), str(found.get("title", "")), _seconds(error.headers))
    except (ValueError, KeyError, TypeError, AttributeError, OSError):
        return ServerError(error.code, f"the server answered {error.code}", "", _seconds(error.headers))


def _seconds(headers: Message) -> float | None:
    text = str(headers.get("Retry-After", ""))
    return float(text) if text.isdecimal() and len(text) < 6 else None


def _opener(certificate: Path | None) -> urllib.request.OpenerDirector:
    """No proxies, no redirects: a token goes to the server that was named."""
    context = ssl.create_default_context(cafile=str(certificate) if certificate else None)
    made = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.HTTPHandler(),
        urllib.request.HTTPSHandler(context=context),
        urllib.request.HTTPDefaultErrorHandler(),
        urllib.request.HTTPErrorProcessor(),
    ):
        made.add_handler(handler)
    return made
