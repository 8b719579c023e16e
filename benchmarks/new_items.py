"""New items in simulated conversations: ``python -m benchmarks.new_items``.

Writes docs/development/new-items.json and its table in docs/development/item-effects.md.

People vote on statements that words describe, and then rank statements that nobody has voted on.
What is true is known: the share of pairs of new statements that everybody's scores put into the
right order. In some conversations, statements have no vote but their author's, who agrees; in
others, most statements are shown to one person, by lot.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tables import DOCS, markdown, publish
from likeminds import Annotations, HierarchicalRanker
from likeminds._util.array_types import Float

N_WORDS, N_NEW = 40, 60


@dataclass(frozen=True)
class Conversation:
    """How people vote.

    Attributes
    ----------
    n_users, n_shared, n_alone, n_votes : int
        People, statements that all may see, statements that one person sees, votes by person.
    told : float
        The share of the variance of what all see in statements that words tell.
    authors : bool
        Whether who alone sees a statement has written it, and agrees.
    divides : float
        The share of the variance of what divides people that words tell, in place of what
        everybody has words of their own for.
    """

    n_users: int
    n_shared: int
    n_alone: int
    n_votes: int
    told: float
    authors: bool = False
    divides: float = 0.0

    def draw(self, seed: int) -> tuple[Annotations, Float]:
        """Return the votes, and everybody's scores of new statements."""
        rng = np.random.default_rng(seed)
        n_known = self.n_shared + self.n_alone
        X = rng.normal(size=(n_known + N_NEW, N_WORDS)) / np.sqrt(1.0 + np.arange(N_WORDS))
        X /= np.linalg.norm(X, axis=1, keepdims=True)
        liked, own = _partly_told(X, self.told, rng), rng.normal(size=(self.n_users, N_WORDS))
        scores = 1.5 * liked + (0.0 if self.divides else 0.6) * own @ X.T
        side = rng.normal(size=self.n_users)
        divides = _partly_told(X, self.divides, rng) if self.divides else rng.normal(size=len(X))
        scores += (1.5 if self.divides else 0.7) * np.outer(side, divides)
        seen = [rng.permutation(self.n_shared)[: self.n_votes] for _ in range(self.n_users)]
        alone = np.arange(self.n_shared, n_known)
        user = np.repeat(np.arange(self.n_users), self.n_votes)
        user = np.concatenate([user, rng.integers(self.n_users, size=self.n_alone)])
        item = np.concatenate([*seen, alone])
        label = rng.random(len(user)) < 1.0 / (1.0 + np.exp(-scores[user, item]))
        if self.authors:
            label[item >= self.n_shared] = True
        said = Annotations(user, item, label, X, item_ids=np.arange(len(X)))
        return said, scores[:, n_known:]


def _partly_told(X: Float, told: float, rng: np.random.Generator) -> Float:
    """Draw something of statements, of whose variance words tell a share."""
    words = X @ rng.normal(size=N_WORDS)
    words = (words - words.mean()) / words.std()
    return np.asarray(np.sqrt(told) * words + np.sqrt(1 - told) * rng.normal(size=len(X)))


CONVERSATIONS = {
    "35 statements, words tell nothing": Conversation(150, 35, 0, 18, 0.0),
    "35 statements, words tell a little": Conversation(150, 35, 0, 18, 0.15),
    "80 statements, words tell something": Conversation(200, 80, 0, 20, 0.4),
    "and 150 that authors alone have seen": Conversation(200, 80, 150, 20, 0.4, authors=True),
    "and 400 that were shown to one person": Conversation(200, 80, 400, 20, 0.4),
    "80 statements, words tell what divides": Conversation(200, 80, 0, 20, 0.2, divides=0.6),
}


def ordered(scores: Float, truth: Float) -> float:
    """Return the share of pairs in the right order, over people; ties count half."""
    a, b = np.triu_indices(truth.shape[1], 1)
    signs = np.sign(scores[:, a] - scores[:, b]) * np.sign(truth[:, a] - truth[:, b])
    return float((0.5 + 0.5 * signs).mean())


def measure(conversation: Conversation, seed: int) -> tuple[float, float]:
    """Return how well new statements are ordered with effects of items, and without."""
    said, truth = conversation.draw(seed)
    new = said.features[-N_NEW:]
    found = []
    for effects in (True, False):
        ranker = HierarchicalRanker(item_effects=effects, standardize=False).fit(said)
        found.append(ordered(ranker.coef_ @ new.T, truth))
    return found[0], found[1]


def measured(n_draws: int, conversations: dict[str, Conversation]) -> dict[str, Any]:
    """Return means over draws, and the difference with its standard error."""
    rows = {}
    for name, conversation in conversations.items():
        found = 100 * np.array([measure(conversation, seed) for seed in range(n_draws)])
        apart = found[:, 0] - found[:, 1]
        rows[name] = {
            "ours": float(found[:, 0].mean()),
            "without": float(found[:, 1].mean()),
            "difference": float(apart.mean()),
            "error": float(apart.std(ddof=1) / np.sqrt(n_draws)),
        }
    return {"draws": n_draws, "rows": rows}


def as_table(found: dict[str, Any]) -> str:
    """Return what was measured, a row for each conversation."""
    rows = []
    for name, row in found["rows"].items():
        apart = f"{row['difference']:+.1f} (± {row['error']:.1f})"
        rows.append([name, f"{row['ours']:.1f}", f"{row['without']:.1f}", apart])
    return markdown(["conversation", "with item effects", "without", "difference"], rows)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8)
    found = measured(parser.parse_args(arguments).draws, CONVERSATIONS)
    print(as_table(found))
    page = DOCS / "development" / "item-effects.md"
    publish("development/new-items", found, page, as_table(found))


if __name__ == "__main__":
    main()
