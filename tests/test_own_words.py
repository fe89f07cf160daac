import numpy as np
import pandas as pd
import pytest

from sentigeo.decisions import Reading
from sentigeo.encoder import load_encoder
from sentigeo.own_texts import OwnTexts
from sentigeo.own_words import (
    describe_agreement,
    describe_choice,
    describe_clusters,
    describe_reading,
    describe_texts,
)

TEXTS = ["a day", "a night " * 20]
OWN = OwnTexts("my_own.json", np.array([1, 2]), TEXTS, TEXTS, None, [], ["From the field 'a*b'."])


def test_texts():
    assert describe_texts(OWN) == r"2 texts of my\_own.json. From the field 'a\*b'."


def test_reading(tiny_bert):
    reading = Reading(load_encoder(str(tiny_bert)), "mean", 32)
    said = describe_reading(reading, OWN)
    assert "(BertModel, 2 layers, 32 wide, weights " in said
    assert "pooling 'mean'. 1 of 2 texts have more than 32 tokens" in said
    whole = describe_reading(Reading(reading.encoder, "cls", 60), OWN)
    assert whole.endswith("read whole: none has more than 60 tokens.")


@pytest.mark.parametrize(
    ("stability", "words"),
    [(0.9, "are found again."), (0.6, "found again in part"), (0.2, "a cut through a cloud")],
)
def test_choice(stability, words):
    study = pd.DataFrame({"k": [2, 3], "stability": [stability - 0.1, stability], "error": 0.05})
    said = describe_choice(study, 3, False, 500)
    assert said.startswith("**k = 3**, chosen by stability.")
    assert f"with {stability:.2f} (standard error 0.05;" in said
    assert "n = 500 texts" in said
    assert words in said
    asked = describe_choice(study, 2, True, 500)
    assert asked.startswith("**k = 2**, as asked for.")
    assert asked.endswith(f"k = 2 has {stability - 0.1:.2f}.")
    assert describe_choice(study, 9, True, 500).startswith("**k = 9**")


def test_clusters_are_listed_and_texts_are_inert():
    overview = pd.DataFrame(
        {"cluster": [1, 2], "texts": [3, 1], "share": [0.75, 0.25], "keywords": ["cat, dog", ""]}
    )
    typical = pd.DataFrame({"cluster": [1, 1, 2], "text": ["<b>a</b>\n*b*", "c", "[d](e)"]})
    first, second = describe_clusters(overview, typical).split("\n")
    assert first == (
        r"- **Cluster 1**, 3 texts (75%): cat, dog. Most typical: &lt;b&gt;a&lt;/b&gt; \*b\*"
    )
    assert second == r"- **Cluster 2**, 1 texts (25%): no keywords. Most typical: \[d\](e)"


def test_agreement_has_intervals_and_chance():
    labels = np.array([0, 1] * 20)
    said = describe_agreement(labels, 1 - labels, labels, "mood")
    assert "labels 'mood' (n = 40): accuracy 1.000 [0.912, 1.000; n = 40]" in said
    assert "(dealt at random 0.500), adjusted Rand index 1.000 [1.000, 1.000; n = 40]" in said
