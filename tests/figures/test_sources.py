import numpy as np
import pandas as pd

from sentigeo.analysis.source_logs import load_sources
from sentigeo.figures.sources import plot_reruns, plot_source_logs


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
