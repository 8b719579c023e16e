"""What a fit of labels that are not in memory is asked for."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likeminds.cli._options import ItemOptions, LabelColumns


@dataclass(frozen=True)
class FitRequest:
    """Where labels are, and what is to be learned from them.

    Attributes
    ----------
    source : str or None
        The folder of labels.
    items, columns
        Where items are, and what columns are called.
    ranker, target
        Who learns, and where the model goes.
    learn : callable
        Lets a ranker learn, with a bar that says how far it is.
    refused : mapping
        Options that do not go with it, and what was given for them.
    verb : str or None
        What people who say yes do with items.
    """

    source: str | None
    items: ItemOptions
    columns: LabelColumns
    ranker: Any
    target: Path
    learn: Callable[..., Any]
    refused: Mapping[str, Any]
    verb: str | None

    @property
    def names(self) -> dict[str, str | None]:
        """What columns are called, by their roles."""
        from likeminds.data.column_roles import LABEL_ROLES

        return {role: getattr(self.columns, role) for role in LABEL_ROLES}

    def folder(self, option: str) -> str:
        """Return the folder of labels; refuse what does not go with an option."""
        given = [name for name, value in self.refused.items() if value is not None]
        given += ["--images"] if self.items.images is not None else []
        if given or self.source is None:
            said = f"leave out {', '.join(given)}" if given else "name it with --annotations"
            raise ValueError(f"{option} is for labels in Parquet or CSV files: {said}.")
        return self.source
