import numpy as np
import pandas as pd
import pytest

from sentigeo.analysis.cluster_study import pick_stable, possible_numbers, study_stability


def test_groups_that_are_there_are_found_again(three_groups):
    vectors, _ = three_groups
    study = study_stability(vectors, range(2, 6)).set_index("k")
    assert study.loc[3, "stability"] == 1
    assert study.loc[3, "spread"] == 0
    assert study.loc[3, "lead"] > 0.4
    assert study["silhouette"].idxmax() == 3
    assert pick_stable(study.reset_index()) == 3


def test_a_long_cloud_is_cut_at_the_same_place_again_but_has_no_groups():
    scales = 1 / np.arange(1, 65)
    cloud = (np.random.default_rng(0).normal(size=(300, 64)) * scales).astype(np.float32)
    study = study_stability(cloud, [2, 3, 4])
    assert study["stability"].iloc[0] > 0.5
    assert study["cloud"].iloc[0] > 0.5
    assert (study["lead"] < 0.3).all()
    np.testing.assert_allclose(study["lead"], study["stability"] - study["cloud"])


def test_the_number_that_leads_most_is_picked():
    study = pd.DataFrame({"k": [2, 3, 4], "lead": [0.1, 0.5, 0.45]})
    assert pick_stable(study) == 3
    assert pick_stable(study.assign(lead=[-0.1, 0.1, 0.19])) == 2


@pytest.mark.parametrize(
    ("different", "asked", "numbers"),
    [
        (5, None, [2]),
        (12, None, [2, 3]),
        (500, None, list(range(2, 11))),
        (12, 6, [2, 3, 6]),
        (12, 7, [2, 3]),
        (500, 14, [*range(2, 11), 14]),
    ],
)
def test_possible_numbers(different, asked, numbers):
    assert possible_numbers(different, asked) == numbers
    vectors = np.random.default_rng(0).normal(size=(different, 2))
    study_stability(vectors, numbers[-1:])  # does not fail
