import base64
import json
import re

import numpy as np

from sentigeo.attention.attention import Attention
from sentigeo.figures.interactive import make_page, pack_weights

WORDS = ["[CLS]", "</script><b>good</b>", "[SEP]"]


def make(seed):
    weights = np.random.default_rng(seed).dirichlet(np.ones(3), size=(2, 4, 3))
    return Attention(WORDS, np.array([True, False, True]), weights)


def test_weights_survive_packing():
    attention = make(0)
    found = np.frombuffer(base64.b64decode(pack_weights(attention.weights)), np.uint8) / 255
    assert np.abs(found.reshape(2, 4, 3, 3) - attention.weights).max() < 0.002


def test_the_page_is_complete_and_no_text_breaks_it():
    page = make_page([{"before": make(0), "after": make(1)}], "Heads & <tails>")
    assert "Heads &amp; &lt;tails&gt;" in page
    assert "<b>good" not in page
    assert page.count("</script>") == 2
    assert not re.search(r"(src|href)=", page)  # nothing is loaded
    data = json.loads(re.search(r'id="data">(.*?)</script>', page, re.S)[1])
    assert (data["layers"], data["heads"]) == (2, 4)
    assert data["texts"][0]["words"] == WORDS
    assert list(data["texts"][0]["weights"]) == ["before", "after"]
