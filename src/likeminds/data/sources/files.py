"""Tables in files of CSV, Parquet, Arrow and NumPy, on standard input, and in databases."""

import csv as python_csv
import gzip
import io
import re
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from os import PathLike, fspath
from pathlib import Path
from typing import IO, Any, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from likeminds._util.atomic_files import readable
from likeminds._util.lazy_imports import compute, csv, pa, parquet
from likeminds.data.sources import databases

SOURCES = (
    "a .csv, .parquet, .arrow (.feather), .npy or .npz file, - for CSV on standard input, or a "
    'database and a query: "sqlite:///FILE SELECT ...", "duckdb:///FILE SELECT ...", '
    '"postgresql://HOST/NAME SELECT ..."'
)

# Returns, for the names of all columns, those that hold texts even if they look like numbers.
Texts = Callable[[Sequence[str]], Collection[str]]

CsvSource: TypeAlias = str | PathLike[str] | bytes  # a path, or the content of a pipe

# Words that mean a missing value if they are not in quotes.
MISSING = frozenset(
    {
        *("", "NA", "N/A", "n/a", "#NA", "#N/A", "#N/A N/A", "NULL", "null"),
        *("NaN", "nan", "-NaN", "-nan", "1.#IND", "-1.#IND", "1.#QNAN", "-1.#QNAN"),
    }
)
# A line must fit into a block: of the reader's default size, or at most the largest.
_BLOCK, _LARGEST_BLOCK = 1 << 20, (1 << 31) - 1
# Files from this size on, in bytes, are read batch by batch.
_LARGE = 1 << 26
# From this many columns on, inferring their types takes most of the time.
_WIDE = 1000
# A scheme, or the space before a query.
_PERHAPS_ADDRESS = re.compile(r"^\w[\w+.-]+:|\s")
# Texts that can only be numbers with decimals.
_DECIMAL = re.compile(r"[+-]?\d+\.\d+(?:[eE][+-]?\d+)?")


def read_csv(source: CsvSource | IO[bytes], texts: Texts = lambda _: ()) -> Any:
    """Read CSV with a header, from a path or a binary file.

    The row index of pandas, a column without a name, is left out. If it holds texts, it is read as
    the column index. Empty cells, NA, null and the like are missing, unless they are in quotes.
    """
    content = source if isinstance(source, str | PathLike | bytes) else source.read()
    return read_with(lambda name: _read_csv(name, texts), content)


def _read_csv(source: CsvSource, texts: Texts) -> Any:
    header, first, block_size = _first_lines(source)
    types = dict.fromkeys(texts(header), pa.string())
    pairs = zip(header, first, strict=False) if len(header) >= _WIDE else ()
    likely = [name for name, value in pairs if _DECIMAL.fullmatch(value)]
    options = csv.ReadOptions(block_size=block_size, use_threads=not likely)
    guessed = dict.fromkeys(likely, pa.float64()) | types
    while True:
        try:
            table = _parse(source, options, guessed)
            break
        except pa.ArrowInvalid as error:
            if "straddl" in str(error) and options.block_size < _LARGEST_BLOCK:
                options.block_size = min(8 * options.block_size, _LARGEST_BLOCK)
            elif len(guessed) > len(types):  # a column of numbers has texts further down
                guessed = types
            else:
                _refuse_other_encodings(source)
                raise
    if any(pa.types.is_binary(field.type) for field in table.schema):
        _refuse_other_encodings(source)
    return _numbers_with_gaps(table, types)


def _parse(source: CsvSource, options: "csv.ReadOptions", types: Mapping[str, Any]) -> Any:
    how = options, csv.ParseOptions(newlines_in_values=True), _convert(types)

    def file() -> Any:
        return pa.BufferReader(source) if isinstance(source, bytes) else source

    size = len(source) if isinstance(source, bytes) else Path(source).stat().st_size
    if size >= _LARGE:
        # Batch by batch, as the reader of whole files holds all of their bytes besides the table.
        # The first batch decides the types; if a later one differs, the whole file is read.
        with suppress(pa.ArrowInvalid), csv.open_csv(file(), *how) as batches:
            return batches.read_all()
    return csv.read_csv(file(), *how)


def _first_lines(source: CsvSource) -> tuple[list[str], list[str], int]:
    """Return the names of the columns, the first row, and a size of blocks that fits these."""
    with _open(source) as file:
        raw = file.readline()
        while raw and not raw.strip():
            raw = file.readline()
        while raw.count(b'"') % 2 and (more := file.readline()):
            raw += more
        row = file.readline()
    block_size = min(max(_BLOCK, 8 * len(raw), 8 * len(row)), _LARGEST_BLOCK)
    return _fields(raw, source), _fields(row, source), block_size


def _fields(line: bytes, source: CsvSource) -> list[str]:
    try:
        text = line.decode("utf-8-sig")
    except UnicodeDecodeError:
        _refuse_other_encodings(source)
        raise
    try:
        return next(python_csv.reader(io.StringIO(text, newline="")), [])
    except python_csv.Error:  # longer than Python reads
        return []


def _open(source: CsvSource) -> IO[bytes]:
    if isinstance(source, bytes):
        return io.BytesIO(source)
    if fspath(source).lower().endswith(".gz"):
        return cast("IO[bytes]", gzip.open(source))
    return Path(source).open("rb")


def _refuse_other_encodings(source: CsvSource) -> None:
    """Raise ValueError with the place of the first byte that is not UTF-8."""
    name = _name_of(source)
    with _open(source) as file:
        before = 0
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError as error:
                wide = number == 1 and line.startswith((b"\xff\xfe", b"\xfe\xff"))
                encoding = "UTF-16" if wide else "LATIN1"
                raise ValueError(
                    f"{name} is not encoded as UTF-8: see byte 0x{line[error.start]:02x} in line "
                    f"{number} (byte {before + error.start + 1} of the file). Convert it first, "
                    f"for instance: iconv -f {encoding} -t UTF-8 {name} > utf8.csv"
                ) from None
            before += len(line)


def _numbers_with_gaps(table: "pa.Table", texts: Collection[str]) -> Any:
    """Convert columns of numbers that were read as texts because of missing values in quotes."""
    missing = pa.array(sorted(MISSING))
    for place, field in enumerate(table.schema):
        if field.name in texts or not pa.types.is_string(field.type):
            continue
        gaps = compute.is_in(table.column(place), value_set=missing)
        present = table.column(place).drop_null()
        if not compute.any(gaps).as_py() or compute.all(compute.is_in(present, missing)).as_py():
            continue
        try:
            numbers = compute.if_else(gaps, None, table.column(place)).cast(pa.float64())
        except pa.ArrowInvalid:
            continue
        table = table.set_column(place, field.name, numbers)
    return table


def csv_batches(path: str | PathLike[str], types: Mapping[str, Any]) -> Any:
    """Open a CSV file to be read in batches; the first one decides the types not in ``types``."""
    options = csv.ReadOptions(block_size=_first_lines(path)[2])
    return csv.open_csv(path, options, csv.ParseOptions(newlines_in_values=True), _convert(types))


def csv_shape(path: str | PathLike[str], texts: Texts = lambda _: ()) -> tuple[dict[str, Any], int]:
    """Return the types of the columns of a CSV file, and its number of rows."""
    header, _, _ = _first_lines(path)
    types = dict.fromkeys(texts(header), pa.string())
    while True:
        try:
            with csv_batches(path, types) as found:
                schema = found.schema
                n_rows = sum(len(batch) for batch in found)
            return {field.name: field.type for field in schema if field.name}, n_rows
        except pa.ArrowInvalid:
            # A column that begins with whole numbers may have decimals further down.
            with csv_batches(path, types) as found:
                more = [field.name for field in found.schema if pa.types.is_integer(field.type)]
            if not more:
                raise
            types |= dict.fromkeys(more, pa.float64())


def _convert(types: Mapping[str, Any]) -> Any:
    return csv.ConvertOptions(
        column_types=types,
        null_values=sorted(MISSING),
        strings_can_be_null=True,
        quoted_strings_can_be_null=False,
    )


def read_parquet(path: str | PathLike[str]) -> Any:
    """Read a Parquet file; pandas' row index is left out."""

    def read(name: str) -> Any:
        if Path(name).is_dir():
            for part in Path(name).rglob("*"):
                readable(part)
            return parquet.read_table(name)
        # The reader of data sets takes several times the memory for 10,000 columns.
        with parquet.ParquetFile(name, pre_buffer=False) as file:
            return file.read(use_threads=file.metadata.num_columns < _WIDE)

    return read_with(read, path)


def read_arrow(path: str | PathLike[str]) -> Any:
    """Read an Arrow file (also called Feather or IPC), or a stream of Arrow batches in a file."""

    def read(name: str) -> Any:
        with pa.memory_map(name) as file:
            try:
                return pa.ipc.open_file(file).read_all()
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_stream(file).read_all()

    return read_with(read, path)


def give_back() -> None:
    """Return freed memory to the system; pyarrow's pool would keep it."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:
        pyarrow.default_memory_pool().release_unused()


def read_with(reader: Callable[[Any], Any], source: CsvSource) -> Any:
    """Call a reader; its errors become a ValueError with the name of the file."""
    name = _name_of(source)
    if not isinstance(source, bytes):
        readable(source)
    try:
        table = reader(source if isinstance(source, bytes) else name)
    except (pa.ArrowException, OSError, EOFError) as error:
        raise ValueError(f"{name} could not be read: {error}") from error
    give_back()
    # The row index that pandas writes would otherwise become a feature.
    index = [c for c in table.column_names if c == "" or c.startswith("__index_level_")]
    names = ["index" if c in index else c for c in table.column_names]
    if len(index) == 1 and names.count("index") == 1 and pa.types.is_string(table[index[0]].type):
        return table.rename_columns(names)  # rows with names
    return table.drop_columns(index)


def _name_of(source: CsvSource) -> str:
    return "standard input" if isinstance(source, bytes) else fspath(source)


def read_numpy(path: str | Path) -> Any:
    """Read an array or an archive of arrays of one length.

    An array is a matrix of features, or a structured array. A matrix becomes the columns x0, x1,
    ..., and the column ``item`` has its row numbers. In an archive, vectors are columns, and
    matrices several columns.
    """
    array = load_numpy(path)
    if not isinstance(array, np.ndarray):
        with array:
            try:
                return as_table({name: array[name] for name in array.files}, path)
            except ValueError as error:
                if "pickle" not in str(error):
                    raise
                raise ValueError(
                    f"{path} holds pickled objects, which are never read. Save texts as arrays of "
                    'text: array.astype("U").'
                ) from error
    if array.dtype.names:
        return pa.table({name: pa.array(array[name]) for name in array.dtype.names})
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} holds an array of {array.dtype} of shape {array.shape}. Save a matrix of "
            "numbers, one row per item, or a structured array with named columns."
        )
    return as_table({"item": np.arange(len(array)), "x": array}, path)


def as_table(arrays: Mapping[str, NDArray[Any]], where: object) -> Any:
    """Put arrays side by side: a matrix called ``x`` becomes the columns x0, x1, ..."""
    columns = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = pa.array(array.tolist() if array.dtype.kind in "US" else array)
        elif array.ndim == 2:
            columns |= {f"{name}{k}": pa.array(array[:, k]) for k in range(array.shape[1])}
        else:
            raise ValueError(
                f"{where}: {name} has shape {array.shape}, but must be a vector or a matrix."
            )
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"{where}: all arrays must have the same length, but {found}.")
    return pa.table(columns)


def load_numpy(path: str | Path) -> Any:
    """Load an array or an archive of arrays; pickled objects are never read."""
    file = readable(path)
    try:
        return np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as a NumPy file: {error}") from error


# How each kind of file that knows types is read, by the ending of its name.
_READERS: dict[str, Callable[[Any], Any]] = {
    ".parquet": read_parquet,
    ".pq": read_parquet,
    ".arrow": read_arrow,
    ".feather": read_arrow,
    ".ipc": read_arrow,
    ".npy": read_numpy,
    ".npz": read_numpy,
}


def read_table(source: str | PathLike[str], texts: Texts = lambda _: ()) -> Any:
    """Read a table as a pyarrow.Table.

    Columns of lists of numbers of the same length (such as embeddings) become one column for each
    number.

    Parameters
    ----------
    source : str or path
        The name of a file (CSV, Parquet, Arrow, NPY, NPZ, by its ending), or ``-`` for CSV on
        standard input. Or the address of a database, a space, and a read-only query:
        ``"sqlite:///crowd.db SELECT person, item, label FROM labels"``. DuckDB and PostgreSQL need
        extras.
    texts : callable, optional
        For CSV: a function of the names of all columns, which returns those that hold texts even
        if they look like numbers.

    Returns
    -------
    pyarrow.Table
    """
    name = fspath(source)
    if name == "-":
        if sys.stdin is None or getattr(sys.stdin, "closed", False):
            raise ValueError("Standard input is closed, so it cannot be read. Name a file.")
        return read_csv(sys.stdin.buffer, texts)
    found = databases.read_query(name) if _PERHAPS_ADDRESS.search(name) else None
    if found is not None:
        return spread(found)
    if name.lower().endswith((".csv", ".csv.gz")):
        return read_csv(name, texts)
    for ending, reader in _READERS.items():
        if name.lower().endswith(ending):
            return spread(reader(name))
    if Path(name).exists() and readable(name).is_dir():
        raise ValueError(
            f"{name} is a folder: name one of its files, or, to learn from a folder of Parquet "
            "or CSV files, add --memory 4GB (AnnotationFolder) or --dask local:2 (Shards)."
        )
    raise ValueError(
        f"{name if name.strip() else repr(name)} is not a table that can be read. Give {SOURCES}."
    )


def spread(table: "pa.Table") -> "pa.Table":
    """Replace each column of lists of numbers by a column for each number."""
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    spreads = [any(is_kind(field.type) for is_kind in kinds) for field in table.schema]
    if not any(spreads):
        return table
    columns: dict[str, Any] = {}
    for field, column, is_list in zip(table.schema, table.columns, spreads, strict=True):
        if not is_list:
            columns[field.name] = column
            continue
        lengths = set(compute.list_value_length(column).to_pylist())
        if len(lengths) > 1 or None in lengths:
            raise ValueError(
                f"Column {field.name!r} holds lists of different lengths. Make all equally long."
            )
        width = lengths.pop() if lengths else 0
        columns |= {f"{field.name}{k}": compute.list_element(column, k) for k in range(width)}
    return pa.table(columns)
