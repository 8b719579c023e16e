"""Latent classes compared with the learned prior: ``python -m benchmarks.latent_classes``.

Prints the two tables in docs/how-to/choice-experiments.md. Log-likelihoods are those of all choices
of the electricity data. The comparison holds out 30 % of each household's choices.
"""

import time

import numpy as np

from likeminds import (
    HierarchicalRanker,
    LatentClassRanker,
    load_electricity,
    score_choices,
    split_within_users,
)


def main(numbers: range = range(1, 5), seeds: range = range(3), n_starts: int = 20) -> None:
    """Print log-likelihoods by number of classes, and scores on held-out choices."""
    homes = load_electricity()
    print("| classes | log-likelihood | parameters | BIC | entropy |")
    print("|---|---|---|---|---|")
    for number in numbers:
        row = LatentClassRanker(number, n_starts=n_starts).fit(homes).selection_[0]
        print(
            f"| {number} | {row['log_likelihood']:.1f} | {row['parameters']} | {row['bic']:.1f} "
            f"| {row['entropy']:.2f} |"
        )
    rankers = {f"{k} classes": LatentClassRanker(k, n_starts=n_starts) for k in numbers}
    if len(numbers) > 1:
        rankers["classes by BIC"] = LatentClassRanker(n_starts=n_starts)
    rankers |= {"learned prior": HierarchicalRanker()}
    print("\n| | log loss | accuracy | seconds |")
    print("|---|---|---|---|")
    for name, ranker in rankers.items():
        found = []
        for seed in seeds:
            train, test = split_within_users(homes, 0.3, random_state=seed)
            start = time.process_time()
            ranker.fit(train)
            seconds = time.process_time() - start
            chances = ranker.predict_proba(test)[:, 1]
            scores = score_choices(test, ranker.decision_function(test), chances)
            losses = np.nanmean(scores.log_loss.values), np.nanmean(scores.accuracy.values)
            found.append([*losses, seconds])
        loss, accuracy, seconds = np.mean(found, axis=0)
        print(f"| {name} | {loss:.3f} | {100 * accuracy:.1f} % | {seconds:.1f} |")


if __name__ == "__main__":
    main()
