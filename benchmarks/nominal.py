"""Labels without an order, compared: ``python -m benchmarks.nominal --data FOLDER``.

FOLDER holds ``NAME.npz`` with ``user``, ``item`` and ``vote`` (agree, pass, disagree) or ``grade``,
which count as classes without an order. Without it, or with ``--quick``, the crowd is simulated:
annotators with a confusion matrix each, and two schools that exchange two classes on some items. A
quarter of each user's labels is held out, with three seeds. Accuracy and log loss are means over
labels. The soft labels of the simulation are compared with the true shares by the Manhattan
distance. Writes ``nominal.json`` and, between two marks, the table of ``how-to/nominal.md``.

majority vote
    The shares of an item's labels, to which one label of the overall shares is added.
Dawid-Skene
    One true class per item and a confusion matrix per user, by expectation maximisation.
choice sets
    `HierarchicalRanker` on choices among the classes: items are pairs of item and class, features
    are constants of the classes and their products with the features of items.
NominalRanker
    One ranker per class, whose probabilities are divided by their sum.
"""

import argparse
import json
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.accuracy import ROOT
from likeminds import Annotations, HierarchicalRanker, NominalRanker
from likeminds._util.array_types import Float, Index
from likeminds._util.atomic_files import write_whole

NAMES = ("polis_brexit", "polis_taxes", "polis_football", "offensive")
SEEDS = (20, 21, 22)
BEGIN, END = "<!-- measured by benchmarks/nominal.py: begin -->", "<!-- end -->"
_TEST, _STEPS = 0.25, 50


@dataclass(frozen=True, eq=False)
class NominalCrowd:
    """Codes of users, items and classes, a row per label; the true shares, if known."""

    user: Index
    item: Index
    label: Index
    features: Float
    truth: Float | None = None

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return int(self.label.max()) + 1

    def take(self, rows: Index) -> "NominalCrowd":
        """Return some of the labels."""
        return NominalCrowd(self.user[rows], self.item[rows], self.label[rows], self.features)

    def annotations(self) -> Annotations:
        """Return the labels as classes."""
        features = self.features if self.features.shape[1] else None
        ids = None if features is None else np.arange(len(self.features))
        per = "auto" if features is None else "item"
        classes = list(range(self.n_classes))
        given = (self.user, self.item, self.label, features)
        return Annotations(*given, item_ids=ids, features_per=per, nominal=classes)


def simulate(seed: int, n_users: int = 60, n_items: int = 150, n_each: int = 30) -> NominalCrowd:
    """Draw a crowd of two schools; annotators confuse classes, each in their own way."""
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n_items, 4))
    height = features @ rng.normal(size=(4, 3)) + rng.normal(size=(n_items, 3))
    other = np.where(features[:, :1] > 0, height[:, [1, 0, 2]], height)
    school = rng.integers(2, size=n_users)
    confusion = rng.dirichlet(np.full(3, 0.6), size=(n_users, 3)) * 0.2 + 0.8 * np.eye(3)
    classes = np.where(school[:, None], other.argmax(axis=1), height.argmax(axis=1))
    chances = confusion[np.arange(n_users)[:, None], classes]
    user = np.repeat(np.arange(n_users), n_each)
    item = np.concatenate([rng.permutation(n_items)[:n_each] for _ in range(n_users)])
    drawn = rng.random((len(user), 1)) > np.cumsum(chances[user, item], axis=1)
    return NominalCrowd(user, item, drawn[:, :2].sum(axis=1), features, chances.mean(axis=0))


def read_crowds(folder: Path | None, seed: int) -> Iterator[tuple[str, NominalCrowd]]:
    """Yield the simulated crowd, and those of the folder."""
    yield "simulated", simulate(seed)
    for name in NAMES if folder is not None else ():
        assert folder is not None
        file = np.load(folder / f"{name}.npz", allow_pickle=True)
        user, item, label = (
            np.unique(column, return_inverse=True)[1]
            for column in (file["user"], file["item"], file["vote" if "vote" in file else "grade"])
        )
        yield name, NominalCrowd(user, item, label, np.zeros((int(item.max()) + 1, 0)))


# Learns from labels; returns a function from users and items to probabilities of classes.
Predict = Callable[[Index, Index], Float]
Method = Callable[[NominalCrowd], Predict]


def majority_vote(train: NominalCrowd) -> Predict:
    """Predict an item's labels by their shares."""
    votes = np.zeros((int(train.item.max()) + 1, train.n_classes))
    np.add.at(votes, (train.item, train.label), 1.0)
    votes += votes.sum(axis=0) / votes.sum()
    return lambda _, item: votes[item] / votes[item].sum(axis=1, keepdims=True)


def dawid_skene(train: NominalCrowd) -> Predict:
    """Estimate true classes and confusion matrices by expectation maximisation."""
    user, item, label, n = train.user, train.item, train.label, train.n_classes
    posterior = majority_vote(train)(user, np.arange(int(item.max()) + 1))
    for _ in range(_STEPS):
        confusion = np.full((int(user.max()) + 1, n, n), 0.1) + 0.5 * np.eye(n)
        for each in range(n):
            np.add.at(confusion[:, :, each], user[label == each], posterior[item[label == each]])
        confusion /= confusion.sum(axis=2, keepdims=True)
        logs = np.tile(np.log(posterior.mean(axis=0)), (len(posterior), 1))
        np.add.at(logs, item, np.log(confusion[user, :, label]))
        posterior = np.exp(logs - logs.max(axis=1, keepdims=True))
        posterior /= posterior.sum(axis=1, keepdims=True)
    return lambda u, i: np.einsum("nk,nkl->nl", posterior[i], confusion[u])


def choice_sets(train: NominalCrowd) -> Predict:
    """Learn choices among the classes, whose items are pairs of item and class."""
    n, n_items = train.n_classes, len(train.features)
    with_one = np.column_stack([np.ones(n_items), train.features])
    rows = np.einsum("jd,kl->jkld", with_one, np.eye(n)[:, 1:]).reshape(n_items * n, -1)

    def sets(user: Index, item: Index, label: Index) -> Annotations:
        each = np.tile(np.arange(n), len(user))
        return Annotations(
            np.repeat(user, n),
            np.repeat(item, n) * n + each,
            np.repeat(label, n) == each,
            rows,
            choice_sets=np.repeat(np.arange(len(user)), n),
            item_ids=np.arange(len(rows)),
            features_per="item",
        )

    ranker = HierarchicalRanker(unknown="consensus")
    ranker.fit(sets(train.user, train.item, train.label))
    return lambda u, i: ranker.predict_proba(sets(u, i, 0 * u))[:, 1].reshape(-1, n)


def one_against_the_rest(train: NominalCrowd) -> Predict:
    """Learn one ranker per class."""
    model = NominalRanker().fit(train.annotations())
    return lambda u, i: model.predict_proba(train.features[i], u, i)


METHODS: dict[str, Method] = {
    "majority vote": majority_vote,
    "Dawid-Skene": dawid_skene,
    "choice sets": choice_sets,
    "NominalRanker": one_against_the_rest,
}
Scores = dict[str, dict[str, dict[str, float]]]


def measure(folder: Path | None, seeds: Sequence[int]) -> Scores:
    """Return the means over seeds, by data and method."""
    found: dict[str, dict[str, list[dict[str, float]]]] = {}
    for seed in seeds:
        for name, crowd in read_crowds(folder, seed):
            for method, learn in METHODS.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    scores = _scores(crowd, learn, seed)
                print(name, seed, method, scores, flush=True)
                found.setdefault(name, {}).setdefault(method, []).append(scores)
    return {
        name: {
            method: {key: float(np.mean([one[key] for one in rows])) for key in rows[0]}
            for method, rows in methods.items()
        }
        for name, methods in found.items()
    }


def _scores(crowd: NominalCrowd, learn: Method, seed: int) -> dict[str, float]:
    held_out = np.random.default_rng(seed).random(len(crowd.user)) < _TEST
    train = crowd.take(np.flatnonzero(~held_out))
    # Users and items of held-out labels are known.
    known = np.isin(crowd.user, train.user) & np.isin(crowd.item, train.item)
    test = crowd.take(np.flatnonzero(held_out & known))
    started = time.process_time()
    predict = learn(train)
    chances = predict(test.user, test.item)
    scores = {
        "accuracy": float((chances.argmax(axis=1) == test.label).mean()),
        "log loss": float(-np.log(chances[np.arange(len(test.label)), test.label]).mean()),
        "seconds": time.process_time() - started,
    }
    if crowd.truth is not None:
        n_users, items = int(crowd.user.max()) + 1, np.unique(train.item)
        user = np.tile(np.arange(n_users), len(items))
        shares = predict(user, np.repeat(items, n_users)).reshape(len(items), n_users, -1)
        apart = np.abs(shares.mean(axis=1) - crowd.truth[items])
        scores["distance"] = float(apart.sum(axis=1).mean())
    return scores


def table(found: Scores) -> str:
    """Return the table of the page."""
    head = "| data | method | accuracy | log loss | distance of soft labels | processor s |"
    lines = [head, "|---|---|---|---|---|---|"]
    for name, methods in found.items():
        for method, row in methods.items():
            apart = f"{row['distance']:.3f}" if "distance" in row else ""
            numbers = f"{row['accuracy']:.3f} | {row['log loss']:.3f} | {apart}"
            lines.append(f"| {name} | {method} | {numbers} | {row['seconds']:.1f} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--quick", action="store_true", help="the simulated crowd, one seed")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the results")
    options = parser.parse_args(arguments)
    folder = None if options.quick else options.data
    found = measure(folder, SEEDS[:1] if options.quick else SEEDS)
    write_whole(options.out / "nominal.json", (json.dumps(found, indent=1) + "\n").encode())
    page = options.out / "how-to" / "nominal.md"
    before, rest = page.read_text().split(BEGIN)
    after = rest.split(END)[1]
    write_whole(page, f"{before}{BEGIN}\n{table(found)}\n{END}{after}".encode())


if __name__ == "__main__":
    main()
