"""Errors as problem details (RFC 9457): a status, a title, and what is wrong in a sentence."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from penstock.errors import NameTaken, PenstockError, SetupError, UnknownName
from penstock.jobs.manager.store.conditions import ChangedSince

MEDIA_TYPE = "application/problem+json"


class ProblemResponse(JSONResponse):
    """Spells what is no ASCII by its number: a name may have half a character, which no encoding has."""

    media_type = MEDIA_TYPE

    def render(self, content: object) -> bytes:
        """The problem as JSON."""
        return json.dumps(content).encode()


def problem(status: int, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """The answer to a request that cannot be done."""
    found = {"type": "about:blank", "title": HTTPStatus(status).phrase, "status": status, "detail": detail}
    return ProblemResponse(found, status, headers=dict(headers or {}))


def status_of(error: PenstockError) -> int:
    """The status that goes with an error of ours.

    >>> from penstock.errors import OptionError
    >>> status_of(UnknownName("there is no job")), status_of(NameTaken("there is one")), status_of(OptionError("wrong"))
    (404, 409, 422)
    """
    kinds = {UnknownName: 404, NameTaken: 409, ChangedSince: 412, SetupError: 503}
    return next((status for kind, status in kinds.items() if isinstance(error, kind)), 422)


def handle_problems(app: FastAPI) -> None:
    """Has every error of an application answered as a problem."""
    app.add_exception_handler(PenstockError, _ours)
    app.add_exception_handler(HTTPException, _http)
    app.add_exception_handler(RequestValidationError, _invalid)


async def _ours(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, PenstockError)
    return problem(status_of(error), str(error))


async def _http(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, HTTPException)
    return problem(error.status_code, str(error.detail), error.headers)


async def _invalid(request: Request, error: Exception) -> JSONResponse:
    """Says where the request is wrong and what was expected, not what it had: that may be a secret."""
    assert isinstance(error, RequestValidationError)
    found = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
    return problem(422, "; ".join(found))
