import numpy as np
import pandas as pd
import pytest
from matplotlib.colors import to_hex

from sentigeo.analysis.predictions import OUTCOMES
from sentigeo.figures.contrast import OUTCOME_COLOURS, plot_effects, plot_outcomes
from sentigeo.stats import Estimate, list_estimates


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
