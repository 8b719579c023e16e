"""Errors as answers: problem+json (RFC 9457), one sentence each."""

import logging
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
    """A problem document (RFC 9457)."""

    type: str = "about:blank"
    title: str = Field(examples=["Not Found"])
    status: int = Field(examples=[404])
    detail: str = Field(examples=["There is no item 'shoe-1'. Closest: shoe-00001."])
    request_id: str | None = None
    closest: list[str] | None = Field(None, description="Names that come closest to an unknown one")
    errors: list[dict[str, Any]] | None = Field(None, description="What is not valid, and where")


def documented(*statuses: int) -> dict[int | str, dict[str, Any]]:
    """Return the problems that an operation may answer, for its description."""
    return {
        status: {"model": Problem, "content": {KIND: {}}}
        for status in sorted({*statuses, 400, 401, 403, 413, 415, 422, 429, 503, 504})
    }


def answer(
    status: int,
    detail: str,
    request_id: str | None,
    *,
    retry_after: int = 1,
    closest: list[str] | None = None,
    errors: list[dict[str, Any]] | None = None,
) -> JSONResponse:
    """Return a problem as an answer."""
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    if status in {429, 503}:
        headers["Retry-After"] = str(retry_after)
    problem = Problem(
        title=HTTPStatus(status).phrase,
        status=status,
        detail=detail,
        request_id=request_id,
        closest=closest,
        errors=errors,
    )
    return JSONResponse(problem.model_dump(exclude_none=True), status, headers, media_type=KIND)


def add_problems(app: FastAPI) -> None:
    """Answer the errors of the service as problems."""

    async def by_kind(request: Request, error: Exception) -> JSONResponse:
        status, detail = next(found for kind, found in _BY_KIND.items() if isinstance(error, kind))
        if isinstance(error, ModelFileError):
            log("model file damaged", logging.ERROR, reason=str(error))
        closest = error.closest if isinstance(error, UnknownNameError) else None
        request_id = request.scope.get("request_id")
        return answer(status, detail or str(error), request_id, closest=closest)

    for kind in _BY_KIND:
        app.add_exception_handler(kind, by_kind)

    @app.exception_handler(RequestValidationError)
    async def _(request: Request, error: RequestValidationError) -> JSONResponse:
        found = [
            {"where": [str(part) for part in one["loc"]], "what": one["msg"]}
            for one in error.errors()
        ]
        first = f"{'.'.join(found[0]['where'])}: {found[0]['what']}" if found else "no reason"
        detail, request_id = f"The request is not valid ({first}).", request.scope.get("request_id")
        return answer(422, detail, request_id, errors=found)

    @app.exception_handler(HTTPException)
    async def _(request: Request, error: HTTPException) -> JSONResponse:
        request_id = request.scope.get("request_id")
        response = answer(error.status_code, str(error.detail), request_id)
        response.headers.update(error.headers or {})
        return response
