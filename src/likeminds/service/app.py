"""The service as an ASGI application."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.middleware.cors import CORSMiddleware
from fastapi.openapi.utils import get_openapi
from fastapi.staticfiles import StaticFiles
from fastapi.templating import Jinja2Templates

from likeminds._util.map_reduce import one_blas_thread
from likeminds._version import __version__
from likeminds.service.app_state import AppState
from likeminds.service.errors import add_problems
from likeminds.service.middleware import Middleware
from likeminds.service.refit_job import Refresher
from likeminds.service.routes import all_users, operations, recommendations, users
from likeminds.service.settings import Settings

_FOLDER = Path(__file__).parent
_ABOUT = (
    "Personal rankings for people who disagree: a consensus, groups of users who rank alike, and "
    "the preferences of each user."
)


def make_app(settings: Settings, *, watching: bool = True) -> FastAPI:
    """Return the application; with ``watching``, it swaps models and refits in the background."""
    state = AppState(settings)
    refresher = Refresher(state)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        if watching:
            state.start()
            refresher.start()
        with one_blas_thread():  # products are small: threads would wait for each other
            yield
        refresher.close()
        state.close()

    app = FastAPI(
        title="likeminds",
        version=__version__,
        description=_ABOUT,
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/v1/openapi.json",
    )
    app.state.service, app.state.refresher = state, refresher
    add_problems(app)
    for module in (recommendations, users, all_users, operations):
        app.include_router(module.router)
    templates = Jinja2Templates(_FOLDER / "templates")

    async def page(request: Request) -> Response:
        name = request.url.path.strip("/") or "index"
        return templates.TemplateResponse(request, f"{name}.html")

    for path in ("/", "/docs"):
        app.add_route(path, page)
    app.mount("/", StaticFiles(directory=_FOLDER / "page"), name="page")
    app.openapi = lambda: _described(app)  # type: ignore[method-assign]
    if settings.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=list(settings.origins),
            allow_methods=["GET", "POST", "DELETE"],
            allow_headers=["Authorization", "Content-Type", "Idempotency-Key"],
        )
    app.add_middleware(Middleware, state=state)
    return app


def _described(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        app.openapi_schema = get_openapi(
            title=app.title, version=app.version, description=app.description, routes=app.routes
        )
        for path in app.openapi_schema["paths"].values():
            for operation in path.values():
                if "security" in operation:  # a key is optional
                    operation["security"].append({})
    return app.openapi_schema
