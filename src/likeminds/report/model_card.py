"""A model card: a README with metadata, in the format of model hubs."""

import json
from collections.abc import Mapping
from typing import Any

from likeminds._util.checks import listing
from likeminds._util.result_tables import render
from likeminds._util.text_format import counted

_MEASURES = {"auc", "accuracy", "concordance"}


def model_card(
    card: Mapping[str, Any], name: str, *, file: str, license_name: str | None = None
) -> str:
    """Return a model card as Markdown, with metadata in YAML at its head."""
    scores = card["scores"] or {}
    learned_from = ""
    if card.get("choices"):
        learned_from = f" from {counted(card['choices'], 'choice')}"
    elif card.get("labels") is not None:
        learned_from = f" from {counted(card['labels'], 'label')}"
    text = render(
        "model_card.md",
        card=card,
        name=name,
        file=file,
        license_name=license_name,
        users=counted(card["users"], "person", "people"),
        learned_from=learned_from,
        measured={k: v for k, v in scores.items() if k.split(" ", maxsplit=1)[0] in _MEASURES},
        held_out=scores.get("held_out"),
        facts=_facts(card),
        quoted=json.dumps,
    )
    return f"{text}\n"


def _facts(card: Mapping[str, Any]) -> dict[str, str]:
    features = card["features"]
    shown = listing([f"`{name}`" for name in features], 20)
    parameters = {k: v for k, v in card["parameters"].items() if v not in (None, "auto")}
    rows = {
        "users": f"{card['users']:,}",
        "labels": None if card.get("labels") is None else f"{card['labels']:,}",
        "features": shown if features else "none: items have ids only",
        "labels in the file": "yes" if card["takes_updates"] else "no",
        "written by": f"likeminds {card['version']}",
        "fingerprint of the training data": card.get("fingerprint") and f"`{card['fingerprint']}`",
        "parameters": f"`{json.dumps(parameters)}`",
    }
    return {what: value for what, value in rows.items() if value}
