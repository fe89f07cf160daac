import numpy as np
import pandas as pd
import pytest

from sentigeo.encoder.encoder import load_encoder
from sentigeo.own_texts.read import OwnTexts, Reading
from sentigeo.own_texts.study import (
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
    assert whole.endswith("Every text is read whole: none has more than 60 tokens.")


STUDY = pd.DataFrame(
    {"k": [2, 3], "stability": [0.5, 0.9], "spread": 0.05, "cloud": 0.4, "lead": [0.1, 0.5]}
)


def test_the_choice_is_explained():
    said = describe_choice(STUDY, 3, False, 500)
    assert said.startswith("**k = 3**, chosen by stability. Clusters found in either half")
    assert "agree to 0.90 " in said
    assert "standard deviation 0.05; n = 500 different texts" in said
    assert said.endswith("to 0.40. So these are groups that are found again.")


def test_a_number_that_was_asked_for_is_judged_itself():
    said = describe_choice(STUDY, 2, True, 500)
    assert said.startswith("**k = 2**, as asked for; k = 3 would be chosen by stability.")
    assert "agree to 0.50 " in said
    assert said.endswith("a cut through a cloud rather than for groups.")
    assert describe_choice(STUDY, 9, True, 30).endswith(
        "Halves of n = 30 texts are too small to try so many."
    )


@pytest.mark.parametrize(
    ("study", "why"),
    [
        (STUDY.assign(lead=[0.1, 0.15]), "because no number stands out"),
        (STUDY.head(1), "because there are too few texts to choose"),
    ],
)
def test_where_there_is_nothing_to_choose(study, why):
    assert describe_choice(study, 2, False, 9).startswith(f"**k = 2**, {why}.")


def test_groups_in_part():
    assert "groups in part" in describe_choice(STUDY.assign(lead=0.3), 3, False, 9)


def test_clusters_are_listed_and_texts_are_inert():
    overview = pd.DataFrame(
        {"cluster": [1, 2], "texts": [3, 1], "share": [0.75, 0.25], "keywords": ["cat, dog", ""]}
    )
    typical = pd.DataFrame({"cluster": [1, 1, 2], "text": ["<b>a</b>\n*b*", "c", "[d](e)"]})
    first, second = describe_clusters(overview, typical).split("\n")
    assert first == (
        r"- **Cluster 1**, 75% (n = 3): cat, dog. Most typical: &lt;b&gt;a&lt;/b&gt; \*b\*"
    )
    assert second == r"- **Cluster 2**, 25% (n = 1): no keywords. Most typical: \[d\](e)"


def test_agreement_has_intervals_and_chance():
    labels = np.array([0, 1] * 20)
    said = describe_agreement(labels, 1 - labels, "mood")
    assert said.startswith("Agreement of k = 2 clusters with the 2 labels 'mood', where each")
    assert "one cluster: accuracy 1.000 [0.912, 1.000; n = 40]" in said
    assert "matched alike: 0.5" in said  # a little above a half
    assert "adjusted Rand index 1.000 [1.000, 1.000; n = 40]" in said
    more = describe_agreement(labels, np.arange(40) % 4, "mood")
    assert "one cluster (2 clusters are left without one): accuracy" in more
