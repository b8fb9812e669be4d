"""What holds for every route of the API, and how its OpenAPI says so: names of operations, problems, ETags, idempotency keys, streams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from fastapi.routing import APIRoute

from penstock.server.reading import has_head
from penstock.server.tags import TAGGED

NAMES = {
    "submit": "submit_job",
    "upgrade": "upgrade_job",
    "rescale": "rescale_job",
    "savepoint": "take_savepoint",
    "audit": "list_audit",
    "me": "who_am_i",
    "metrics": "read_metrics",
    "health": "read_health",
}
"""The operations whose names are not those of their functions."""
PROBLEM = {
    "type": "object",
    "description": "what went wrong (RFC 9457)",
    "required": ["type", "title", "status", "detail"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string"},
    },
}
JOB = "/jobs/{name}"
"""Its ETag is that of what is wanted: a job is always sent as it is at the moment."""
_PARTS = re.compile(r"\{[^}]+\}|[^{]+")
_CHANGES = ("post", "put", "delete", "patch")
Operation = dict[str, Any]


def operation_id(route: APIRoute) -> str:
    """The name of an operation."""
    return NAMES.get(route.name, route.name)


def describe(app: FastAPI, prefix: str, public: frozenset[tuple[str, str]]) -> None:
    """Has an application describe itself with what holds for all its routes; `public` are those that need no token."""

    def openapi() -> dict[str, Any]:
        if app.openapi_schema is None:
            app.openapi_schema = _described(app, prefix, public)
        return app.openapi_schema

    app.openapi = openapi  # type: ignore[method-assign]  # as FastAPI would have it


def _described(app: FastAPI, prefix: str, public: frozenset[tuple[str, str]]) -> dict[str, Any]:
    found = get_openapi(title=app.title, version=app.version, openapi_version=app.openapi_version, routes=app.routes)
    parts = found.setdefault("components", {})
    schemas = parts.setdefault("schemas", {})
    for name in ("HTTPValidationError", "ValidationError"):
        schemas.pop(name, None)
    schemas["Problem"] = PROBLEM
    parts["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    for method, path, operation in operations(found):
        short = path.removeprefix(prefix)
        is_public = (method.upper(), short) in public
        operation["security"] = [] if is_public else [{"token": []}]
        _describe_answers(operation, short, method)
        for name, about in _headers(method, short, is_public):
            _add_header(operation, name, about)
    return found


def operations(found: dict[str, Any]) -> Iterator[tuple[str, str, Operation]]:
    """Method, path and description of each operation."""
    for path, methods in found["paths"].items():
        for method, operation in methods.items():
            yield method, path, operation


def _describe_answers(operation: Operation, path: str, method: str) -> None:
    answers = operation["responses"]
    answers.pop("422", None)
    problem = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    answers["default"] = {"description": "A problem", "content": problem}
    good = answers.get("200", {})
    if path.startswith("/live/"):
        good["content"] = {"text/event-stream": {}}
    if good and "content" not in good:
        good["content"] = {"text/plain": {"schema": {"type": "string"}}}
    if method == "get" and "application/json" in good.get("content", {}):
        good["headers"] = {"ETag": {"schema": {"type": "string"}}}
        if path != JOB:
            answers["304"] = {"description": "It has not changed"}


def _headers(method: str, path: str, is_public: bool) -> Iterator[tuple[str, str]]:
    if method in _CHANGES and not is_public:
        yield "Idempotency-Key", "the same when a request is sent again: it is then answered as before"
        if "{name}" in path and path.split("/")[1] in TAGGED:
            yield "If-Match", "the ETag of what is changed; 412 when it has changed since"
    elif method == "get" and not path.startswith("/live/") and path != JOB:
        yield "If-None-Match", "the ETag of an answer before; 304 when it is the same"


def _add_header(operation: Operation, name: str, about: str) -> None:
    known = operation.setdefault("parameters", [])
    known[:] = [p for p in known if (p["in"], p["name"].lower()) != ("header", name.lower())]
    known.append({"name": name, "in": "header", "required": False, "description": about, "schema": {"type": "string"}})


def allowed_methods(found: dict[str, Any], path: str) -> list[str]:
    """The methods that a path of the API has; none for a path that it has not.

    >>> allowed_methods({"paths": {"/jobs/{name}": {"get": {}, "delete": {}}}}, "/jobs/count")
    ['DELETE', 'GET', 'HEAD']
    >>> allowed_methods({"paths": {"/jobs/{id}": {"put": {}}, "/jobs/drop": {"post": {}}}}, "/jobs/drop")
    ['POST']
    """
    fitting = [
        (template.count("{"), methods)
        for template, methods in found["paths"].items()
        if _pattern(template).fullmatch(path)
    ]
    fewest = min((many for many, _ in fitting), default=0)
    found_methods = {method.upper() for many, methods in fitting if many == fewest for method in methods}
    return sorted(found_methods | ({"HEAD"} if "GET" in found_methods and has_head(path) else set()))


def _pattern(template: str) -> re.Pattern[str]:
    parts = _PARTS.findall(template)
    return re.compile("".join("[^/]+" if part[0] == "{" else re.escape(part) for part in parts))
