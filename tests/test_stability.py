import numpy as np
import pandas as pd
import pytest

from sentigeo.stability import pick_stable, possible_numbers, study_stability


def test_groups_that_are_there_are_found_again(three_groups):
    vectors, _ = three_groups
    study = study_stability(vectors, range(2, 6)).set_index("k")
    assert study.loc[3, "stability"] == 1
    assert study.loc[3, "error"] == 0
    assert (study.loc[[4, 5], "stability"] < 0.95).all()
    assert study["silhouette"].idxmax() == 3
    assert pick_stable(study.reset_index()) == 3


def test_an_even_cloud_has_no_clusters_to_be_found_again():
    cloud = np.random.default_rng(0).normal(size=(200, 20)).astype(np.float32)
    assert (study_stability(cloud, [3, 5])["stability"] < 0.3).all()


def test_neither_order_nor_repetition_matters(three_groups):
    vectors, _ = three_groups
    study = study_stability(vectors, [2, 4])
    again = study_stability(np.concatenate([vectors[::-1], vectors]), [2, 4])
    pd.testing.assert_frame_equal(study, again)


def test_the_largest_of_equally_stable_numbers_is_picked():
    study = pd.DataFrame({"k": [2, 3, 4], "stability": [0.9, 0.85, 0.5], "error": [0.06, 0.3, 0.3]})
    assert pick_stable(study) == 3
    assert pick_stable(study.assign(error=0.01)) == 2


@pytest.mark.parametrize(("different", "last"), [(5, 2), (12, 3), (39, 9), (500, 10)])
def test_possible_numbers(different, last):
    vectors = np.repeat(np.arange(different * 2.0).reshape(-1, 2), 3, axis=0)
    assert possible_numbers(vectors) == range(2, last + 1)
    study_stability(vectors, [last])
