"""Sources and targets of tables: files, arrays, databases, standard input and output.

>>> import tempfile
>>> from pathlib import Path
>>> import pyarrow
>>> with tempfile.TemporaryDirectory() as folder:
...     path = write_table(pyarrow.table({"item": ["cat"], "size": [2.5]}), Path(folder) / "a.csv")
...     read_table(path).to_pylist()
[{'item': 'cat', 'size': 2.5}]
"""

from likeminds.data.sources.files import (
    SOURCES,
    Texts,
    give_back,
    read_csv,
    read_parquet,
    read_table,
)
from likeminds.data.sources.writing import as_written, write_table

__all__ = [
    "SOURCES",
    "Texts",
    "as_written",
    "give_back",
    "read_csv",
    "read_parquet",
    "read_table",
    "write_table",
]
