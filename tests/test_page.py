import pandas as pd
import pytest
from matplotlib.figure import Figure
from PIL import Image

from sentigeo.page import Page, excerpt


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


def test_excerpt_ends_at_a_word_if_there_is_one():
    assert excerpt("a short review") == "a short review"
    assert excerpt("one two three four", 12) == "one two ..."
    unspaced = "x" * 300
    assert excerpt(unspaced, 20) == "x" * 16 + " ..."
