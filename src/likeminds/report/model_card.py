"""A model card: README with metadata, as places that share models read it."""

import json
from collections.abc import Mapping
from typing import Any

from likeminds._util.text_format import counted

_TAGS = ("likeminds", "ranking", "annotation", "disagreement", "crowdsourcing")


def model_card(
    card: Mapping[str, Any], name: str, *, file: str, license_name: str | None = None
) -> str:
    """Return a model's card as Markdown, with metadata in YAML at its head.

    Parameters
    ----------
    card : mapping
        What `likeminds.read_card` says about the model.
    name : str
        What the model is called.
    file : str
        The name of its file.
    license_name : str, optional
        Under which licence it may be used; without one, the card says that nobody said so.

    Examples
    --------
    >>> known = {"ranker": "HierarchicalRanker", "people": 3, "labels": 9, "features": ["size"],
    ...     "version": "0.1.0", "scores": {}, "parameters": {}, "takes_updates": False,
    ...     "attributes": None, "label_reading": None, "fingerprint": None}
    >>> print(model_card(known, "Shoes", file="shoes.likeminds").splitlines()[1])
    library_name: likeminds
    """
    parts = [_metadata(card, name, license_name), f"# {name}", _lead(card), _use(file, card)]
    parts += [_facts(card), _scores(card["scores"]), _limits(card)]
    return "\n\n".join(part for part in parts if part) + "\n"


def _metadata(card: Mapping[str, Any], name: str, license_name: str | None) -> str:
    lines = ["---", "library_name: likeminds"]
    if license_name is not None:
        lines.append(f"license: {json.dumps(license_name)}")
    lines += ["tags:", *(f"- {tag}" for tag in _TAGS)]
    measured = {k: v for k, v in (card["scores"] or {}).items() if _is_measure(k)}
    if measured:
        # Texts in JSON are texts in YAML, whatever they hold.
        lines += ["model-index:", f"- name: {json.dumps(name)}", "  results:"]
        lines += ["  - task:", "      type: ranking", "    dataset:"]
        lines += [f"      name: {json.dumps('held-out labels')}", "      type: private"]
        lines += ["    metrics:"]
        for measure, value in measured.items():
            lines += [f"    - type: {json.dumps(measure)}", f"      value: {json.dumps(value)}"]
    return "\n".join([*lines, "---"])


def _is_measure(name: str) -> bool:
    return name.split(" ", maxsplit=1)[0] in {"auc", "accuracy", "concordance"}


def _lead(card: Mapping[str, Any]) -> str:
    people = counted(card["people"], "person", "people")
    about = ""
    if card["attributes"]:
        about = f" about {', '.join(card['attributes'])}"
    labels = "" if card.get("labels") is None else f" from {counted(card['labels'], 'label')}"
    if card.get("choices"):
        labels = f" from {counted(card['choices'], 'choice')}"
    return (
        f"A {card['ranker']} of likeminds: one ranking "
        f"function for each of {people}{about}, learned{labels}. Each is the sum of what all agree "
        "on, what a school of thought wants differently, and what is somebody's own."
    )


def _use(file: str, card: Mapping[str, Any]) -> str:
    asked = "rankers_[attribute]." if card["attributes"] else ""
    lines = [
        "```python",
        "import likeminds",
        f"model = likeminds.load({json.dumps(file)})",
        f"model.{asked}rank(person, items)       # items: a mapping from item to features",
        f"model.{asked}newcomer(X, y)            # somebody new, from a few labels",
        "```",
    ]
    return "## Use\n\n" + "\n".join(lines)


def _facts(card: Mapping[str, Any]) -> str:
    features = card["features"]
    shown = ", ".join(f"`{name}`" for name in features[:20])
    more = f" and {len(features) - 20:,} more" if len(features) > 20 else ""
    rows = [
        ("people", f"{card['people']:,}"),
        ("features", f"{shown}{more}" if features else "none: items are known by their ids"),
        ("labels in the file", "yes" if card["takes_updates"] else "no"),
        ("written by", f"likeminds {card['version']}"),
    ]
    if card.get("labels") is not None:
        rows.insert(1, ("labels", f"{card['labels']:,}"))
    if card.get("fingerprint"):
        rows.append(("fingerprint of the training data", f"`{card['fingerprint']}`"))
    set_by_hand = {k: v for k, v in card["parameters"].items() if v not in (None, "auto")}
    rows.append(("parameters", f"`{json.dumps(set_by_hand)}`"))
    table = "\n".join(f"| {name} | {value.replace('|', chr(92) + '|')} |" for name, value in rows)
    return f"## What it learned from\n\n| | |\n|---|---|\n{table}"


def _scores(scores: Mapping[str, Any] | None) -> str:
    measured = {k: v for k, v in (scores or {}).items() if _is_measure(k)}
    if not measured:
        return (
            "## Accuracy\n\nNobody held out labels to measure it: `likeminds fit --holdout 0.2` "
            "would put it here."
        )
    rows = [f"| {name} | {value:.3f} |" for name, value in measured.items()]
    share = (scores or {}).get("held_out")
    held = "" if share is None else f" ({share:.0%} of everybody's labels were held out)"
    return f"## Accuracy\n\nMean over people{held}.\n\n| | |\n|---|---|\n" + "\n".join(rows)


def _limits(card: Mapping[str, Any]) -> str:
    kept = (
        "The file holds the labels it was fitted to, by person: share it with those who may read "
        "them."
        if card["takes_updates"]
        else "The file holds no labels, but the ids of people and what was learned about each."
    )
    return (
        f"## Limits\n\n{kept} Rankings are those of the people who gave labels, and say nothing "
        "about others until these give some. Scores order the items of one person; those of two "
        "people are not comparable."
    )
