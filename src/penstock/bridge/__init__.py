"""Bridges: what cannot be asked for again (HTTP, sockets) is put into the log first, and answered when it is on disk."""

from typing import TYPE_CHECKING

from penstock.bridge.limits import Limits
from penstock.bridge.socket import SocketBridge
from penstock.errors import SetupError

if TYPE_CHECKING:
    from penstock.bridge.http import HttpBridge

__all__ = ["HttpBridge", "Limits", "SocketBridge"]


def __getattr__(name: str) -> object:
    """`HttpBridge`, which needs packages of its own, when it is asked for."""
    if name != "HttpBridge":
        raise AttributeError(f"module 'penstock.bridge' has no attribute {name!r}")
    try:
        from penstock.bridge.http import HttpBridge
    except ModuleNotFoundError as error:
        raise SetupError(f"the HTTP bridge needs {error.name}: pip install 'penstock[server]'") from None
    return HttpBridge
