from difflib import SequenceMatcher

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from sentigeo.data.handcrafted import (
    draw_dose,
    load_challenge,
    load_contrastive,
    load_senses,
    show_pairs,
    take_dose,
    why_unfit,
)
from sentigeo.data.reviews import near_duplicates, read_packaged
from sentigeo.errors import UserError
from sentigeo.text import clean_text, words

REQUIRED = {
    "sarcasm", "negation", "contrast_clause", "concession", "comparison", "temporal_reversal",
    "part_vs_whole", "understatement", "quoted_opinion", "thwarted_expectation",
    "sarcasm_vs_literal",
}  # fmt: skip


@pytest.mark.parametrize("dose", [0, 8, 32, 128])
def test_doses_are_balanced_and_nested(dose):
    samples = take_dose(load_contrastive(), dose)
    assert len(samples) == dose
    assert samples["label"].sum() * 2 == dose
    assert samples["id"].tolist() == load_contrastive()["id"].tolist()[:dose]


@pytest.mark.parametrize("dose", [8, 16, 128])
def test_random_doses_are_balanced_and_nested_by_seed(dose):
    labels = load_contrastive()["label"].to_numpy()
    most, drawn = draw_dose(labels, 144, seed=3), draw_dose(labels, dose, seed=3)
    assert sorted(most) == list(range(144))
    assert np.bincount(labels[drawn]).tolist() == [dose // 2, dose // 2]
    assert len({*drawn}) == dose
    half = draw_dose(labels, dose // 4 * 2, seed=3)
    assert drawn[: len(half)].tolist() == half.tolist()


def test_every_seed_draws_a_dose_of_its_own():
    labels = load_contrastive()["label"].to_numpy()
    draws = {tuple(draw_dose(labels, 8, seed)) for seed in range(10)}
    assert len(draws) == 10
    assert len({place for draw in draws for place in draw}) > 40
    assert tuple(draw_dose(labels, 8, 0)) in draws
    assert not len(draw_dose(labels, 0, 0))


def test_the_first_eight_are_the_core():
    samples = load_contrastive()
    assert samples["core"].tolist() == [True] * 8 + [False] * 136
    assert set(samples["phenomenon"][:8]) == {"sarcasm", "contrast_clause", "temporal_reversal"}


@pytest.mark.parametrize("dose", [7, 1000])
def test_impossible_dose(dose):
    with pytest.raises(UserError, match=f"A dose of {dose} contrastive samples"):
        take_dose(load_contrastive(), dose)


@pytest.mark.parametrize(
    ("classes", "language", "reason"),
    [
        (["negative", "positive"], "en", ""),
        (
            ["negative", "positive"],
            "de",
            "they are English, and the language of the reviews is 'de'",
        ),
        (["bad", "good"], "en", "they are negative or positive; the classes are bad, good"),
    ],
)
def test_why_texts_are_of_no_use(classes, language, reason):
    assert why_unfit(classes, language) == reason


def test_challenge_pairs_are_complete():
    challenge = load_challenge()
    pairs = challenge.groupby("pair")
    assert (pairs["label"].apply(sorted).map(tuple) == (0, 1)).all()
    assert (pairs["phenomenon"].first() == pairs["phenomenon"].last()).all()
    counts = challenge.drop_duplicates("pair")["phenomenon"].value_counts()
    assert counts.sum() >= 150
    assert set(counts.index) >= REQUIRED
    assert counts.drop("sarcasm").min() >= 10
    assert counts["sarcasm"] == 2  # few pairs are sarcastic on both sides
    assert challenge["id"].is_unique


def test_pairs_differ_in_a_few_words():
    for _, sides in load_challenge().groupby("pair"):
        first, second = (words(text) for text in sides["text"])
        edits = SequenceMatcher(None, first, second, autojunk=False).get_opcodes()
        changed = sum(max(j - i, m - k) for kind, i, j, k, m in edits if kind != "equal")
        assert 1 <= changed <= 8, sides["text"].tolist()


@pytest.mark.parametrize("texts", [load_challenge(), load_contrastive()])
def test_texts_have_the_length_of_a_short_review(texts):
    lengths = texts["text"].map(lambda text: len(words(text)))
    assert lengths.between(8, 60).all()
    assert (texts["text"] == texts["text"].map(clean_text)).all()


def phrases_of(text):
    """Five words each; texts that share fewer than three are no near-duplicates."""
    found = words(text)
    return zip(found, found[1:], found[2:], found[3:], found[4:], strict=False)


def test_no_near_duplicates_in_either_file_or_with_imdb():
    samples, challenge = load_contrastive(), load_challenge()
    texts = [*samples["text"], *challenge["text"]]
    phrases = {phrase for text in texts for phrase in phrases_of(text)}
    imdb = [clean_text(text) for text in read_packaged("imdb")["text"]]
    alike = [text for text in imdb if len(phrases.intersection(phrases_of(text))) >= 3]
    owner = np.array([*samples["id"], *challenge["pair"], *["imdb"] * len(alike)])
    found = near_duplicates([*texts, *alike], overlap=0.2)
    first, second = owner[found["first"]], owner[found["second"]]
    assert found[first != second].empty


def test_show_pairs_marks_differences():
    challenge = pd.DataFrame(
        {
            "pair": ["p1", "p1"],
            "label": [1, 0],
            "phenomenon": ["negation", "negation"],
            "text": ["It is fun to see.", "It is not fun to skip."],
        }
    )
    assert show_pairs(challenge)["text"].item() == "It is {not | -} fun to {skip. | see.}"


def test_word_senses_are_balanced_and_use_their_word_once():
    senses = load_senses()
    counts = senses.groupby(["word", "sense"]).size()
    assert counts.groupby("word").size().eq(2).all()
    assert counts.min() >= 20
    assert len(counts) >= 2 * (8 + 3)
    assert {"mouse", "sick", "unpredictable", "long"} <= set(senses["word"])
    for row in senses.itertuples():
        assert words(row.text).count(row.word) == 1, row.text
    assert not senses["text"].str.lower().duplicated().any()


def test_no_other_word_gives_a_sense_away():
    for (_, sense), own in load_senses().groupby(["word", "sense"]):
        used = pd.Series([word for text in own["text"] for word in {*words(text)}])
        telling = used[~used.isin(ENGLISH_STOP_WORDS) & (used.str.len() > 3)].value_counts()
        assert telling.drop(own["word"].iloc[0], errors="ignore").max() <= 4, (
            sense,
            telling.index[:3].tolist(),
        )
