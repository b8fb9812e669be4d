"""A schema registry for tests: the REST interface of the real ones, as far as readers and writers use it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import unquote, urlsplit


@dataclass
class Schemas:
    """What the registry holds, and how often each path was asked for."""

    url: str = ""
    by_id: dict[int, dict[str, Any]] = field(default_factory=dict)
    subjects: dict[str, list[int]] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)

    def add(self, subject: str, body: dict[str, Any]) -> int:
        """The id of a schema; the same one gets the same id."""
        whole = {"schemaType": body.get("schemaType", "AVRO"), "schema": body["schema"]}
        whole["references"] = body.get("references", [])
        number = next((n for n, known in self.by_id.items() if known == whole), 0) or 100 + len(self.by_id)
        self.by_id[number] = whole
        if number not in self.subjects.setdefault(subject, []):
            self.subjects[subject].append(number)
        return number

    def answer(self, method: str, path: str, body: Any) -> tuple[int, dict[str, Any]]:
        """What the registry says."""
        self.asked.append(f"{method} {path}")
        match [method, *[unquote(p) for p in urlsplit(path).path.strip("/").split("/")]]:
            case ["GET", "schemas", "ids", number] if int(number) in self.by_id:
                return 200, self.by_id[int(number)]
            case ["GET", "subjects", subject, "versions", version] if subject in self.subjects:
                return 200, {"subject": subject, **self.by_id[self.subjects[subject][int(version) - 1]]}
            case ["POST", "subjects", subject, "versions"]:
                return 200, {"id": self.add(subject, body)}
        return 404, {"error_code": 40403, "message": "Schema not found"}


@contextmanager
def schema_registry(login: str = "") -> Iterator[Schemas]:
    """A registry on the loopback; `login` is what it wants to see in the Authorization header."""
    schemas = Schemas()

    class Handler(BaseHTTPRequestHandler):
        def _reply(self, method: str) -> None:
            size = int(self.headers.get("Content-Length") or 0)
            body = json.loads(self.rfile.read(size)) if size else None
            right = not login or self.headers.get("Authorization") == login
            code, said = schemas.answer(method, self.path, body) if right else (401, {"message": "Unauthorized"})
            data = json.dumps(said).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def do_GET(self) -> None:
            self._reply("GET")

        def do_POST(self) -> None:
            self._reply("POST")

        def log_message(self, *_: Any) -> None:
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    schemas.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield schemas
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
