import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from sentigeo.analysis.predictions import OUTCOMES
from sentigeo.analysis.source_logs import load_sources
from sentigeo.figures.experiment import (
    OUTCOME_COLOURS,
    plot_doses,
    plot_effects,
    plot_outcomes,
    plot_reruns,
    plot_source_logs,
)
from sentigeo.stats import Estimate, list_estimates


def test_logs_have_intervals_and_the_impossible_value_is_marked():
    _, logs, _ = load_sources()
    left, right = plot_source_logs(logs).axes
    assert [len(axis.containers) for axis in (left, right)] == [5, 6]  # one point has no interval
    assert [line.get_label() for line in left.lines].count("impossible") == 1
    assert left.get_title() == "without contrastive samples (n = 13)"
    assert left.get_ylim() == right.get_ylim()


def test_reruns_show_every_run_and_how_many_gain_as_much_as_was_claimed():
    values = np.array([-0.5, -0.2, 0.0, 0.0, 0.1, 0.1, 0.3, 0.4])
    rows = {"run": np.arange(8), "with": values, "control": values[::-1] - 0.05}
    frame = pd.concat([pd.DataFrame(rows).assign(epoch=epoch) for epoch in ("last", "best")])
    last, best = plot_reruns(frame, {"last": 0.39, "best": 0.01}).axes
    for axis, claim, reached in ((last, 39, 1), (best, 1, 4)):
        bars = [(bar.get_x(), bar.get_height()) for bars in axis.containers for bar in bars]
        assert sum(height for _, height in bars) == 8
        assert sum(height for left, height in bars if left >= claim - 1e-6) == reached
        assert axis.lines[-1].get_xdata()[0] == claim
        words = [text.get_text() for text in axis.texts]
        assert words[0] == f"source study: +{claim}"
        assert words[2] == f"{reached / 8:.1%} with samples"
    assert last.texts[3].get_text() == "0.0% with reviews instead"
    assert last.get_ylabel() == "runs (of 8)"


def test_outcomes_are_stacked_and_their_shares_written_where_they_fit():
    columns = ["group", "name", *OUTCOMES, "n"]
    rows = [("natural", "without", 0.55, 0.4, 0.05, 120), ("natural", "TF-IDF", 0.2, 0.5, 0.3, 120),
            ("hard", "TF-IDF", 0.0, 1.0, 0.0, 168)]  # fmt: skip
    figure = plot_outcomes(pd.DataFrame(rows, columns=columns))
    natural, hard = figure.axes
    assert [axis.get_title() for axis in figure.axes] == ["natural (n = 120)", "hard (n = 168)"]
    assert [tick.get_text() for tick in natural.get_yticklabels()] == ["without", "TF-IDF"]
    begins = [[bar.get_x() for bar in bars] for bars in natural.containers]
    assert np.array(begins) == pytest.approx(np.array([[0, 0], [0.55, 0.2], [0.95, 0.7]]))
    assert [text.get_text() for text in natural.texts] == ["55", "20", "40", "50", "", "30"]
    assert hard.patches[1].get_y() + hard.patches[1].get_height() / 2 == pytest.approx(1.0)
    colours = [to_hex(bars[0].get_facecolor()).upper() for bars in hard.containers]
    assert colours == [OUTCOME_COLOURS[outcome][0] for outcome in OUTCOMES]
    assert [text.get_text() for text in figure.legends[0].get_texts()] == list(OUTCOMES)


def test_effects_stand_below_their_group_with_band_and_numbers():
    found = {("natural", "with 8"): Estimate(0.01, -0.02, 0.04, 120, True),
             ("natural", "positive control"): Estimate(0.3, 0.2, 0.4, 120, True),
             ("hard", "with 8"): Estimate(-0.1, -0.2, 0.0, 168, True)}  # fmt: skip
    figure = plot_effects(list_estimates(found, "group", "name"), 0.05, "with minus without")
    (axis,) = figure.axes
    ticks = axis.get_yticklabels()
    assert [tick.get_text() for tick in ticks] == [
        "natural", "with 8", "positive control", "hard", "with 8"
    ]  # fmt: skip
    assert [tick.get_fontweight() == "bold" for tick in ticks] == [True, False, False, True, False]
    first, second = (bars[0].get_xydata().tolist() for bars in axis.containers)
    assert first == [[0.01, 1.0], [0.3, 2.0]]
    assert second == [[-0.1, 4.0]]
    band = axis.patches[0]
    assert (band.get_x(), band.get_x() + band.get_width()) == pytest.approx((-0.05, 0.05))
    assert axis.lines[0].get_xdata() == [0, 0]
    assert [text.get_text() for text in axis.texts][1] == "+0.300 [+0.200,\u00a0+0.400]"


def test_doses_start_from_zero_and_have_bands():
    found = {
        (kind, dose, endpoint): Estimate(dose / 100, dose / 200, dose / 50, 9)
        for kind in ("edited", "ordinary")
        for dose in (8, 16)
        for endpoint in ("logit_difference", "consistency")
    }
    effects = list_estimates(found, "kind", "dose", "endpoint")
    figure = plot_doses(effects, {"consistency": 0.05})
    (axis,) = figure.axes
    assert axis.get_title() == "consistency"
    zero, edited, _ = axis.lines
    assert set(zero.get_ydata()) == {0}
    assert edited.get_xydata().tolist() == [[0, 0], [1, 0.08], [2, 0.16]]
    assert [text.get_text() for text in axis.get_xticklabels()] == ["0", "8", "16"]
    assert axis.patches[0].get_bbox().extents[[1, 3]].tolist() == [-0.05, 0.05]
    names = [text.get_text() for text in figure.legends[0].get_texts()]
    assert names[1:] == ["n edited pairs", "n ordinary reviews"]
