import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_rgb

from sentigeo.figures.style import (
    CLUSTER_COLOURS,
    PALETTE,
    class_colours,
    cluster_colours,
    colour_clusters,
    colour_labels,
    stage,
)


def overview(k, keywords="cat, dog, cow, hen"):
    return pd.DataFrame({"cluster": range(1, k + 1), "keywords": keywords})


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_few_groups_have_the_colours_of_the_report(count):
    assert class_colours(count) == list(PALETTE[:count])
    assert cluster_colours(count) == list(CLUSTER_COLOURS[:count])


@pytest.mark.parametrize("pick", [class_colours, cluster_colours])
def test_the_colours_of_many_groups_keep_their_distance(pick):
    colours = np.array([to_rgb(colour) for colour in pick(20)])
    apart = np.linalg.norm(colours[:, None] - colours, axis=2) + np.eye(20)
    assert apart.min() > 0.04


@pytest.mark.parametrize("count", [2, 8, 20])
def test_clusters_have_other_colours_than_labels(count):
    clusters = colour_clusters(np.arange(count), overview(count))
    labels = colour_labels(np.arange(count), [str(number) for number in range(count)])
    assert not set(clusters.colours) & set(labels.colours)


def test_clusters_are_named_by_their_first_keywords():
    members = np.zeros(3, int)
    assert list(colour_clusters(members, overview(1)).names) == ["cluster 1: cat, dog, cow"]
    assert list(colour_clusters(members, overview(1, "")).names) == ["cluster 1"]


def test_stages_are_called_as_readers_call_them():
    assert [stage(name) for name in ("before", "after", "PCA")] == [
        "pretrained", "fine-tuned", "PCA"
    ]  # fmt: skip
