import numpy as np
import pandas as pd
import pytest

from sentigeo.figures.clusters import (
    plot_associations,
    plot_choice,
    plot_confusions,
    plot_courses,
    plot_k_study,
    plot_keywords,
    plot_sizes,
    plot_warming,
)

CONDITIONS = {"one": "first", "two": "second", "three": "third"}


def words_of(figure):
    figure.draw_without_rendering()
    return {
        text.get_text() for axis in figure.axes for text in axis.findobj(match=type(axis.title))
    }


def test_study_of_k_has_four_panels():
    study = pd.DataFrame(
        {"k": [1, 2], "inertia": [4.0, 1.0], "silhouette": [np.nan, 0.5], "gap": [0.1, 0.2],
         "gap_error": [0.01, 0.01], "ari": [0.0, 1.0]}
    )  # fmt: skip
    figure = plot_k_study({"before": study, "after": study})
    assert len(figure.axes) == 4
    line = figure.axes[0].lines[0]
    assert line.get_ydata().tolist() == [1.0, 0.25]
    names = [text.get_text() for text in figure.axes[0].get_legend().get_texts()]
    assert names == ["pretrained", "fine-tuned"]


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


def test_associations_have_one_row_per_list():
    frame = pd.DataFrame({"name": ["a", "a", "b"], "log_odds": [1.0, -0.5, 0.3]})
    figure = plot_associations(frame, {"a": np.zeros(9), "b": np.linspace(-1, 1, 9)})
    assert [text.get_text() for text in figure.axes[0].get_yticklabels()] == ["a", "b"]


def test_the_choice_is_marked():
    study = pd.DataFrame({"k": [2, 3], "stability": [0.5, 0.9], "spread": 0.1, "cloud": 0.3,
                          "lead": [0.2, 0.6], "silhouette": [0.2, 0.3]})  # fmt: skip
    for axis in plot_choice(study, 3).axes:
        assert axis.texts[0].get_text() == "k = 3"


def make_courses():
    return pd.DataFrame(
        {"set": name, "condition": condition, "draw": seed, "epoch": epoch,
         "accuracy": 0.5 + 0.1 * seed + 0.01 * epoch,
         "masked": np.nan if condition == "one" else 1.0}
        for name in ("news", "films")
        for condition in ("one", "three")
        for seed in (0, 1)
        for epoch in range(4)
    )  # fmt: skip


def test_courses_show_mean_and_range():
    figure = plot_courses(make_courses(), {"accuracy": "right", "masked": "loss"}, CONDITIONS)
    figure.draw_without_rendering()
    assert len(figure.axes) == 4
    assert [axis.get_title() for axis in figure.axes[:2]] == ["news", "films"]
    line = figure.axes[1].lines[0]
    assert np.allclose(line.get_ydata(), [0.55, 0.56, 0.57, 0.58])
    band = figure.axes[1].collections[0].get_datalim(figure.axes[1].transData)
    assert np.allclose([band.y0, band.y1], [0.5, 0.63])
    assert len(figure.axes[3].lines[0].get_ydata()) == 0  # no such loss, no line


def test_a_line_ends_where_a_draw_has_no_value():
    frame = make_courses()
    frame.loc[(frame["draw"] == 1) & (frame["epoch"] > 1), "accuracy"] = np.nan
    figure = plot_courses(frame, {"accuracy": "right"}, CONDITIONS)
    assert figure.axes[1].lines[0].get_xdata().tolist() == [0, 1]


def test_a_condition_keeps_its_colour():
    frame = make_courses()
    both = plot_courses(frame, {"accuracy": "right"}, CONDITIONS)
    alone = plot_courses(frame[frame["condition"] == "three"], {"accuracy": "right"}, CONDITIONS)
    assert both.axes[1].lines[1].get_color() == alone.axes[1].lines[0].get_color()
    names = [text.get_text() for text in alone.legends[0].get_texts()]
    assert names == ["third"]


def test_a_set_may_lack_a_condition():
    frame = make_courses()
    frame = frame[(frame["set"] == "films") | (frame["condition"] == "three")]
    figure = plot_courses(frame, {"accuracy": "right"}, CONDITIONS)
    lacking, complete = ([line.get_color() for line in axis.lines[:2]] for axis in figure.axes)
    assert lacking == complete
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["first", "third"]


def test_areas_fill_the_panel():
    shares = np.array([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])
    figure = plot_sizes({("news", "kl"): shares, ("news", "both"): shares})
    figure.draw_without_rendering()
    assert [axis.get_title() for axis in figure.axes] == ["kl", "both"]
    assert len(figure.axes[0].collections) == 2
    assert figure.axes[0].get_ylim() == (0, 1)


def test_warming_counts_epochs_from_one():
    figure = plot_warming({"news": [3.0, 2.0], "films": [4.0, 1.0]})
    assert figure.axes[0].lines[0].get_xdata().tolist() == [1, 2]
