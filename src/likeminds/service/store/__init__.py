"""What people have said to the service, in a database: SQLite or PostgreSQL."""

from likeminds.service.store.connections import StoreDownError
from likeminds.service.store.label_store import KeyReusedError, LabelStore, open_store
from likeminds.service.store.schema import Answer, Key, Label, Person, Version

__all__ = [
    "Answer",
    "Key",
    "KeyReusedError",
    "Label",
    "LabelStore",
    "Person",
    "StoreDownError",
    "Version",
    "open_store",
]
