"""Tables as the caller works with them: pandas in, pandas out."""

from typing import Any, Literal

Frames = Literal["pyarrow", "pandas", "polars"]
KINDS: tuple[Frames, ...] = ("pyarrow", "pandas", "polars")


def kind_of(frame: Any) -> Frames:
    """Return which kind of tables somebody works with, by one of theirs; else pyarrow's.

    Examples
    --------
    >>> import pyarrow
    >>> kind_of(pyarrow.table({"a": [1]}))
    'pyarrow'
    """
    import narwhals as nw  # noqa: PLC0415 - keeps the import of likeminds light

    found = nw.from_native(frame, pass_through=True)
    if not isinstance(found, nw.DataFrame | nw.LazyFrame):
        return "pyarrow"
    name = str(found.implementation.name).lower()
    return next((kind for kind in KINDS if kind == name), "pyarrow")


def as_kind(table: Any, kind: Frames) -> Any:
    """Return a pyarrow.Table as a table of another kind."""
    if kind == "pyarrow":
        return table
    import narwhals as nw  # noqa: PLC0415 - keeps the import of likeminds light

    frame = nw.from_native(table)
    return frame.to_pandas() if kind == "pandas" else frame.to_polars()
