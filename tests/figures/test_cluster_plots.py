import numpy as np
import pandas as pd
import pytest

from sentigeo.figures.clusters import (
    plot_confusions,
    plot_k_study,
    plot_keywords,
    plot_labels_and_clusters,
    plot_leans,
)


def words_of(figure):
    figure.draw_without_rendering()
    return {
        text.get_text() for axis in figure.axes for text in axis.findobj(match=type(axis.title))
    }


def test_maps_stand_side_by_side():
    points = np.random.default_rng(0).normal(size=(12, 2))
    maps = {(t, m): points for t in ("before", "after") for m in ("PCA", "t-SNE")}
    members = {"before": np.arange(12) % 3, "after": np.arange(12) % 2}
    figure = plot_labels_and_clusters(maps, np.arange(12) % 2, ["bad", "good"], members)
    assert len(figure.axes) == 8
    assert {"PCA, label", "PCA, cluster", "t-SNE, label"} <= words_of(figure)
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names == ["bad", "good", "cluster 1", "cluster 2", "cluster 3"]
    shown = [axis.collections[0] for axis in figure.axes[:2]]
    first, second = ({tuple(c) for c in own.get_facecolors()} for own in shown)
    assert not first & second  # a cluster never has the colour of a class


def test_study_of_k_has_four_panels():
    study = pd.DataFrame(
        {"k": [1, 2], "inertia": [4.0, 1.0], "silhouette": [np.nan, 0.5], "gap": [0.1, 0.2],
         "gap_error": [0.01, 0.01], "ari": [0.0, 1.0]}
    )  # fmt: skip
    figure = plot_k_study({"before": study, "after": study})
    assert len(figure.axes) == 4
    line = figure.axes[0].lines[0]
    assert line.get_ydata().tolist() == [1.0, 0.25]


def test_confusions_show_counts_and_shares():
    table = pd.DataFrame([[3, 1, 0], [0, 0, 4]], index=["bad", "good"], columns=["x", "y", "z"])
    figure = plot_confusions({"clusters": table, "classifier": table.iloc[:, :2]})
    assert {"3\n75.0%", "4\n100.0%", "bad", "z", "clusters\n(n = 8)"} <= words_of(figure)


def test_confusions_of_many_classes_show_counts_only():
    names = [f"class {number}" for number in range(20)]
    figure = plot_confusions({"clusters": pd.DataFrame(7 * np.eye(20, dtype=int), names, names)})
    cells = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(set(cells)) == ["", "7"]
    assert cells.count("7") == 20


def test_keywords_face_each_other():
    top = pd.DataFrame(
        {"cluster": [0, 0, 1, 2], "term": ["bad", "dull", "great", "tall"], "score": [3.0, 1, 2, 1]}
    )
    figure = plot_keywords({"z": top}, ["one", "two", "three"])
    assert {"bad", "dull", "great", "tall", "one", "two", "three"} <= words_of(figure)
    left, right = figure.axes[:2]
    assert left.get_xlim() == pytest.approx((3.12, 0.0))
    assert right.get_xlim() == pytest.approx((0.0, 3.12))


def test_leans_have_a_row_a_list():
    frame = pd.DataFrame({"name": ["a", "a", "b"], "lean": [1.0, -0.5, 0.3]})
    figure = plot_leans(frame, {"a": np.zeros(9), "b": np.linspace(-1, 1, 9)})
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["a", "b"]
