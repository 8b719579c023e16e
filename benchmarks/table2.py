"""The paper's Table 2: pairs one by one, Proposition 1 through the rows, and the statistics."""

from benchmarks.results import Result, Table
from likeminds import make_simulation
from likeminds.paper.experiments.published import ROOM, SECONDS_ORIGINAL, SECONDS_OURS, SHARES
from likeminds.paper.experiments.table2 import EVALUATIONS, N_ITER, measure, share_of_each


def run(quick: bool) -> Result:
    """Time one gradient, and some iterations of the printed algorithm, three ways."""
    size = (20, 100, 10, 10) if quick else (100, 5000, 80, 100)
    annotations = make_simulation(*size, random_state=0).annotations
    measured = [
        measure(share_of_each(annotations, share), rounds=1 if quick else 5) for share in SHARES
    ]
    return Result(
        title="The paper's Table 2",
        compares=(
            "Shares of the samples of the paper's simulation: processor seconds per gradient "
            "through all pairs (the definition), through the rows (Proposition 1), and through the "
            f"statistics; and those of {N_ITER} iterations of the printed algorithm (not of the "
            "authors' program)."
        ),
        tables=[_gradients(measured), _iterations(measured)],
        goals=[],
        notes=[
            "Pairs are made one person at a time, outside of the clock, because those of all "
            "people do not fit into memory. The table has their size.",
            "All are processor seconds with one BLAS thread.",
            f"The {N_ITER} iterations through pairs are computed: seconds per gradient times the "
            "number of gradients that the same iterations took, and nothing for the solver's own "
            "work, which favours the pairs. The others are measured.",
            "The paper's seconds are quoted from it: another machine and another number of "
            "iterations, so only how they grow is comparable.",
        ],
        series={
            "shares": list(SHARES),
            "gradient": {way: [m["gradient"][way] for m in measured] for way in EVALUATIONS},
        },
    )


def _gradients(measured: list[dict]) -> Table:
    rows = []
    for share, m in zip(SHARES, measured, strict=True):
        gradient, size = m["gradient"], m["bytes"]
        fits = f"{size / 2**30:.2f}" + ("" if size <= ROOM else " (does not fit)")
        ratios = [gradient["pairs"] / gradient[way] for way in ("rows", "statistics")]
        rows.append([f"{share} %", fits, *(gradient[way] for way in EVALUATIONS), *ratios])
    columns = ["samples", "pairs, GiB", "gradient, pairs, s", "rows, s", "statistics, s"]
    return {"columns": [*columns, "pairs / rows", "pairs / statistics"], "rows": rows}


def _iterations(measured: list[dict]) -> Table:
    rows = []
    quoted = zip(SHARES, measured, SECONDS_ORIGINAL, SECONDS_OURS, strict=True)
    for share, m, original, ours in quoted:
        times = m["iterations"]
        ratios = [times["pairs"] / times[way] for way in ("rows", "statistics")]
        paper = [original, ours, original and original / ours]
        rows.append([f"{share} %", *(times[way] for way in EVALUATIONS), *ratios, *paper])
    columns = ["samples", f"{N_ITER} iterations, pairs, s", "rows, s", "statistics, s"]
    columns += ["pairs / rows", "pairs / statistics"]
    columns += ["paper: original, s", "paper: theirs, s", "paper: ratio"]
    return {"columns": columns, "rows": rows}
