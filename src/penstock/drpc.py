"""Calls of functions that a flow serves: by HTTP from anywhere, or through the log on its machine.

>>> from penstock import drpc
>>> drpc.Client("http://127.0.0.1:3774").url
'http://127.0.0.1:3774'
"""

from __future__ import annotations

import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Self
from urllib.parse import quote

from penstock.errors import CallError
from penstock.graph.endpoints.log import log_path

__all__ = ["CallError", "Client", "LogClient"]


class Client:
    """Calls functions of a server, which `penstock drpc serve` starts.

    Args:
        url: the address of the server.
        token: what the server asks for, if it does.
        timeout: how long to wait for an answer, in seconds.

    Raises:
        ValueError: the address is none of HTTP.

    >>> Client("http://127.0.0.1:3774", timeout=10).timeout
    10
    """

    def __init__(self, url: str = "http://127.0.0.1:3774", *, token: str = "", timeout: float = 600.0) -> None:
        if not url.startswith(("http://", "https://")):
            raise ValueError(f"expected an address such as http://127.0.0.1:3774, got {url!r}")
        self.url, self.timeout = url.rstrip("/"), timeout
        self._token = token

    def execute(self, function: str, args: str = "") -> str:
        """Calls a function and waits for its answer.

        Args:
            function: its name.
            args: its arguments.

        Returns:
            The answer.

        Raises:
            CallError: the call failed or was not taken, or the server cannot be reached.
        """
        headers = {"Authorization": f"Bearer {self._token}"} if self._token else {}
        try:
            request = urllib.request.Request(
                f"{self.url}/drpc/{quote(function, safe='')}", args.encode(), headers, method="POST"
            )
            with urllib.request.urlopen(request, timeout=self.timeout) as answer:
                return str(answer.read().decode())
        except urllib.error.HTTPError as error:
            raise CallError(error.read().decode(errors="replace") or f"status {error.code}") from None
        except UnicodeEncodeError:
            raise CallError("expected a function and arguments as text, got half of a character") from None
        except (OSError, ValueError, HTTPException) as error:
            raise CallError(f"no answer from {self.url}: {error}") from None


class LogClient:
    """Calls functions through the log of this machine, without a server.

    Args:
        path: the directory of the log; else `PENSTOCK_LOG`, or .penstock/log.
        timeout: how long to wait for an answer, in seconds.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder, LogClient(folder, timeout=0.01) as client:
    ...     try:
    ...         client.execute("nobody", "hello")
    ...     except CallError as error:
    ...         print(error)
    function 'nobody' has not answered in 0.01 s; its flow may be stopped, or busy
    """

    def __init__(self, path: str | Path | None = None, *, timeout: float = 600.0) -> None:
        from penstock.bridge.drpc.calls import CallLimits, Calls  # a client of a server loads no log

        self._calls = Calls(log_path(path), CallLimits(timeout=timeout), create=True)

    def execute(self, function: str, args: str = "") -> str:
        """Calls a function and waits for its answer. Several threads may call at a time.

        Args:
            function: its name.
            args: its arguments.

        Returns:
            The answer.

        Raises:
            CallError: the call failed, or took too long.
        """
        return self._calls.call(function, args)

    def close(self) -> None:
        """Ends; calls that wait get an error."""
        self._calls.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
