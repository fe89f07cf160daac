from sentigeo.figures.doses import plot_doses
from sentigeo.stats import Estimate, list_estimates


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
