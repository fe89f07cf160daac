import base64
import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from map_reader import read_data

from sentigeo.analysis.attention import Attention
from sentigeo.figures.attention import (
    make_page,
    plot_explanations,
    plot_grid,
    plot_head,
    plot_head_targets,
    plot_layer,
)

WORDS = ["[CLS]", "good", "film", "[SEP]"]


@pytest.fixture
def attention():
    weights = np.random.default_rng(0).dirichlet(np.ones(4), size=(2, 5, 4))
    return Attention(WORDS, np.array([True, False, False, True]), weights)


def test_small_maps_show_every_head(attention):
    figure = plot_layer(attention, 1)
    shown = [axis.images[0].get_array() for axis in figure.axes if axis.images]
    assert len(shown) == 5
    assert np.array_equal(shown[4], attention.weights[1, 4])


def test_one_head_has_its_words(attention):
    figure = plot_head({"before": attention, "after": attention}, 0, 2)
    for axis in figure.axes[:2]:
        assert [label.get_text() for label in axis.get_yticklabels()] == WORDS
        assert np.array_equal(axis.images[0].get_array(), attention.weights[0, 2])


def test_grids_name_layers_and_heads(attention):
    shares = np.random.default_rng(0).dirichlet(np.ones(3), size=(2, 5))
    figure = plot_head_targets(shares, ["same", "next", "other"])
    texts = [text.get_text() for text in figure.axes[0].texts]
    assert texts == [f"{value:.2f}" for value in shares.max(axis=-1).ravel()]
    values = {"before": np.full((2, 5), -0.1), "after": np.full((2, 5), 0.3)}
    figure = plot_grid(values, "gain", {"after": np.eye(2, 5, dtype=bool)})
    assert figure.axes[0].images[0].get_clim() == (-0.3, 0.3)
    assert figure.axes[1].collections[0].get_offsets().tolist() == [[0, 0], [1, 1]]
    assert [label.get_text() for label in figure.axes[0].get_xticklabels()] == list("12345")
    figure = plot_grid({"before": np.ones((2, 5)), "after": np.ones((1, 5))}, "gain")
    assert [len(axis.get_yticks()) for axis in figure.axes[:2]] == [2, 1]


def test_words_are_coloured_relative_to_the_largest():
    frame = pd.DataFrame({"word": ["a", "b"], "x": [0.5, -0.25], "y": [0.0, 0.0]})
    figure = plot_explanations({"before": frame}, ["x", "y"])
    assert figure.axes[0].images[0].get_array().tolist() == [[1, -0.5], [0, 0]]


def test_the_page_is_complete_and_no_text_breaks_it(attention):
    words = ["[CLS]", "</script><b>good</b>", "film", "[SEP]"]
    stages = dict.fromkeys(["before", "after"], replace(attention, words=words))
    page = make_page([stages], "A & <b>")
    assert "A &amp; &lt;b&gt;" in page
    assert "<b>good" not in page
    assert page.count("</script>") == 2
    assert not re.search(r"(src|href)=", page)  # nothing is loaded
    data = read_data(page)
    assert (data["layers"], data["heads"]) == (2, 5)
    assert data["texts"][0]["words"] == words
    weights = data["texts"][0]["weights"]
    assert list(weights) == ["pretrained", "fine-tuned"]
    found = np.frombuffer(base64.b64decode(weights["pretrained"]), np.uint8) / 255
    assert np.abs(found.reshape(2, 5, 4, 4) - attention.weights).max() < 0.002


def test_the_page_offers_the_layers_of_all_stages(attention):
    lower = replace(attention, weights=attention.weights[:1])
    data = read_data(make_page([{"before": attention, "after": lower}], "Heads"))
    assert (data["layers"], data["heads"]) == (1, 5)
