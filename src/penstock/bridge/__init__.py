"""Bridges: what cannot be asked for again (HTTP, sockets) is put into the log first, and answered when it is on disk."""

from penstock.bridge.http import HttpBridge
from penstock.bridge.limits import Limits
from penstock.bridge.socket import SocketBridge

__all__ = ["HttpBridge", "Limits", "SocketBridge"]
