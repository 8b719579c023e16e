"""The facts of a report about one attribute, computed once, and sentences about them."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.checks import listing
from likeminds._util.text_format import Verb, counted, signed
from likeminds.data.annotations import Annotations
from likeminds.diagnostics import Diagnostics, diagnose
from likeminds.metrics.by_user import MetricByUser
from likeminds.metrics.paired import PairedDifference
from likeminds.plots.thumbnails import Images
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.ranker import Ranker
from likeminds.schools import Explanation, Schools
from likeminds.schools.population import Items, as_ranker
from likeminds.schools.school_names import are_named, are_telling, leading

_MOST_WISHES = 6
_VERDICTS = (
    ("random", "seems", "seem", "to answer at random"),
    ("reversed", "seems", "seem", "to exchange yes and no"),
    ("constant", "gives", "give", "the same answer whatever the item"),
)


@dataclass(frozen=True, eq=False)
class ReportFacts:
    """A ranker's explanation, its labels, and the diagnostics, which need labels."""

    explained: Explanation
    annotations: Annotations | None
    diagnostics: Diagnostics | None
    images: Images

    @classmethod
    def gather(
        cls,
        ranker: Ranker,
        annotations: Annotations | None,
        held_out: Annotations | None,
        images: Images,
        *,
        n_schools: int | str,
        judge_users: bool,
        texts: Mapping[Hashable, str] | None = None,
    ) -> "ReportFacts":
        """Explain the ranker, and run the diagnostics if there are labels."""
        if annotations is None:
            annotations = as_ranker(ranker).training_annotations_
        explained = Explanation.of_ranker(ranker, annotations, n_schools, texts)
        diagnostics = None
        if held_out is not None:
            diagnostics = diagnose(ranker, held_out, n_folds=None)
        elif judge_users and annotations is not None:
            diagnostics = diagnose(ranker, annotations)
        return cls(explained, annotations, diagnostics, images)

    @property
    def n_users(self) -> int:
        """The number of users of the ranker."""
        return len(self.ranker.users_)

    @cached_property
    def n_items(self) -> int:
        """The number of distinct items with labels; without ids, by their features."""
        labels = self.annotations
        if labels is None:
            return 0
        items = np.unique(labels.item_codes) if labels.has_items else np.unique(labels.X, axis=0)
        return len(items)

    @property
    def ranker(self) -> Any:
        """The fitted ranker."""
        return self.explained.ranker

    @property
    def verb(self) -> Verb:
        """The words of explanations for a positive label."""
        return self.explained.verb

    @property
    def items(self) -> Items | None:
        """The items, if any."""
        return self.explained.items

    def are_pictures_telling(self, strength: Float) -> bool:
        """Return whether pictures show a difference better than names of features."""
        if self.images is None or self.schools is None:
            return False
        return not are_telling(strength, self.schools.feature_names)

    @cached_property
    def schools(self) -> Schools | None:
        """The schools; None if the ranker has no group level."""
        return self.explained.schools if Capability.LEVELS.of(self.ranker._best_model) else None

    @property
    def cut(self) -> str | None:
        """The highest grade that counts as a no; None if labels are yes or no."""
        reading = None if self.annotations is None else self.annotations.reading
        if reading is None or reading.grades is None or not isinstance(reading.threshold, float):
            return None
        words = reading.grades
        return str(words[int(reading.threshold)]) if words else f"{reading.threshold:g}"

    def accuracy(self) -> tuple[MetricByUser, MetricByUser, PairedDifference] | None:
        """Return the AUCs of own rankings and of the consensus, and their paired difference."""
        found = self.diagnostics
        if found is None or not np.isfinite(found.own_auc).any():
            return None
        own, shared = (MetricByUser(found.users, a) for a in (found.own_auc, found.consensus_auc))
        return own, shared, found.gain


def summary(facts: ReportFacts) -> str:
    """Return the first paragraph of a report."""
    parts = (_counts(facts), *_schools(facts), *_severity(facts), *_accuracy(facts))
    return " ".join([*parts, *_unusual(facts)])


def finding(facts: ReportFacts) -> str:
    """Return the title of a page: the main finding."""
    users = counted(facts.n_users, "person", "people")
    schools, verb = facts.schools, facts.verb
    what = f"what they {'want' if verb.wishes else verb.many()}"
    if schools is None:
        return f"Items that {users} {'want' if verb.wishes else verb.many()}"
    if schools:
        how = "form" if schools.suggested else "cut into"
        return f"{users} {how} {_in_words(len(schools))} schools of thought on {what}"
    if schools.axes:
        return f"{users} differ gradually on {what}, without separate camps"
    ranked = f"{users} rank alike on {what}, as far as these labels show"
    return f"{ranked}, but differ in threshold" if _severity(facts) else ranked


def of_all(facts: Mapping[Hashable, ReportFacts]) -> str:
    """Return the first paragraph of a report about several attributes."""
    counts = {str(name): len(f.schools) for name, f in facts.items() if f.schools is not None}
    divided = [name for name, n_schools in counts.items() if n_schools]
    united = [name for name, n_schools in counts.items() if not n_schools]
    what = f"The model has {counted(len(facts), 'attribute')}."
    if divided:
        what += f" People are divided into schools of thought on {listing(divided)}."
    if united:
        what += f" They form no separate schools on {listing(united)}."
    gains = {
        str(name): found[2].mean for name, f in facts.items() if (found := f.accuracy()) is not None
    }
    if gains:
        most = max(gains, key=lambda name: gains[name])
        what += f" Rankings per user gain most on {most}: {signed(gains[most])} in AUC."
    return what


def numbers(facts: ReportFacts) -> dict[str, str]:
    """Return the most important numbers, by their names."""
    found = {"users": f"{facts.n_users:,}"}
    if facts.annotations is not None:
        number, _, what = facts.annotations.statements().partition(" ")
        found |= {what: number, "items": f"{facts.n_items:,}"}
    if facts.schools:
        found["schools of thought"] = str(len(facts.schools))
    accuracy = facts.accuracy()
    if accuracy is not None:
        own, shared, _ = accuracy
        found["of held-out pairs ordered rightly by own rankings"] = f"{own.mean:.0%}"
        found["by the consensus"] = f"{shared.mean:.0%}"
    return found


def _in_words(number: int) -> str:
    words = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
    return words[number] if number < len(words) else f"{number:,}"


def agreed(facts: ReportFacts) -> str:
    """Return the wishes of the consensus, strongest first."""
    if facts.schools is None:
        return ""
    consensus = facts.explained.consensus
    n_leading = len(leading(np.array([one["strength"] for one in consensus])))
    return ", ".join(one["wish"] for one in consensus[: min(n_leading, _MOST_WISHES)])


def interval(metric: MetricByUser) -> str:
    """Return a mean and its 95 % interval over people."""
    half = 1.96 * metric.standard_error
    return f"{metric.mean:.3f} ({metric.mean - half:.3f} to {min(metric.mean + half, 1):.3f})"


def _counts(facts: ReportFacts) -> str:
    users = counted(facts.n_users, "person", "people")
    if facts.annotations is None:
        return f"The model was fitted to {users}."
    labels, items = facts.annotations.statements(), counted(facts.n_items, "distinct item")
    if facts.annotations.n_choices:
        return f"{users} made {labels}, on {items}."
    return f"{users} gave {labels} about {items}."


def _schools(facts: ReportFacts) -> list[str]:
    schools = facts.schools
    if schools is None:
        return ["The model has no group level, so it has no schools of thought."]
    # Unnamed features are left out of the first paragraph.
    named = any(are_named([name]) for name in schools.feature_names)
    wishes = agreed(facts) if named else ""
    verb = facts.verb
    want = f"want {wishes}" if verb.wishes else verb.many(wishes)
    first = [f"On the whole they {want}."] if wishes else []
    # Ids of pictures are left out; the pictures themselves come below.
    telling = named or (facts.items is not None and facts.images is None)
    if schools:
        how = "They form" if schools.suggested else "As requested, they are cut into"
        sizes = ", ".join(f"{school.share:.0%}" for school in schools)
        sentence = f"{how} {len(schools)} schools of thought ({sizes} of the people)"
        largest = f"; the largest {schools[1].name}" if telling else ""
        return [*first, f"{sentence}{largest}."]
    if not schools.axes:
        return [*first, "Their rankings do not differ as far as these labels show."]
    low, high = (_first_clause(end, facts) for end in (schools.axes[0].low, schools.axes[0].high))
    ends = f", most of all between one end that {low} and one that {high}"
    return [
        *first,
        f"They form no separate schools of thought but differ gradually{ends if telling else ''}.",
    ]


def _severity(facts: ReportFacts) -> list[str]:
    """Describe users' thresholds, if they differ by more than chance."""
    schools = facts.schools
    if schools is None or schools.severity is None or not schools.severity.differs:
        return []
    how = "Their thresholds differ, too" if schools or schools.axes else "Only their thresholds do"
    return [f"{how} (how readily they say yes): {schools.severity.spread}."]


def _first_clause(clauses: str, facts: ReportFacts) -> str:
    """Return the likes of a description, without the dislikes."""
    return clauses.split(f", {facts.verb.one_not().split()[0]} ", maxsplit=1)[0]


def _accuracy(facts: ReportFacts) -> list[str]:
    found = facts.accuracy()
    if found is None:
        return []
    own, shared, difference = found
    sentence = (
        f"A person's own ranking puts {own.mean:.0%} of pairs of held-out labels in the right "
        f"order, the consensus {shared.mean:.0%}"
    )
    if difference.low <= 0 <= difference.high:
        return [f"{sentence}: rankings per user do not measurably help."]
    better = "better" if difference.mean > 0 else "worse"
    return [f"{sentence}: rankings per user are {better}."]


def _unusual(facts: ReportFacts) -> list[str]:
    sentences = []
    for verdict, one, many, how in _VERDICTS:
        found = () if facts.diagnostics is None else facts.diagnostics.of(verdict)
        if len(found):
            users, verb = counted(len(found), "person", "people"), one if len(found) == 1 else many
            sentences.append(f"{users} {verb} {how} ({listing(found)}).")
    if facts.schools is not None and facts.schools.outlier.any():
        alone = facts.schools.outliers
        what = "is an outlier" if len(alone) == 1 else "are outliers"
        sentences.append(
            f"{counted(len(alone), 'person', 'people')} {what}: the personal level is larger than "
            "chance explains."
        )
    return sentences
