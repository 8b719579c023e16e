"""Films as they are published: userId, movieId and a timestamp; titles, and genres with bars."""

import numpy as np
import pytest

from commands import run, told
from likeminds import load

NAMES = ("Matrix", "Godfather", "Sting")
GENRES = ("Comedy", "Crime", "Drama")


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    folder = tmp_path_factory.mktemp("films")
    rng = np.random.default_rng(0)
    has = rng.random((30, 3)) < 0.5
    has[~has.any(axis=1), 0] = True
    titles = ["movieId,title,genres"]
    genres = ["|".join(np.array(GENRES)[there]) for there in has]
    titles += [f'{j},"{NAMES[j % 3]}, The ({1980 + j})",{genres[j]}' for j in range(30)]
    (folder / "movies.csv").write_text("\n".join(titles) + "\n")
    (folder / "new.csv").write_text("movieId,title,genres\n99,Up,Drama\n98,Heat,Comedy|Drama\n")
    rows = ["userId,movieId,rating,timestamp"]
    for i in range(25):
        for j in rng.permutation(30)[:16]:
            likes = has[j] @ (1.0, -2.0, 1.0) + rng.logistic() > 0
            rows.append(f"{i},{j},{int(likes)},{1_000_000 + i * j}")
    (folder / "ratings.csv").write_text("\n".join(rows) + "\n")
    done = run(folder, "fit", "-a", "ratings.csv", "-f", "movies.csv", "--out", "films.likeminds")
    assert done.code == 0, done.err
    return folder, done


def test_one_command_makes_the_model(films):
    folder, done = films
    assert "Using column 'title' as item names, not as a feature." in done.out
    card = told(folder, "explain", "films.likeminds")
    assert "'wish': 'what has no Crime'" in str(card)
    assert "timestamp" not in str(card)


def test_how_many_like_the_surest_at_the_least(films):
    folder, _ = films
    facts = told(folder, "explain", "films.likeminds")["explained"][0]
    least = min(one["at_least"] for one in facts["agreed"][:5])
    out = run(folder, "explain", "films.likeminds").out
    said = f"At least {least:.0%} of people would rate each of these high: "
    assert said in " ".join(out.split())


def test_genres_are_told_without_their_column(films):
    folder, _ = films
    told_first = run(folder, "explain", "films.likeminds").out.splitlines()[0]
    assert "no Crime" in told_first
    assert "genres" not in told_first


def test_genres_that_no_new_film_has_are_none(films):
    folder, _ = films
    ask = ("rank", "films.likeminds", "--features", "new.csv", "--user", "3")
    rows = told(folder, *ask)["rankings"]
    assert {row["item"] for row in rows} == {"98", "99"}


def test_a_timestamp_is_no_feature(films):
    folder, _ = films
    done = run(folder, "fit", "-a", "ratings.csv", "--out", "alone.likeminds")
    assert done.code == 0, done.err
    assert "on 30 items, 0 features" in done.out


def test_unseen_films_only(films):
    folder, _ = films
    rated = (folder / "ratings.csv").read_text().splitlines()[1:]
    seen = {row.split(",")[1] for row in rated if row.startswith("3,")}
    ask = ("rank", "films.likeminds", "--user", "3", "--top", "30")
    assert len(told(folder, *ask)["rankings"]) == 30
    rows = told(folder, *ask, "--unseen")["rankings"]
    assert {row["item"] for row in rows} == {str(j) for j in range(30)} - seen


def test_titles_are_told_beside_genres(films):
    folder, _ = films
    ask = ("explain", "films.likeminds", "--items", "agreed", "--texts", "movies.csv")
    done = run(folder, *ask)
    assert done.code == 0, done.err
    assert "Godfather, The (" in done.out


def test_items_are_told_by_their_titles(films):
    folder, _ = films
    row = told(folder, "rank", "films.likeminds", "--user", "3")["rankings"][0]
    assert row["name"].endswith(f"The ({1980 + int(row['item'])})")
    done = run(folder, "explain", "films.likeminds", "--items", "agreed")
    assert "Godfather, The (" in done.out
    assert "item_names_" not in done.err


def test_why_a_film_has_its_score(films):
    folder, _ = films
    ask = ("explain", "films.likeminds", "--user", "3", "--item")
    by_id = told(folder, *ask, "7")["explained"][0]
    assert by_id == told(folder, *ask, "Godfather, The (1987)")["explained"][0]
    assert sum(by_id["levels"].values()) == pytest.approx(by_id["score"])
    done = run(folder, *ask, "7")
    assert "3 on 7 (Godfather, The (1987)): " in done.out
    assert "Chance of a yes" in done.out
    assert "the average item" in done.out
    assert "-0.00" not in done.out


def test_close_matches_are_suggested(films):
    folder, _ = films
    ask = ("explain", "films.likeminds", "--item")
    done = run(folder, *ask, "Matrix (1983)")
    assert done.code == 2
    assert "Did you mean Matrix, The (1983)" in done.err
    done = run(folder, "fit", "-a", "ratings.csv", "-f", "movies.csv", "--out", "x.likeminds",
               "--item-name", "titel")  # fmt: skip
    assert done.code == 2
    assert "Did you mean title?" in done.err


def test_similar_people_and_films(films):
    folder, _ = films
    ask = ("similar", "films.likeminds", "--top", "4")
    users = told(folder, *ask, "--user", "3")
    assert len(users["similar"]) == 4
    assert "3" not in [row["user"] for row in users["similar"]]
    rows = told(folder, *ask, "--item", "Matrix, The (1980)")["similar"]
    assert "The (" in rows[0]["name"]
    done = run(folder, *ask)
    assert done.code == 2
    assert "--user or --item" in done.err


def test_new_users_name_films_by_title(films):
    folder, _ = films
    (folder / "by_id.csv").write_text("movieId,rating\n0,1\n4,0\n")
    (folder / "by_title.csv").write_text(
        'title,rating\n"Matrix, The (1980)",1\n"Godfather, The (1984)",0\n'
    )
    ask = ("newcomer", "films.likeminds", "--top", "30", "--annotations")
    found = told(folder, *ask, "by_title.csv")["rankings"]
    assert found == told(folder, *ask, "by_id.csv")["rankings"]
    assert not {"0", "4"} & {row["item"] for row in found}
    everything = told(folder, *ask, "by_id.csv", "--labelled")["rankings"]
    assert len(everything) == 30
    likeminds_says = load(folder / "films.likeminds").newcomer({"0": True, "4": False})
    assert [row["item"] for row in everything] == likeminds_says.rank(labelled=True).items.tolist()
    (folder / "wrong.csv").write_text('title,rating\n"Matrix (1980)",1\n')
    done = run(folder, *ask, "wrong.csv")
    assert done.code != 0
    assert "Matrix, The (1980)" in " ".join(done.err.split())


def test_labels_by_title_are_those_by_id(films):
    folder, _ = films
    titles = dict(row.split(",", 1) for row in (folder / "movies.csv").read_text().splitlines()[1:])
    names = {movie: rest.rsplit(",", 1)[0] for movie, rest in titles.items()}
    rows = [row.split(",") for row in (folder / "ratings.csv").read_text().splitlines()[1:]]
    lines = ["userId,title,rating", *(f"{u},{names[m]},{r}" for u, m, r, _ in rows)]
    (folder / "titled.csv").write_text("\n".join(lines) + "\n")
    done = run(folder, "fit", "-a", "titled.csv", "-f", "movies.csv", "--out", "titled.likeminds")
    assert done.code == 0, done.err
    assert "'title' as the items" in done.out
    ask = ("--user", "3", "--top", "5")
    by_title = told(folder, "rank", "titled.likeminds", *ask)["rankings"]
    assert by_title == told(folder, "rank", "films.likeminds", *ask)["rankings"]


def test_a_table_without_items_is_named(films):
    folder, _ = films
    (folder / "no_item.csv").write_text("userId,rating\nzoe,1\n")
    done = run(folder, "newcomer", "films.likeminds", "--annotations", "no_item.csv")
    assert done.code != 0
    assert "features" not in done.err
