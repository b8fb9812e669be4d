"""A TCP proxy that breaks a connection at a word, as a network does."""

from __future__ import annotations

import socket
import threading
from types import TracebackType


class Proxy:
    """Passes bytes on, until a client sends `word`, if any: then it cuts, before or after the server has got it."""

    def __init__(self, port: int, word: bytes = b"", *, delivered: bool = False, host: str = "127.0.0.1") -> None:
        self.port, self.word, self.delivered = port, word, delivered
        self.cuts = 0
        self.server = socket.create_server((host, 0))
        self.address: tuple[str, int] = self.server.getsockname()
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.server.accept()
            except OSError:
                return
            upstream = socket.create_connection(("127.0.0.1", self.port))
            threading.Thread(target=self._pass, args=(client, upstream, True), daemon=True).start()
            threading.Thread(target=self._pass, args=(upstream, client, False), daemon=True).start()

    def _pass(self, here: socket.socket, there: socket.socket, to_server: bool) -> None:
        try:
            while data := here.recv(65536):
                if to_server and self.word and not self.cuts and self.word in data.upper():
                    self.cuts += 1
                    if self.delivered:
                        there.sendall(data)
                        there.shutdown(socket.SHUT_WR)
                        threading.Event().wait(0.3)
                    break
                there.sendall(data)
        except OSError:
            pass
        finally:
            for end in (here, there):
                end.close()
