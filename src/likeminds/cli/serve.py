"""``likeminds serve`` and ``likeminds keys``: a model as a service, and who may use it."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import ItemOptions, Texts
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT

if TYPE_CHECKING:
    from likeminds.service.demo_models import Demo

_LIMITS = "Limits"

State = Annotated[
    Path | None,
    typer.Option(
        help="The folder for the database and the refreshed model; by default MODEL.service "
        "beside the model."
    ),
]
Database = Annotated[
    str | None,
    typer.Option(
        help="Where labels are stored: sqlite:///FILE or postgresql://USER@HOST/NAME; by default "
        "a file in the state folder.",
        envvar="LIKEMINDS_DATABASE",
    ),
]


def add_to(app: typer.Typer) -> None:
    """Add the commands."""
    start = "likeminds serve power.likeminds --features power/features.csv --check"
    command(app, panel="Serve", examples=[DATA, FIT, start])(serve)
    make = "likeminds keys power.likeminds --add read --name gateway"
    command(app, panel="Serve", examples=[DATA, FIT, make, "likeminds keys power.likeminds"])(keys)


def serve(
    talk: Output,
    *,
    model: Annotated[
        str | None,
        typer.Argument(
            help="The model, a file or a folder; with --demo: shoes, electricity or statements."
        ),
    ] = None,
    demo: Annotated[
        bool, typer.Option("--demo", help="Serve a model that is made for it, with its own data.")
    ] = False,
    items: ItemOptions,
    texts: Texts = None,
    pictures: Annotated[
        Path | None,
        typer.Option(help="A folder with pictures to show, named after the items' ids."),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="The port to listen on.")] = 8000,
    workers: Annotated[
        int, typer.Option(min=1, max=64, help="Processes, which share the mapped model.")
    ] = 1,
    state: State = None,
    database: Database = None,
    check: Annotated[
        bool, typer.Option("--check", help="Try out the model and the database, and do not serve.")
    ] = False,
    visitors: Annotated[
        bool,
        typer.Option(
            "--visitors", help="Let people without a key see the crowd and teach it their taste."
        ),
    ] = False,
    refresh: Annotated[
        float, typer.Option(min=0, help="Seconds between refreshes of the model; 0 is never.")
    ] = 60.0,
    origin: Annotated[
        list[str] | None,
        typer.Option(help="Another site whose pages may call the service; may be repeated."),
    ] = None,
    rate: Annotated[
        float,
        typer.Option(
            min=0,
            help="Requests a second of each caller, by worker; 0 is no limit.",
            rich_help_panel=_LIMITS,
        ),
    ] = 50.0,
    seconds: Annotated[
        float, typer.Option(min=0.1, help="Time for a request.", rich_help_panel=_LIMITS)
    ] = 10.0,
    batch: Annotated[
        int, typer.Option(min=1, help="Entries of a batch.", rich_help_panel=_LIMITS)
    ] = 1000,
) -> None:
    """Serve a model over HTTP, with a page on which visitors teach it their taste.

    Without keys, it listens on this machine alone, and whoever is there may do everything.
    """
    from likeminds._util.lazy_imports import require
    from likeminds.service.settings import Settings, is_loopback
    from likeminds.service.startup import require_keys, run

    require("fastapi", "The service", "serve")
    require("uvicorn", "The service", "serve")
    what = _what(talk, model, demo=demo, state=state)
    what.state.mkdir(parents=True, exist_ok=True)
    _prepare(talk, what, items, texts)
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
        seconds=seconds,
        origins=tuple(origin or ()),
        title=what.title,
        local=is_loopback(host),
    )
    require_keys(host, settings.database, visitors=visitors)
    _try_out(settings)
    _greet(talk, settings, host, port)
    if not check:
        run(settings, host, port, workers)


def keys(
    talk: Output,
    *,
    model: Annotated[Path, typer.Argument(help="The model that is served.")],
    add: Annotated[str | None, typer.Option(help="Make a key: read, write or admin.")] = None,
    name: Annotated[str, typer.Option(help="Whose key it is, for the list.")] = "",
    revoke: Annotated[str | None, typer.Option(help="Revoke a key, by its id.")] = None,
    state: State = None,
    database: Database = None,
) -> None:
    """List, make or revoke the keys of a service. A key is shown once; its hash is kept."""
    from likeminds.cli._tables import rich_table
    from likeminds.service.keys import add_key
    from likeminds.service.store import open_store

    folder = _state_of(model, state)
    folder.mkdir(parents=True, exist_ok=True)
    address = _database(folder, database)
    if add is not None:
        secret = add_key(address, name, add)
        talk.result({"key": secret, "role": add, "name": name})
        talk.tell(f": the key of role {add}; it is not shown again", head=secret)
        return
    store = open_store(address)
    try:
        if revoke is not None and not store.drop_key(revoke):
            raise ValueError(f"There is no key {revoke!r}.")
        rows = [{"id": one.key_id, "name": one.name, "role": one.role} for one in store.api_keys()]
    finally:
        store.close()
    talk.result({"keys": rows})
    talk.tell(rich_table("Keys", rows) if rows else "There are no keys.")


def _what(talk: Output, model: str | None, *, demo: bool, state: Path | None) -> "Demo":
    from likeminds.service.demo_models import Demo, make_demo
    from likeminds.storage.folders import has_main

    if demo:
        return make_demo(model or "shoes", state, talk.note)
    if model is None:
        raise ValueError("What is to be served? Give a model, or --demo.")
    path = Path(model)
    if not (path.is_file() or has_main(path)):
        raise FileNotFoundError(f"There is no model at {path}.")
    beside = path.with_suffix(".pictures")
    return Demo(path, _state_of(path, state), beside if beside.is_dir() else None, path.stem)


def _state_of(model: Path, state: Path | None) -> Path:
    return model.with_suffix(".service") if state is None else state


def _database(state: Path, given: str | None) -> str:
    return given or f"sqlite:///{(state / 'service.db').resolve()}"


def _prepare(talk: Output, what: "Demo", items: ItemOptions, texts: str | None) -> None:
    """Leave items and texts that are not in the model where the workers read them."""
    if items.features is None and items.images is None and texts is None:
        return
    from likeminds.cli._id_lookup import read_texts
    from likeminds.cli._items import read_shown
    from likeminds.cli._models import open_model
    from likeminds.service.catalogue import write_catalogue, write_texts

    called: dict[Any, str] = {} if texts is None else read_texts(texts)
    folder = what.state / "items"
    if items.features is None and items.images is None:
        write_texts(folder, called)
        return
    shown = read_shown(talk, items, open_model(what.model))
    write_catalogue(folder, shown.ids, shown.features, shown.names | called)


def _try_out(settings: Any) -> None:
    """Refuse a model that cannot be served before any worker starts."""
    from likeminds.service.app_state import AppState

    AppState(settings).close()


def _greet(talk: Output, settings: Any, host: str, port: int) -> None:
    from likeminds.service.store import open_store

    store = open_store(settings.database)
    try:
        n_keys = len(store.api_keys())
    finally:
        store.close()
    who = "visitors may teach it their taste" if settings.visitors else f"{n_keys} keys"
    if not n_keys and not settings.visitors:
        who = "no keys, so that this machine alone is answered, and may do everything"
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    talk.result({"address": address, "model": settings.model, "database": "ready"})
    talk.tell(f": {settings.title}; {who}. Ctrl-C ends it.", head=address)
