"""Sentences of a report."""

import numpy as np

from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds.metrics.by_user import MetricByUser
from likeminds.report.facts import ReportFacts
from likeminds.schools.school_names import are_named, leading

_MOST_WISHES = 6
_VERDICTS = (
    ("random", "seems", "seem", "to answer at random"),
    ("reversed", "seems", "seem", "to exchange yes and no"),
    ("constant", "gives", "give", "the same answer whatever the item"),
)


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
        return f"What {users} {'want' if verb.wishes else verb.many()}"
    if schools:
        how = "form" if schools.suggested else "cut into"
        return f"{users} {how} {_in_words(len(schools))} schools of thought on {what}"
    if schools.axes:
        return f"{users} differ gradually on {what}, without separate camps"
    ranked = f"{users} rank alike on {what}, as far as these labels show"
    return f"{ranked}, but differ in threshold" if _severity(facts) else ranked


def numbers(facts: ReportFacts) -> dict[str, str]:
    """Return the few numbers to look at first, by what they are."""
    found = {"people": f"{facts.n_users:,}"}
    if facts.annotations is not None:
        number, _, what = facts.annotations.statements().partition(" ")
        found |= {what: number, "items": f"{facts.n_items:,}"}
    if facts.schools:
        found["schools of thought"] = str(len(facts.schools))
    accuracy = facts.accuracy()
    if accuracy is not None:
        own, shared, _ = accuracy
        found["of held-out pairs in order by own rankings"] = f"{own.mean:.0%}"
        found["of them by the consensus"] = f"{shared.mean:.0%}"
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
        return f"The model is about {users}."
    labels, items = facts.annotations.statements(), counted(facts.n_items, "distinct item")
    if facts.annotations.n_choices:
        return f"{users} made {labels}, on {items}."
    return f"{users} gave {labels} about {items}."


def _schools(facts: ReportFacts) -> list[str]:
    schools = facts.schools
    if schools is None:
        return ["The model has no group level, so it has no schools of thought."]
    # Features without names say nothing in a first paragraph.
    named = any(are_named([name]) for name in schools.feature_names)
    wishes = agreed(facts) if named else ""
    verb = facts.verb
    want = f"want {wishes}" if verb.wishes else verb.many(wishes)
    first = [f"On the whole they {want}."] if wishes else []
    # Ids of pictures say nothing; the pictures themselves come below.
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
    """Return who says yes most and least readily, where that differs by more than chance."""
    severity = None if facts.schools is None else facts.schools.severity
    if severity is None or not severity.differs:
        return []
    return [f"How readily they say yes differs: {severity.spread}."]


def _first_clause(clauses: str, facts: ReportFacts) -> str:
    """Return the first clause: what users do, without what they do not."""
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
        return [f"{sentence}: knowing who it is does not measurably help."]
    better = "helps" if difference.mean > 0 else "hurts"
    return [f"{sentence}: knowing who it is {better}."]


def _unusual(facts: ReportFacts) -> list[str]:
    sentences = []
    for verdict, one, many, how in _VERDICTS:
        found = () if facts.diagnostics is None else facts.diagnostics.of(verdict)
        if len(found):
            users, verb = counted(len(found), "person", "people"), one if len(found) == 1 else many
            sentences.append(f"{users} {verb} {how} ({listing(found)}).")
    if facts.schools is not None and facts.schools.loner.any():
        alone = facts.schools.loners
        verb = "sees" if len(alone) == 1 else "see"
        sentences.append(f"{counted(len(alone), 'person', 'people')} {verb} it their own way.")
    return sentences
