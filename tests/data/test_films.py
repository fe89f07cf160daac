"""Films: blocks of rows that share rare words, matched across labels."""

import numpy as np
import pandas as pd
import pytest

from sentigeo.data.films import cut_blocks, group_films, match_in_order, restore_order

SIZES = {0: [4, 3, 6, 2, 5] * 4, 1: [3, 5, 2, 4, 6] * 4}


def file_order(n: int) -> np.ndarray:
    """Return the places in the release of a file's rows: runs of 128, each back to front."""
    return np.concatenate(
        [np.arange(start, min(start + 128, n))[::-1] for start in range(0, n, 128)]
    )


def make_rows(films: dict[int, list[str]], sizes: dict[int, list[int]]) -> pd.DataFrame:
    """Return rows as they lie in the file: each speaks of its film in words of its own."""
    parts = []
    for label, names in films.items():
        rows = [
            (f"{name}hero {name}town the plot was dull", label, name)
            for name, size in zip(names, sizes[label], strict=True)
            for _ in range(size)
        ]
        part = pd.DataFrame(rows, columns=["text", "label", "name"])
        parts.append(part.iloc[file_order(len(part))])
    return pd.concat(parts, ignore_index=True)


@pytest.fixture(scope="module")
def rows() -> pd.DataFrame:
    """Forty films: twenty with each label, of which the first eight are the same."""
    shared = [f"both{letter}" for letter in "abcdefgh"]
    films = {label: [*shared, *(f"only{label}{c}" for c in "abcdefghijkl")] for label in (0, 1)}
    return make_rows(films, SIZES)


def test_films_are_found_with_either_label(rows: pd.DataFrame) -> None:
    films = group_films(rows)
    assert films.shape == (len(rows),)
    assert pd.Series(films).groupby(rows["name"]).nunique().eq(1).all()
    assert rows["name"].groupby(films).nunique().eq(1).all()


def test_film_across_two_runs_of_the_file_is_one() -> None:
    sizes = {0: [20] * 12, 1: [20] * 12}  # the seventh film has places 120 to 139
    rows = make_rows({label: [f"f{label}{c}" for c in "abcdefghijkl"] for label in (0, 1)}, sizes)
    places = np.flatnonzero(rows["name"] == "f0g")
    assert np.ptp(places) > 200
    assert len(set(group_films(rows)[places])) == 1


def test_distant_rows_with_the_same_words_are_two_films() -> None:
    names = [f"f{c}" for c in "abcdefghijklmnopqrst"]
    names[-1] = names[0]  # the same words once more, 90 rows further on
    sizes = {0: [5] * 20, 1: [5] * 20}
    rows = make_rows({0: names, 1: [f"g{name}" for name in map(str, range(20))]}, sizes)
    films = group_films(rows)[rows["name"] == "fa"]
    assert sorted(np.unique(films, return_counts=True)[1]) == [5, 5]


def test_restored_order_turns_each_run_round() -> None:
    order = restore_order(np.arange(300))
    assert order[[0, 127, 128, 255, 256, 299]].tolist() == [127, 0, 255, 128, 299, 256]


def test_blocks_have_at_most_thirty_rows() -> None:
    blocks = cut_blocks(np.ones((30, 70)))
    assert np.bincount(blocks).max() == 30
    assert len(np.bincount(blocks)) == 3


def test_rows_without_similarity_stand_alone() -> None:
    assert cut_blocks(np.zeros((30, 4))).tolist() == [0, 1, 2, 3]


def test_matches_keep_the_order() -> None:
    similarity = np.array([[0.5, 0.0, 0.9], [0.0, 0.6, 0.0], [0.0, 0.0, 0.3]])
    assert sorted(match_in_order(similarity).tolist()) == [[0, 0], [1, 1], [2, 2]]


def test_nothing_is_matched_below_the_floor() -> None:
    assert match_in_order(np.full((2, 3), 0.01)).shape == (0, 2)
