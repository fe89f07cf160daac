"""Figure of dose and response."""

from collections.abc import Mapping

import pandas as pd
from matplotlib.figure import Figure

from sentigeo.figures import style
from sentigeo.figures.style import GREY, LINES, draw_line, split
from sentigeo.stats import unfold

ENDPOINTS = {
    "logit_difference": "logit difference (standard deviations)",
    "consistency": "consistency",
    "rank_accuracy": "rank accuracy",
    "test_accuracy": "test accuracy",
}
# The name, colour and line of each kind of dose.
KINDS = {
    "handcrafted": ("n handcrafted samples", LINES[1], "o-"),
    "edited": ("n edited pairs", LINES[0], "o-"),
    "edited, weighted": ("n edited pairs, weight 5", LINES[0], "s--"),
    "shuffled": ("n edited pairs, labels shuffled", LINES[2], "o-"),
    "ordinary": ("n ordinary reviews", GREY, "o-"),
    "ordinary, twice": ("2n ordinary reviews", GREY, "s--"),
}


def plot_doses(effects: pd.DataFrame, smallest: Mapping[str, float]) -> Figure:
    """Show the `estimate` of change by `kind` and `dose`, one panel for each `endpoint`.

    Effects are of one tier; `smallest` has the smallest effect of interest by endpoint.
    """
    figure, axes = style.new_figure(4.0, columns=len(smallest))
    doses = [0, *sorted(effects["dose"].unique())]
    groups = split(unfold(effects), "endpoint")
    for axis, (endpoint, effect) in zip(axes, smallest.items(), strict=True):
        band = "below the smallest effect of interest"
        axis.axhspan(-effect, effect, color=GREY, alpha=0.12, lw=0, label=band)
        axis.axhline(0, color=GREY, lw=1)
        for kind, rows in split(groups[endpoint], "kind").items():
            name, colour, line = KINDS[kind]
            places = [0, *(doses.index(dose) for dose in rows["dose"])]
            low, value, high = ([0, *rows[part]] for part in ("low", "value", "high"))
            draw_line(axis, places, value, colour, label=name, fmt=line)
            axis.fill_between(places, low, high, color=colour, alpha=0.2, lw=0)
        axis.set_xticks(range(len(doses)), [str(dose) for dose in doses])
        axis.set(title=ENDPOINTS[endpoint], xlabel="dose n")
    axes[0].set_ylabel("change against dose 0")
    handles, names = axes[0].get_legend_handles_labels()
    figure.legend(handles, names, loc="outside lower center", ncols=3, frameon=False)
    return figure
