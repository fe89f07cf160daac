import base64
import re
from io import BytesIO

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from sentigeo.figures.maps import plot_maps
from sentigeo.figures.style import class_colours
from sentigeo.report.page import VISIBLE, Page, draw_png, write_cell
from sentigeo.stats import Estimate


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


def test_captions_and_column_headers_are_escaped(page, shown):
    page.table(pd.DataFrame({"<b>&": [1]}), "<script>alert(1)</script>")
    html = shown[0]["text/html"]
    assert "<script" not in html
    assert '<th class="number">&lt;b&gt;&amp;</th>' in html


def test_tables_write_estimates_and_numbers_by_themselves(page, shown):
    frame = pd.DataFrame(
        {
            "kind": ["a", None],
            "estimate": [Estimate(0.5, 0.4, 0.6, 1000), Estimate(0.1, -0.1, 0.3, 20, signed=True)],
            "texts": [1234, 5],
            "share": [0.25, float("nan")],
        }
    )
    page.table(frame, "A table.", {"share": "{:.0%}"})
    rows = re.findall(r"<tr>(.*?)</tr>", shown[0]["text/html"])
    cells = [re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row) for row in rows]
    assert cells == [
        ["kind", "estimate", "texts", "share", "n"],
        ["a", "0.500 [0.400,\u00a00.600]", "1,234", "25%", "1,000"],
        ["-", "+0.100 [-0.100,\u00a0+0.300]", "5", "-", "20"],
    ]
    page.table(frame.assign(n=[1, 2]), "A table.", {"estimate": "{:.1%}"})
    assert "50.0% [40.0%,\u00a060.0%]" in shown[1]["text/html"]


def test_numbers_by_themselves():
    assert write_cell(0.87349) == "0.873"
    assert write_cell(1234) == "1,234"
    assert write_cell(-0.0001) == "0.000"
    nan = float("nan")
    for nothing in (None, nan, Estimate(nan, nan, nan, 9)):
        assert write_cell(nothing) == "-"


@pytest.mark.parametrize("text", ["0.5 [0.4, 0.6]", "2.4e-07", "3 s", "+0.01", "1,234", "nan", ""])
def test_what_a_number_looks_like(page, shown, text):
    page.table(pd.DataFrame({"a": [text]}), "A table.")
    assert f'<td class="number">{text}</td>' in shown[0]["text/html"]


@pytest.mark.parametrize("text", ["v2", "3 of 4", "2024-01-01", "1."])
def test_what_does_not_look_like_a_number(page, shown, text):
    page.table(pd.DataFrame({"a": [text, "1"]}), "A table.")
    assert f"<td>{text}</td>" in shown[0]["text/html"]


def test_empty_table_says_so(page, shown):
    page.table(pd.DataFrame({"a": []}), "Nothing.")
    assert "None" in shown[0]["text/html"]


def test_pictures_have_a_small_palette(page, shown, tmp_path):
    figure = Figure(figsize=(2, 1))
    figure.subplots().imshow([[0, 1], [2, 3]])
    page.picture(figure, tmp_path / "new/a.png", "Four squares.")
    with Image.open(tmp_path / "new/a.png") as picture:
        assert (picture.mode, picture.size) == ("P", (280, 140))
    assert base64.b64decode(shown[0]["image/png"]) == (tmp_path / "new/a.png").read_bytes()
    assert "Four squares." in shown[1]["text/html"]


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
