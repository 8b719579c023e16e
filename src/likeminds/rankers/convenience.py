"""What people ask of any ranker: the best items, why, and who and what is alike."""

from typing import Any

from likeminds._util.html import html_page, html_table
from likeminds._util.text_format import counted
from likeminds.rankers import batch_topk, ranking, score_decomposition, similarity


class ConvenienceMixin:
    """The everyday verbs of every ranker, and what it looks like in a notebook."""

    rank = ranking.rank
    rank_everybody = batch_topk.rank_everybody
    explain = score_decomposition.explain
    similar_people = similarity.similar_people
    similar_items = similarity.similar_items

    def _repr_html_inner(self) -> str:
        """Return what was learned, above scikit-learn's diagram of the parameters."""
        diagram = str(super()._repr_html_inner())  # type: ignore[misc]
        return _summary(self) + diagram

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] = _summary(self) + bundle["text/html"]
        return bundle


def _summary(ranker: Any) -> str:
    """Return what a ranker has learned as HTML; nothing of one that is not fitted."""
    people = ranker.learned("users_")
    if people is None:
        return ""
    names = ranker.learned("feature_names_")
    known = ranker.learned("known_items_") or getattr(ranker.learned("crowd_"), "items", None)
    told = {
        "people": len(people),
        "choices": ranker.learned("n_choices_") or None,
        "labels": None if ranker.learned("n_choices_") else ranker.learned("n_labels_"),
        "features": None if names is None else len(names),
        "items known by their ids": None if known is None else len(known.ids),
        "features of items that were learned": ranker.learned("n_item_factors_") or None,
        "loss": ranker.learned("loss_"),
        "groups": ranker.learned("n_groups_"),
    }
    rows = [{"learned": name, "": value} for name, value in told.items() if value is not None]
    title = f"{type(ranker).__name__} of {counted(len(people), 'person', 'people')}"
    return html_page(title, html_table(rows))
