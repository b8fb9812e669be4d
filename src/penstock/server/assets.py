"""The files of the console: a page, its scripts and its style, compressed once and sent from memory."""

from __future__ import annotations

import gzip
import hashlib
from dataclasses import dataclass
from functools import lru_cache

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from penstock.server.contract import allowed_methods
from penstock.server.problems import problem
from penstock.web import FOLDER

KINDS = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'"
)
"""What the page may load: its own files, nothing inline, nothing from elsewhere; texts never become code."""


@dataclass(frozen=True)
class Asset:
    """A file as it is sent."""

    kind: str
    content: bytes
    packed: bytes
    tag: str


@lru_cache(maxsize=1)
def assets() -> dict[str, Asset]:
    """All files by their paths; nothing else is ever sent."""
    found = {}
    for file in sorted(FOLDER.rglob("*")):
        if file.is_file() and file.suffix in KINDS:
            content = file.read_bytes()
            tag = hashlib.sha256(content).hexdigest()[:16]
            name = f"/{file.relative_to(FOLDER).as_posix()}"
            found[name] = Asset(KINDS[file.suffix], content, gzip.compress(content, 9, mtime=0), f'"{tag}"')
    return found | {"/": found["/index.html"]}


class ConsoleAssets:
    """Answers for what is not the API."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Sends a file of the console, or says that there is none."""
        request = Request(scope, receive)
        answer = _answer(request) if scope["type"] == "http" else problem(404, "there is nothing here")
        await answer(scope, receive, send)


def _nothing() -> Response:
    return problem(404, "there is nothing here")


def _answer(request: Request) -> Response:
    found = assets().get(request.url.path)
    if request.url.path.startswith("/api/"):
        methods = allowed_methods(request.app.openapi(), request.url.path)
        return problem(405, "this cannot be done here", {"Allow": ", ".join(methods)}) if methods else _nothing()
    if found is None:
        return _nothing()
    if request.method not in ("GET", "HEAD"):
        return problem(405, "files are read", {"Allow": "GET, HEAD"})
    headers = {
        "ETag": found.tag,
        "Cache-Control": "no-cache",
        "Content-Security-Policy": POLICY,
        "Vary": "Accept-Encoding",
    }
    if request.headers.get("if-none-match") == found.tag:
        return Response(status_code=304, headers=headers)
    is_packed = "gzip" in request.headers.get("accept-encoding", "")
    packing = {"Content-Encoding": "gzip"} if is_packed else {}
    return Response(found.packed if is_packed else found.content, headers={**headers, **packing}, media_type=found.kind)
