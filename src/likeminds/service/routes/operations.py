"""For those who run the service: is it well, is it ready, what has it done."""

from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.responses import PlainTextResponse

from likeminds.service.access import Calling, Held
from likeminds.service.errors import answer, documented
from likeminds.service.keys import Role
from likeminds.service.schemas import Facts, Refresh

router = APIRouter(tags=["operations"], responses=documented())


@router.get("/health", response_model=Facts)
def health() -> dict[str, Any]:
    """Say that the process answers."""
    return {"status": "ok"}


@router.get("/ready", response_model=Facts, responses=documented())
def ready(held: Held, request: Request) -> Any:
    """Say whether everything works: the model is read, the database answers."""
    if held.is_down:
        return answer(
            503, "The database is away; reading goes on.", request.scope.get("request_id")
        )
    return {"status": "ready", "generation": held.served.generation}


@router.get("/metrics", response_class=PlainTextResponse)
def metrics(held: Held, caller: Calling) -> Response:
    """Return counters for Prometheus, of the worker that answers."""
    caller.may(Role.READ)
    return PlainTextResponse(held.metrics.text(), media_type="text/plain; version=0.0.4")


@router.get("/v1/admin/refresh", response_model=Refresh)
def refreshed(held: Held, caller: Calling, request: Request) -> dict[str, Any]:
    """Say how the last refresh went."""
    caller.may(Role.ADMIN)
    refresher = request.app.state.refresher
    return {
        "running": refresher.is_running,
        "last": refresher.last,
        "generation": held.served.generation,
    }


@router.post("/v1/admin/refresh", status_code=202, response_model=Refresh)
def refresh(held: Held, caller: Calling, request: Request) -> dict[str, Any]:
    """Fold stored labels into the model now; it is swapped when it is done."""
    caller.may(Role.ADMIN)
    refresher = request.app.state.refresher
    refresher.ask()
    return {"running": True, "last": refresher.last, "generation": held.served.generation}
