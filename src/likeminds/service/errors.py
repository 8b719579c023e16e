"""Errors as answers: problem+json (RFC 9457), one sentence each."""

import logging
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from likeminds.service.catalogue import UnknownNameError
from likeminds.service.database import StoreDownError
from likeminds.service.metrics import log
from likeminds.service.model_generation import NoAttributeError
from likeminds.service.scoring import UnableError
from likeminds.service.store import KeyReusedError
from likeminds.storage.models import ModelFileError

KIND = "application/problem+json"
_TITLES = {
    400: "Bad request",
    401: "No valid key",
    403: "Not allowed",
    404: "Not found",
    405: "Method not allowed",
    409: "Conflict",
    413: "Too large",
    415: "Not JSON",
    422: "Not valid",
    429: "Too many requests",
    500: "Our mistake",
    503: "Not available",
    504: "Took too long",
}
# The status and the sentence of an error; None for the error's own.
_BY_KIND: dict[type[Exception], tuple[int, str | None]] = {
    UnknownNameError: (404, None),
    NoAttributeError: (422, None),
    UnableError: (409, None),
    KeyReusedError: (409, None),
    StoreDownError: (
        503,
        "The database cannot be reached or written to; nothing was stored. Reading what the model "
        "knows goes on.",
    ),
    ModelFileError: (
        503,
        "A file of the model was changed while it is served, and cannot be read any more. Save "
        "the model again; questions that do not need this file are answered.",
    ),
}


class Problem(BaseModel):
    """What went wrong."""

    type: str = "about:blank"
    title: str = Field(examples=["Not found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no item 'shoe-1'. Closest: shoe-00001."])
    request_id: str | None = None
    closest: list[str] | None = Field(None, description="Names that come closest to an unknown one")
    errors: list[dict[str, Any]] | None = Field(None, description="What is not valid, and where")


class ProblemError(Exception):
    """An error that is answered as a problem."""

    def __init__(self, status: int, detail: str) -> None:
        super().__init__(detail)
        self.status = status


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems that an operation may answer, for its description."""
    return {
        status: {"model": Problem, "description": _TITLES[status], "content": {KIND: {}}}
        for status in sorted({*statuses, 400, 401, 403, 413, 415, 422, 429, 503, 504})
    }


def answer(status: int, detail: str, request_id: str | None = None, **more: object) -> JSONResponse:
    """Return a problem as an answer."""
    headers = {}
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    if status in {429, 503}:
        headers["Retry-After"] = str(more.pop("retry_after", 1))
    body = {
        "type": "about:blank",
        "title": _TITLES.get(status, "Error"),
        "status": status,
        "detail": detail,
        "request_id": request_id,
    } | more
    return JSONResponse(body, status, headers, media_type=KIND)


def add_problems(app: FastAPI) -> None:
    """Answer the errors of the service as problems."""

    def respond(request: Request, status: int, detail: str, **more: object) -> JSONResponse:
        return answer(status, detail, request.scope.get("request_id"), **more)

    async def by_kind(request: Request, error: Exception) -> JSONResponse:
        status, detail = next(found for kind, found in _BY_KIND.items() if isinstance(error, kind))
        if isinstance(error, ModelFileError):
            log("model file damaged", logging.ERROR, reason=str(error))
        more = {"closest": error.closest} if isinstance(error, UnknownNameError) else {}
        return respond(request, status, detail or str(error), **more)

    for kind in _BY_KIND:
        app.add_exception_handler(kind, by_kind)

    @app.exception_handler(ProblemError)
    async def _(request: Request, error: ProblemError) -> JSONResponse:
        return respond(request, error.status, str(error))

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError) -> JSONResponse:
        found = [
            {"where": [str(part) for part in one["loc"]], "what": one["msg"]}
            for one in error.errors()
        ]
        first = f"{'.'.join(found[0]['where'])}: {found[0]['what']}" if found else "no reason"
        return respond(request, 422, f"The request is not valid ({first}).", errors=found)

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> JSONResponse:
        response = respond(request, error.status_code, str(error.detail))
        response.headers.update(error.headers or {})
        return response
