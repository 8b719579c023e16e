# %% [markdown]
# # Films: rankings for known and new users
#
# Users rate films, whose features are genres. A new user rates five films. The ratings are
# simulated: preferences differ by genre, and films have effects beyond their genres. For files:
# `likeminds fit -a ratings.csv -f movies.csv --out films`.

# %%
import numpy as np

import likeminds

rng = np.random.default_rng(1)
GENRES = ["Action", "Comedy", "Drama", "Horror", "Romance"]
n_users, n_films = 120, 200
has = (rng.random((n_films, 5)) < 0.35).astype(float)
quality = rng.normal(0, 1.0, n_films)
taste = rng.normal([0.3, 0.3, 0.4, -0.5, 0.0], 1.2, size=(n_users, 5))
person, film = np.nonzero(rng.random((n_users, n_films)) < 0.2)
mean = 3.0 + np.sum(taste[person] * has[film], axis=1) + quality[film]
stars = np.clip(np.round(mean + rng.normal(0, 0.7, len(person))), 1, 5)
titles = [f"film {j:03d}" for j in range(n_films)]
ratings = likeminds.Annotations(
    [f"person {i:03d}" for i in person],
    [titles[j] for j in film],
    stars,
    dict(zip(titles, has, strict=True)),
    feature_names=GENRES,
)
ratings

# %% [markdown]
# ## Fit, and compare with a baseline
#
# Stars are grades, and each user has their own thresholds. `Popularity` ranks by mean grades.

# %%
train, test = likeminds.split_within_users(ratings, test_size=0.3, random_state=0)
ranker = likeminds.HierarchicalRanker().fit(train)
popularity = likeminds.baselines.Popularity().fit(train)
print(
    f"pairs in the right order: {ranker.score(test):.1%}; "
    f"by popularity {popularity.score(test):.1%}"
)
print("films have a character of their own:", ranker.item_effects_)

# %% [markdown]
# ## Recommendations

# %%
somebody = ranker.users_[7]
best = ranker.rank(somebody, ratings, k=5, unseen=True)
print(best)

# %% [markdown]
# ## A new user
#
# Five ratings, without a refit: `next_items` selects the films to ask about.

# %%
new = ranker.newcomer(
    likeminds.Annotations(
        ["zoe"] * 5,
        titles[:5],
        [5, 1, 4, 2, 5],
        dict(zip(titles[:5], has[:5], strict=True)),
        feature_names=GENRES,
        grades=[1, 2, 3, 4, 5],
    )
)
print("ask next:", *(titles[5 + row] for row in new.next_items(has[5:], n=3)))
order = np.argsort(-new.decision_function(has[5:]))[:5]
for row in order:
    print(
        titles[5 + row], *(name for name, is_in in zip(GENRES, has[5 + row], strict=True) if is_in)
    )

# %% [markdown]
# ## Save and load

# %%
from pathlib import Path
from tempfile import mkdtemp

path = likeminds.save(ranker, Path(mkdtemp()) / "films.likeminds")
print(likeminds.read_card(path)["users"], "users;", f"{path.stat().st_size / 1e6:.1f} MB")
