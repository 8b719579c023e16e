"""Health, readiness, metrics and refits, for operators."""

from typing import Any

from fastapi import APIRouter, HTTPException, Request, Response
from fastapi.responses import PlainTextResponse

from likeminds.service.errors import documented
from likeminds.service.queries import Calling, State
from likeminds.service.schemas import Facts, Refresh
from likeminds.service.store import Role

router = APIRouter(tags=["operations"], responses=documented())


@router.get("/health", response_model=Facts)
def health() -> dict[str, Any]:
    """Return that the process is running."""
    return {"status": "ok"}


@router.get("/ready", response_model=Facts)
def ready(state: State) -> dict[str, Any]:
    """Return whether the model is read and the database answers."""
    if state.is_down:
        raise HTTPException(503, "The database does not answer. Rankings by the model still work.")
    return {"status": "ready", "generation": state.current.generation}


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(state: State, caller: Calling) -> Response:
    """Return the metrics of the worker that answers, for Prometheus."""
    caller.require(Role.READ)
    return PlainTextResponse(state.metrics.text(), media_type="text/plain; version=0.0.4")


@router.get("/v1/admin/refresh")
def refreshed(state: State, caller: Calling, request: Request) -> Refresh:
    """Return the result of the last refit."""
    caller.require(Role.ADMIN)
    job = request.app.state.refresher
    return Refresh(running=job.is_running, last=job.last, generation=state.current.generation)


@router.post("/v1/admin/refresh", status_code=202)
def refresh(state: State, caller: Calling, request: Request) -> Refresh:
    """Start a refit with all stored labels; the service swaps the model when it is complete."""
    caller.require(Role.ADMIN)
    job = request.app.state.refresher
    job.ask()
    return Refresh(running=True, last=job.last, generation=state.current.generation)
