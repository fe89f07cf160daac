from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from sentigeo.figures.maps import plot_maps
from sentigeo.figures.style import class_colours
from sentigeo.report.notebook import VISIBLE, Page, draw_png
from sentigeo.text import excerpt


@pytest.fixture
def page():
    return Page()


def test_tables_escape_texts_and_are_the_same_each_time(page, shown):
    frame = pd.DataFrame({"text": ['<script>alert(1)</script> & "so"'], "share": [0.12345]})
    page.table(frame, "A table.", {"share": "{:.1%}"})
    page.table(frame, "A table.", {"share": "{:.1%}"})
    html = shown[0]["text/html"]
    assert "<script>alert" not in html
    assert "&lt;script&gt;" in html
    assert "12.3%" in html
    assert shown[0] == shown[1]


def test_empty_table_says_so(page, shown):
    page.table(pd.DataFrame({"a": []}), "Nothing.")
    assert "None" in shown[0].data


def test_pictures_have_a_small_palette(page, shown, tmp_path):
    figure = Figure(figsize=(2, 1))
    figure.subplots().imshow([[0, 1], [2, 3]])
    page.picture(figure, tmp_path / "new/a.png", "Four squares.")
    with Image.open(tmp_path / "new/a.png") as picture:
        assert (picture.mode, picture.size) == ("P", (280, 140))
    assert shown[0].data == (tmp_path / "new/a.png").read_bytes()
    assert shown[1].data == "*Four squares.*"


def test_palette_does_not_mix_up_twenty_classes():
    labels, rng = np.arange(400) % 20, np.random.default_rng(0)
    middles = 3 * rng.normal(size=(20, 2))
    maps = {(a, b): rng.normal(size=(400, 2)) + middles[labels] for a in "xy" for b in "abc"}
    figure = plot_maps(maps, labels, [f"class {number}" for number in range(20)])
    with Image.open(BytesIO(draw_png(figure))) as picture:
        pixels = np.unique(np.asarray(picture.convert("RGB"), int).reshape(-1, 3), axis=0)
    for colour in class_colours(20):
        rgb = [int(colour[i : i + 2], 16) for i in (1, 3, 5)]
        assert np.abs(pixels - rgb).max(axis=1).min() <= VISIBLE, colour


def test_excerpt_ends_at_a_word_if_there_is_one():
    assert excerpt("a short review") == "a short review"
    assert excerpt("one two three four", 12) == "one two ..."
    unspaced = "x" * 300
    assert excerpt(unspaced, 20) == "x" * 16 + " ..."
