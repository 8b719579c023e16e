"""What people have said to the service, in a database: SQLite or PostgreSQL."""

from likeminds.service.store.databases import StoreDownError
from likeminds.service.store.records import Answer, Key, Label, Person, Version
from likeminds.service.store.store import KeyReusedError, Store, open_store

__all__ = [
    "Answer",
    "Key",
    "KeyReusedError",
    "Label",
    "Person",
    "Store",
    "StoreDownError",
    "Version",
    "open_store",
]
