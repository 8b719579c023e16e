"""Readers of exports of labelling tools, surveys and data sets with disagreement.

>>> import tempfile
>>> from pathlib import Path
>>> example = '{"_annotator_id": "ann", "_input_hash": 7, "label": "glad", "answer": "accept"}'
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "export.json"
...     _ = path.write_text(f'[{example}, {{"answer": "ignore"}}]')
...     export = read_export("prodigy", path)
>>> export.labels
[('ann', '7', 'glad', True)]
>>> print(export)
1 label
1 record left out, since the annotator ignored it: record 2
"""

from collections.abc import Callable, Mapping
from os import PathLike

from likeminds.data.connectors import labelling_tools, published_data, qualtrics, sawtooth
from likeminds.data.connectors.export_result import Collector, Export, LeftOut

__all__ = ["CONNECTORS", "Export", "LeftOut", "read_export"]

CONNECTORS: Mapping[str, Callable[[str | PathLike[str], Collector], None]] = {
    "label-studio": labelling_tools.read_label_studio,
    "argilla": labelling_tools.read_argilla,
    "prodigy": labelling_tools.read_prodigy,
    "crowd-kit": published_data.read_crowdkit,
    "lewidi": published_data.read_lewidi,
    "polis": published_data.read_polis,
    "preferences": published_data.read_preferences,
    "arena": published_data.read_arena,
    "sawtooth": sawtooth.read_sawtooth,
    "qualtrics": qualtrics.read_qualtrics,
}


def read_export(kind: str, path: str | PathLike[str]) -> Export:
    """Read an export of a labelling or survey tool.

    Parameters
    ----------
    kind : {"label-studio", "argilla", "prodigy", "crowd-kit", "lewidi", "polis", \
"preferences", "arena", "sawtooth", "qualtrics"}
        The tool or data set of the export.
    path : str or path
        The file; for Polis, the folder of the export.
    """
    if kind not in CONNECTORS:
        raise ValueError(f"Exports of {kind!r} are not known; choose {' or '.join(CONNECTORS)}.")
    collector = Collector()
    CONNECTORS[kind](path, collector)
    return collector.export()
