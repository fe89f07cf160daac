import numpy as np
import pandas as pd

from sentigeo.figures.clusters import plot_courses, plot_sizes, plot_stages, plot_warming

CONDITIONS = {"one": "first", "two": "second", "three": "third"}


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


def test_areas_fill_the_panel():
    shares = np.array([[0.5, 0.5], [0.9, 0.1], [1.0, 0.0]])
    figure = plot_sizes({("news", "kl"): shares, ("news", "both"): shares})
    figure.draw_without_rendering()
    assert [axis.get_title() for axis in figure.axes] == ["kl", "both"]
    assert len(figure.axes[0].collections) == 2
    assert figure.axes[0].get_ylim() == (0, 1)


def test_stages_stand_side_by_side():
    points = np.random.default_rng(0).normal(size=(6, 2))
    maps = {("news", "before"): points, ("news", "after"): points}
    figure = plot_stages(maps, {"news": np.arange(6) % 3}, {"news": ["a", "b", "c"]})
    figure.draw_without_rendering()
    assert [axis.get_title() for axis in figure.axes] == ["before", "after"]
    assert "(n = 6)" in figure.axes[0].get_ylabel()
    legend = [text.get_text() for text in figure.axes[1].get_legend().get_texts()]
    assert legend == ["a", "b", "c"]


def test_warming_counts_epochs_from_one():
    figure = plot_warming({"news": [3.0, 2.0], "films": [4.0, 1.0]})
    assert figure.axes[0].lines[0].get_xdata().tolist() == [1, 2]
