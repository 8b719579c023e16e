"""``likeminds serve`` and ``likeminds keys``: a model as a service, and its API keys."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import likeminds
from likeminds.cli._label_tables import read_texts
from likeminds.cli._models import read_items
from likeminds.cli._options import ItemOptions, Texts, option
from likeminds.cli._output import Output
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds.service.demo_models import Demo
    from likeminds.service.settings import Settings

_LIMITS = "Limits"

State = Annotated[
    Path | None,
    option(
        "The folder for the database and the refreshed model; by default, MODEL.service "
        "next to the model."
    ),
]
Database = Annotated[
    str | None,
    option(
        "The database for labels: sqlite:///FILE or postgresql://USER@HOST/NAME; by default, "
        "a file in the state folder.",
        envvar="LIKEMINDS_DATABASE",
    ),
]


@command(
    "Serve",
    DATA,
    FIT,
    "likeminds serve power.likeminds --features power/features.csv --check",
)
def serve(
    output: Output,
    *,
    model: str | None = typer.Argument(
        help="The model, a file or a folder; with --demo: shoes, electricity or statements.",
        default=None,
    ),
    demo: bool = option("Serve a model of bundled data.", "--demo", default=False),
    items: ItemOptions,
    texts: Texts = None,
    pictures: Path | None = option(
        "A folder with pictures to show, named after the items' ids.", default=None
    ),
    host: str = option("The address to listen on.", default="127.0.0.1"),
    port: int = option("The port to listen on.", min=0, max=65535, default=8000),
    workers: int = option("Processes, which share the model's memory.", min=1, max=64, default=1),
    state: State = None,
    database: Database = None,
    check: bool = option(
        "Check the model and the database, without serving.", "--check", default=False
    ),
    visitors: bool = option(
        "Let visitors without a key see aggregate results and label items.",
        "--visitors",
        default=False,
    ),
    refresh: float = option(
        "Seconds between refreshes of the model; 0 for no refreshes.", min=0, default=60.0
    ),
    origin: list[str] | None = option(
        "Another site whose pages may call the service; may be repeated.", default=None
    ),
    rate: float = option(
        "Requests per second of each caller and worker; 0 for no limit.",
        panel=_LIMITS,
        min=0,
        default=50.0,
    ),
    timeout: float = option(
        "The time limit of a request, in seconds.", panel=_LIMITS, min=0.1, default=10.0
    ),
    batch: int = option(
        "The largest number of entries in a batch.", panel=_LIMITS, min=1, default=1000
    ),
) -> None:
    """Serve a model over HTTP, with a page on which visitors label items and see their ranking.

    Without API keys, it accepts local requests only, with full access.
    """
    from likeminds._util.lazy_imports import require
    from likeminds.service.settings import Settings, is_loopback
    from likeminds.service.startup import listen, require_keys, run

    require("fastapi", "The service", "serve")
    require("uvicorn", "The service", "serve")
    from likeminds.service.app_state import AppState

    what = _what(output, model, demo=demo, state=state)
    what.state.mkdir(parents=True, exist_ok=True)
    _prepare(output, what, items, texts)
    shown = pictures or items.images or what.pictures
    settings = Settings(
        model=str(what.model),
        state=str(what.state),
        database=_database(what.state, database),
        pictures=None if shown is None else str(shown),
        visitors=visitors,
        refresh_every=refresh,
        rate=rate,
        burst=4 * rate,
        most_batch=batch,
        seconds=timeout,
        origins=tuple(origin or ()),
        title=what.title,
        local=is_loopback(host),
    )
    require_keys(host, settings.database, visitors=visitors)
    AppState(settings).close()  # raises for unsuitable models before any worker starts
    if check:
        _greet(output, settings, host, port)
        return
    listening = listen(host, port)
    _greet(output, settings, host, listening.getsockname()[1])
    run(settings, listening, workers)


@command(
    "Serve",
    DATA,
    FIT,
    "likeminds keys power.likeminds --add read --owner gateway",
    "likeminds keys power.likeminds",
)
def keys(
    output: Output,
    *,
    model: Path = typer.Argument(help="The model that is served."),
    add: str | None = option("Make a key: read, write or admin.", default=None),
    owner: str = option("The owner of the key, for the list.", default=""),
    revoke: str | None = option("Revoke a key, by its id.", default=None),
    state: State = None,
    database: Database = None,
) -> None:
    """List, make or revoke API keys of a service. A key is shown once; only its hash is stored."""
    from likeminds.service.store import add_key, open_store

    folder = _state_of(model, state)
    folder.mkdir(parents=True, exist_ok=True)
    address = _database(folder, database)
    if add is not None:
        secret = add_key(address, owner, add)
        output.json({"key": secret, "role": add, "name": owner})
        output.show(f": the key of role {add}; it is not shown again", head=secret)
        return
    store = open_store(address)
    try:
        if revoke is not None and not store.drop_key(revoke):
            raise ValueError(f"There is no key {revoke!r}. likeminds keys MODEL lists the keys.")
        rows = [{"id": one.key_id, "name": one.name, "role": one.role} for one in store.api_keys()]
    finally:
        store.close()
    output.json({"keys": rows})
    if rows:
        output.table("Keys", rows)
    else:
        output.show("There are no keys.")


def _what(output: Output, model: str | None, *, demo: bool, state: Path | None) -> "Demo":
    from likeminds.service.demo_models import Demo, make_demo
    from likeminds.storage.models import has_main

    if demo:
        return make_demo(model or "shoes", state, output.note)
    if model is None:
        raise ValueError("There is no model to serve. Give one, or --demo.")
    path = Path(model)
    if not (path.is_file() or has_main(path)):
        raise FileNotFoundError(f"There is no model at {path}. Check the name and the folder.")
    pictures = path.with_suffix(".pictures")
    return Demo(path, _state_of(path, state), pictures if pictures.is_dir() else None, path.stem)


def _state_of(model: Path, state: Path | None) -> Path:
    return model.with_suffix(".service") if state is None else state


def _database(state: Path, address: str | None) -> str:
    return address or f"sqlite:///{(state / 'service.db').resolve()}"


def _prepare(output: Output, what: "Demo", items: ItemOptions, texts: str | None) -> None:
    """Write items and texts that are not in the model to files for the workers."""
    if items.features is None and items.images is None and texts is None:
        return
    from likeminds.service.catalogue import write_catalogue, write_texts

    called: dict[Any, str] = {} if texts is None else read_texts(texts)
    folder = what.state / "items"
    if items.features is None and items.images is None:
        write_texts(folder, called)
        return
    shown = read_items(output, items, likeminds.load(what.model))
    write_catalogue(folder, shown.ids, shown.features, shown.names | called)


def _greet(output: Output, settings: "Settings", host: str, port: int) -> None:
    from likeminds.service.store import open_store

    store = open_store(settings.database)
    try:
        n_keys = len(store.api_keys())
    finally:
        store.close()
    who = "visitors may label items" if settings.visitors else f"{n_keys} keys"
    if not n_keys and not settings.visitors:
        who = "No API keys: only local requests are accepted, with full access"
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    output.json({"address": address, "model": settings.model, "database": "ready"})
    output.show(f": {settings.title}; {who}. Ctrl-C ends it.", head=address)
