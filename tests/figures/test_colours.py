import numpy as np
import pytest

from sentigeo.figures.clusters import CLUSTER_COLOURS
from sentigeo.figures.style import see_colours, spread_colours


def to_rgb(colours):
    return np.array([[int(own[start : start + 2], 16) for start in (1, 3, 5)] for own in colours])


def test_see_colours_agrees_with_published_values():
    found = see_colours(np.array([[255, 255, 255], [0, 0, 0], [255, 0, 0]]))
    published = [[1, 0, 0], [0, 0, 0], [0.62796, 0.22486, 0.12585]]  # Ottosson (2020)
    np.testing.assert_allclose(found, published, atol=2e-5)


@pytest.mark.parametrize("count", [1, 5, 8])
def test_few_groups_have_the_given_colours(count):
    assert spread_colours(count, CLUSTER_COLOURS) == list(CLUSTER_COLOURS[:count])


def test_further_colours_keep_their_distance_and_stay_when_more_are_wanted():
    colours = spread_colours(24, CLUSTER_COLOURS)
    seen = see_colours(to_rgb(colours))
    apart = np.linalg.norm(seen[:, None] - seen, axis=2) + np.eye(24)
    assert apart.min() > 0.07
    assert spread_colours(40, CLUSTER_COLOURS)[:24] == colours
    assert len(set(spread_colours(2000, CLUSTER_COLOURS))) == 2000


def test_colours_without_a_base():
    assert len(set(spread_colours(12, ()))) == 12
