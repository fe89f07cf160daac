import pytest

from sentigeo.data.literature import list_works, load_literature


def test_the_published_figures_are_whole():
    works, accuracies, others = load_literature()
    assert works["id"].is_unique
    assert not works.isna().any().any()
    assert works["year"].between(2019, 2023).all()
    assert works["url"].str.startswith("https://").all()
    assert set(accuracies["work"]) <= set(works["id"])
    assert not accuracies.isna().any().any()
    assert accuracies[["original", "edited"]].stack().between(0.5, 1).all()
    assert ((accuracies["originals"] + accuracies["edits"]) % 1707 == 0).all()
    assert set(others["mean_offset"]) == {
        "edited_part", "over_twice_the_reviews", "over_other_counterfactuals",
    }  # fmt: skip


def test_accuracies_on_both_sides_bound_consistency():
    _, accuracies, _ = load_literature()
    first = accuracies.iloc[0]
    # By hand: of 1,000 pairs 126 and 178 sides are wrong, so 178 to 304 pairs are.
    assert first["consistency_from"] == pytest.approx(1 - 0.304)
    assert first["consistency_to"] == pytest.approx(1 - 0.178)


def test_every_work_is_listed_once_with_its_link():
    works, _, _ = load_literature()
    listed = list_works(works)
    assert all(listed.count(f"]({url})") == 1 for url in works["url"])
    assert listed.index("Liu, Schwartz") < listed.index("Joshi and He")
