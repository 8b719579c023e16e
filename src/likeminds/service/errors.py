"""Errors as answers of the API: problem+json (RFC 9457)."""

import logging
from collections.abc import Mapping
from http import HTTPStatus
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
# The status and the detail of an error; None for its own message.
_BY_KIND: dict[type[Exception], tuple[int, str | None]] = {
    UnknownNameError: (404, None),
    NoAttributeError: (422, None),
    UnableError: (409, None),
    KeyReusedError: (409, None),
    StoreDownError: (
        503,
        "The database cannot be reached or written to, so nothing was stored. Rankings by the "
        "model still work.",
    ),
    ModelFileError: (
        503,
        "A file of the model was changed while it is served, and can no longer be read. Save "
        "the model again. Requests that do not need this file still work.",
    ),
}


class Problem(BaseModel):
    """A problem document (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no item 'shoe-1'. Closest: shoe-00001."])
    request_id: str | None = None
    closest: list[str] | None = Field(None, description="The names closest to an unknown one")
    errors: list[dict[str, Any]] | None = Field(None, description="Invalid fields, with reasons")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the possible problems of an operation, for its description in OpenAPI."""
    return {
        status: {"model": Problem, "content": {KIND: {}}}
        for status in sorted({*statuses, 400, 401, 403, 413, 415, 422, 429, 503, 504})
    }


def answer(
    status: int, detail: str, request_id: str | None, *, retry_after: int = 1, **more: Any
) -> JSONResponse:
    """Return a problem as an answer; ``more`` are further fields of `Problem`."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status in {429, 503}:
        headers["Retry-After"] = str(retry_after)
    title = HTTPStatus(status).phrase
    problem = Problem(title=title, status=status, detail=detail, request_id=request_id, **more)
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers, media_type=KIND)


def add_problems(app: FastAPI) -> None:
    """Make the application answer with a problem when the service raises an error."""

    async def problem(request: Request, error: Exception) -> JSONResponse:
        more: dict[str, Any] = {}
        headers: Mapping[str, str] = {}
        if isinstance(error, RequestValidationError):
            status, found = (
                422,
                [
                    {"where": [str(part) for part in one["loc"]], "what": one["msg"]}
                    for one in error.errors()
                ],
            )
            first = f"{'.'.join(found[0]['where'])}: {found[0]['what']}" if found else "no reason"
            detail, more = f"The request is not valid ({first}).", {"errors": found}
        elif isinstance(error, HTTPException):
            status, detail, headers = error.status_code, str(error.detail), error.headers or {}
        else:
            known = (found for kind, found in _BY_KIND.items() if isinstance(error, kind))
            status, sentence = next(known)
            detail = sentence or str(error)
        if isinstance(error, ModelFileError):
            log("model file damaged", logging.ERROR, reason=str(error))
        if isinstance(error, UnknownNameError):
            more = {"closest": error.closest}
        response = answer(status, detail, request.scope.get("request_id"), **more)
        response.headers.update(headers)
        return response

    for kind in (RequestValidationError, HTTPException, *_BY_KIND):
        app.add_exception_handler(kind, problem)
