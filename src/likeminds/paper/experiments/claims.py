"""The paper's claims compared with the results: each verdict is computed from the facts."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import mean
from typing import NamedTuple

from likeminds.paper.experiments.ablation import PERSONAL_STEP, STEPS
from likeminds.paper.experiments.fig3 import (
    BEST,
    CHOSEN,
    FULL_SIZE,
    TRUE_KAPPA,
    describe_flagged,
)
from likeminds.paper.experiments.published import SPEED_UP, TABLE_1, TABLE_1_BASELINES
from likeminds.paper.experiments.report_page import Facts, interval, percent, points
from likeminds.paper.experiments.table3 import describe_leads
from likeminds.paper.experiments.trials import OURS

HOLDS, IN_PART, FAILS = "holds", "holds in part", "does not hold"
OPEN = "cannot be told"  # with so few repeats
_OF_SEVERAL = {HOLDS: "hold", IN_PART: "hold in part", FAILS: "do not hold", OPEN: OPEN}
# Smaller gains do not count.
_NEGLIGIBLE = 0.005
# Sources of claims; each is counted on its own.
THEIRS, STAND_IN, ADDED = (
    "claims of the paper on its simulation and theorems",
    "claims of the paper on data that take the place of its own",
    "claims that the paper does not make",
)


class Verdict(NamedTuple):
    """A claim, the paper's figure, ours, the verdict, and the part with the evidence."""

    claim: str
    paper: str
    measured: str
    verdict: str
    part: str = ""
    about: str = THEIRS


def judge_claims(facts: Facts) -> list[Verdict]:
    """Return a verdict on every claim about the parts of a run: ``{part.key: part.facts}``."""
    judged = {part: judge(facts[part]) for part, judge in _JUDGES.items() if part in facts}
    return [each._replace(part=part) for part, verdicts in judged.items() for each in verdicts]


def lead(verdicts: Sequence[Verdict]) -> str:
    """Return the number of verdicts of each kind, for the top of the report."""
    sentences = []
    for about in (THEIRS, STAND_IN, ADDED):
        counts = Counter(verdict.verdict for verdict in verdicts if verdict.about == about)
        if counts:
            judged = ", ".join(
                f"{counts[verdict]} {verdict if counts[verdict] == 1 else several}"
                for verdict, several in _OF_SEVERAL.items()
                if counts[verdict]
            )
            sentences.append(f"Of {counts.total()} {about}: {judged}.")
    return " ".join(sentences)


def grade(value: float, enough: float, some: float) -> str:
    """Return a verdict on a number that should be large."""
    return HOLDS if value >= enough else IN_PART if value >= some else FAILS


def judge_leads(leads: Sequence[Sequence[float]]) -> str:
    """Return a verdict on leads that should all be above 0: mean, and bounds of an interval."""
    above = sum(low > 0 for *_, low, _ in leads)
    if above:
        return HOLDS if above == len(leads) else IN_PART
    behind = any(high < 0 for *_, high in leads)
    return FAILS if behind or all(high < _NEGLIGIBLE for *_, high in leads) else OPEN


def _both(first: str, second: str) -> str:
    """Return the verdict on a claim with two criteria."""
    return first if first == second else IN_PART


def _table1(facts: Facts) -> Iterator[Verdict]:
    ours, raw, fair = facts["ours"], facts["without_an_intercept"], facts["with_an_intercept"]
    near = sum(abs(100 * auc - TABLE_1[name]) <= 3 for name, auc in raw.items())
    gap = ours - mean(raw.values())
    closed = (mean(fair.values()) - mean(raw.values())) / gap if gap > 0 else 1.0
    yield Verdict(
        "The method ranks the simulation almost perfectly",
        f"{TABLE_1['Ours']:.2f}",
        percent(ours),
        grade(-abs(100 * ours - TABLE_1["Ours"]), -0.5, -2.0),
    )
    yield Verdict(
        "Its seven baselines stay far behind (we infer: without an intercept)",
        f"{min(TABLE_1_BASELINES):.2f} to {max(TABLE_1_BASELINES):.2f}",
        f"{percent(min(raw.values()))} to {percent(max(raw.values()))}. {near} of 7 are within 3 "
        "points of the paper's figure",
        grade(near, 7, 1),
    )
    yield Verdict(
        "Its lead is due to the model",
        f"{points((TABLE_1['Ours'] - max(TABLE_1_BASELINES)) / 100)} points over the second best",
        f"{interval(facts['lead'])} points over {facts['best_baseline']} with an intercept. An "
        f"intercept alone closes {closed:.0%} of the gap to the baselines",
        grade(facts["lead"][0], 0.05, 0.0) if facts["lead"][1] > 0 else FAILS,
    )
    over = facts["lead_over_simple"]
    yield Verdict(
        "Tasks have to be learned together on this simulation",
        "implied: no simple baseline",
        f"{interval(over)} points over {facts['best_simple'].lower()} "
        f"({percent(facts['best_simple_auc'])})",
        grade(over[0], 0.005, 0.0) if over[1] > 0 else FAILS,
    )


def _table2(facts: Facts) -> Iterator[Verdict]:
    best, size = max(facts["speed_up"]), facts["bytes"][-1] / 2**30
    yield Verdict(
        "The efficient evaluation of the AUC loss is up to 20 times faster",
        f"up to {SPEED_UP}",
        f"{facts['speed_up'][0]:.3g} to {best:.3g} times. With statistics, up to "
        f"{max(facts['speed_up_statistics']):,.0f} times",
        grade(best, SPEED_UP, 2.0),
    )
    if facts["paper_size"]:
        yield Verdict(
            "All pairs of the simulation do not fit into 24 GB",
            "nan in its Table 2",
            f"{size:.1f} GiB",
            HOLDS if size > 24 else FAILS,
        )


def _table3(facts: Facts) -> Iterator[Verdict]:
    for name, data in facts.items():
        instead = data["stands_in_for"]
        mark, about = (f"{name} (not {instead})", STAND_IN) if instead else (name, THEIRS)
        way, leads = next(iter(data["lead"].items()))  # the closest to the paper
        yield Verdict(
            f"{mark}: the method beats all baselines on every attribute",
            data["paper_lead"],
            f"{describe_leads(leads.values())} (over the best baseline, {way})",
            judge_leads(list(leads.values())),
            about=about,
        )
        over = list(data["lead_over_consensus"].values())
        yield Verdict(
            f"{mark}: the consensus is not enough",
            "claimed, not measured",
            f"{describe_leads(over)} (features standardised)",
            judge_leads(over),
            about=about,
        )


def _fig3(facts: Facts) -> Iterator[Verdict]:
    recovery, found = facts["recovery"][OURS], facts["structure"]
    (few, *_, many), groups = recovery["labels"], recovery["groups"]
    indices = [found[choice]["groups"] for choice in (CHOSEN, TRUE_KAPPA)]
    yield Verdict(
        "The groups are roughly recovered",
        "by eye",
        f"adjusted Rand index {indices[0]:.2f} cross-validated, {indices[1]:.2f} at the true κ. "
        f"It is {groups[0]:.2f} with {few} labels per person, {groups[-1]:.2f} with {many:,}",
        _both(*(grade(index, 0.8, 0.4) for index in indices)),
    )
    judged = CHOSEN, FULL_SIZE if FULL_SIZE in found else BEST
    yield Verdict(
        "The personal level finds the people with a personal part",
        "implied by the model",
        ". ".join(f"{choice.capitalize()}: {describe_flagged(found[choice])}" for choice in judged),
        _both(*(grade(found[choice]["personal"], 0.5, 0.2) for choice in judged)),
    )


def _fig4(facts: Facts) -> Iterator[Verdict]:
    falls, theorem = facts["objective_falls"], facts["theorem_2"]
    yield Verdict(
        "The objective falls in every iteration, and Theorem 2 holds",
        "by eye; proof",
        f"It {'falls' if falls else 'does not fall'} in every iteration. The five claims of "
        f"Theorem 2 {'hold' if theorem else 'do not all hold'} on this run",
        HOLDS if falls and theorem else FAILS,
    )
    yield Verdict(
        "The steps keep getting shorter",
        "by eye",
        f"in {facts['steps_fall']:.1%} of the iterations. The last is {facts['step_ratio']:.1e} "
        "times as long as the longest",
        grade(facts["steps_fall"], 0.99, 0.9),
    )
    yield Verdict(
        "The generalization bound guarantees a reasonable performance",
        "Theorem 3",
        f"Its provable form is {facts['theorem_3'] / facts['n_users']:.3g} per person. An AUC loss "
        "is at most 1",
        HOLDS if facts["theorem_3"] < facts["n_users"] else FAILS,
    )


def _ablation(facts: Facts) -> Iterator[Verdict]:
    ours = {step.name for step in STEPS if step.ours}
    judged = {
        (f"It pays to add {_plain(name)}", name in ours): steps
        for name, steps in facts["steps"].items()
        if name != PERSONAL_STEP
    }
    judged |= {
        (f"{crowd}: it pays to add {_plain(PERSONAL_STEP)}", False): found["gains"]
        for crowd, found in facts["personal"].items()
    }
    for (claim, is_ours), steps in judged.items():
        gains = [step[0] for step in steps]
        surely = sum(step[1] > 0 for step in steps)
        never = all(step[2] < _NEGLIGIBLE for step in steps)
        mostly = 2 * surely > len(steps) and min(gains) > -_NEGLIGIBLE
        yield Verdict(
            claim,
            "not in the paper" if is_ours else "implied: no ablation",
            f"{100 * min(gains):+.2f} to {100 * max(gains):+.2f} points, surely above 0 at "
            f"{surely} of {len(steps)} numbers of labels",
            HOLDS if mostly else IN_PART if surely else FAILS if never else OPEN,
            about=ADDED if is_ours else THEIRS,
        )


def _plain(step: str) -> str:
    """Return the name of a step of the ablation, within a sentence."""
    return step.replace(", ", " ")


_JUDGES: Mapping[str, Callable[[Facts], Iterator[Verdict]]] = {
    "table1": _table1,
    "table2": _table2,
    "table3": _table3,
    "fig3": _fig3,
    "fig4": _fig4,
    "ablation": _ablation,
}
