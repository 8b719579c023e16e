"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.responses import FileResponse
from fastapi.staticfiles import StaticFiles

from likeminds._util.threads import one_blas_thread
from likeminds._version import __version__
from likeminds.service.access import security_of
from likeminds.service.app_state import AppState
from likeminds.service.errors import add_problems
from likeminds.service.middleware import Middleware
from likeminds.service.refit_job import Refresher
from likeminds.service.routes import operations, population, recommendations, users
from likeminds.service.settings import Settings

_PAGE = Path(__file__).parent / "page"
_ABOUT = (
    "Rankings for people who disagree: what all agree on, what each school of thought wants "
    "differently, and who sees it their own way."
)


def make_app(settings: Settings, *, watching: bool = True) -> FastAPI:
    """Return the service.

    Parameters
    ----------
    settings : Settings
        How it is set up.
    watching : bool
        Whether to look for another model, and for labels to fold in, in the background.
    """
    holder = AppState(settings)
    refresher = Refresher(holder)

    @asynccontextmanager
    async def living(_: FastAPI) -> AsyncIterator[None]:
        if watching:
            holder.start()
            refresher.start()
        with one_blas_thread():  # answers are small products: threads would wait for each other
            yield
        refresher.close()
        holder.close()

    app = FastAPI(
        title="likeminds",
        version=__version__,
        description=_ABOUT,
        lifespan=living,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.holder, app.state.refresher = holder, refresher
    add_problems(app)
    for one in (recommendations, users, population, operations):
        app.include_router(one.router)
    app.add_api_route("/docs", lambda: FileResponse(_PAGE / "docs.html"), include_in_schema=False)
    app.mount("/", StaticFiles(directory=_PAGE, html=True), name="page")
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
    app.add_middleware(Middleware, holder=holder)
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        found = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        app.openapi_schema = security_of(found)
    return app.openapi_schema
