import json
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
import pytest
from helpers import write_rows
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

from sentigeo.data import handcrafted, tables
from sentigeo.data.handcrafted import (
    apply_edits,
    draw_dose,
    identify_own_pairs,
    load_challenge,
    load_contrastive,
    load_easier_pairs,
    load_natural_pairs,
    load_own_pairs,
    load_senses,
    show_pairs,
    take_dose,
    why_unfit,
)
from sentigeo.data.reviews import near_duplicates
from sentigeo.data.tables import read_packaged
from sentigeo.errors import UserError
from sentigeo.paths import DATA
from sentigeo.profile import load_profile
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


NEAR = 50  # rows of the packaged file


@pytest.fixture(scope="module")
def natural():
    return load_natural_pairs()


@pytest.fixture(scope="module")
def easier():
    return load_easier_pairs()


def test_edits_are_counted_in_the_text_as_it_was():
    edits = [(2, 3, "good"), (12, 0, "Not a "), (16, 4, "")]
    assert apply_edits("A bad film. Dull day.", edits) == "A good film. Not a Dull."


def test_every_edit_rebuilds_to_its_hash_and_there_are_enough(natural):
    sizes = natural.groupby("part")["pair"].nunique()
    assert sizes["test"] >= 120
    assert sizes["train"] >= 128
    assert natural["pair"].nunique() >= 250
    assert (natural.groupby("pair")["label"].agg(sorted).map(tuple) == (0, 1)).all()


def test_edits_that_do_not_fit_are_refused(tmp_path, monkeypatch):
    line = json.loads((DATA / "natural_pairs.jsonl").read_text().splitlines()[0])
    line["edits"][0][0] += 1
    (tmp_path / "natural_pairs.jsonl").write_text(json.dumps(line))
    monkeypatch.setattr(handcrafted, "DATA", tmp_path)
    with pytest.raises(UserError, match=f"edits of pair {line['pair']} do not fit"):
        load_natural_pairs()


def test_originals_have_the_label_of_their_review_and_none_was_drawn(natural):
    packaged = read_packaged("imdb")
    labels = packaged["label"].astype(int)
    originals = natural[~natural["edited"]]
    assert (labels.iloc[originals["row"]].to_numpy() == originals["label"]).all()
    drawn = [
        labels[labels == label].sample(2500, random_state=42).index  # the draw of the study
        for label in (1, 0)
    ]
    assert not set(originals["row"]) & set(drawn[0].append(drawn[1]))


def test_no_two_reviews_stand_near_each_other(natural):
    rows = natural.loc[natural["edited"], "row"].sort_values()
    assert rows.diff().min() > NEAR


def test_edits_are_small_and_reviews_of_middle_length(natural):
    words = natural["text"].str.split()
    assert words.str.len().between(40, 250).all()
    for before, after in zip(words[::2], words[1::2], strict=True):
        matched = SequenceMatcher(None, before, after, autojunk=False).get_matching_blocks()
        assert 1 - sum(block.size for block in matched) / max(len(before), len(after)) < 0.45


def test_easier_pairs_differ_in_few_words_and_in_their_label(easier):
    assert easier.groupby("tier")["pair"].nunique().min() >= 50
    for _, sides in easier.groupby("pair"):
        assert sorted(sides["label"]) == [0, 1]
        left, right = sides["text"].str.lower().str.split()
        matched = SequenceMatcher(None, left, right, autojunk=False).get_matching_blocks()
        assert max(len(left), len(right)) - sum(block.size for block in matched) <= 12


def test_easier_pairs_repeat_no_other_handcrafted_text(easier):
    others = [pd.read_csv(DATA / name)["text"] for name in
              ("contrastive_train.csv", "challenge_pairs.csv")]  # fmt: skip
    firsts, train = easier.drop_duplicates("pair")["text"], others[0]
    assert near_duplicates(pd.concat([firsts, others[1].iloc[::2]]), overlap=0.2).empty
    alike = near_duplicates(pd.concat([firsts, train]), overlap=0.2)
    assert (alike["first"] >= len(firsts)).all()  # sides of one training pair are alike


# A user's own pairs

CLASSES = ["negative", "positive"]
PAIRS = [
    {"pair": "a", "label": 0, "text": "Dull."},
    {"pair": "b", "label": 1, "text": "I was <br />not bored."},
    {"pair": "a", "label": 1, "text": "Fun."},
    {"pair": "b", "label": 0, "text": "I was bored."},
]


def own_profile(path, **changes):
    return load_profile("quick", contrast_pairs=str(path), **changes)


@pytest.mark.parametrize("ending", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_own_pairs_stand_together_clean(tmp_path, ending):
    frame, path = pd.DataFrame(PAIRS), tmp_path / f"own.{ending}"
    writers = {
        "csv": lambda: frame.to_csv(path, index=False),
        "tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "json": lambda: frame.to_json(path, orient="records"),
        "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        "parquet": lambda: frame.to_parquet(path),
    }
    writers[ending]()
    found = load_own_pairs(own_profile(path), CLASSES)
    assert found.columns.tolist() == ["pair", "label", "phenomenon", "text"]
    assert found.to_numpy().tolist() == [
        ["a", 0, "own", "Dull."],
        ["a", 1, "own", "Fun."],
        ["b", 1, "own", "I was not bored."],
        ["b", 0, "own", "I was bored."],
    ]


def test_names_can_be_numbers_and_phenomena_are_kept(tmp_path):
    more = [{"phenomenon": kind} for kind in ("x", None, "x", "")]
    rows = [row | {"pair": ord(row["pair"])} | own for row, own in zip(PAIRS, more, strict=True)]
    found = load_own_pairs(own_profile(write_rows(tmp_path / "own.json", rows)), CLASSES)
    assert found["pair"].tolist() == ["97", "97", "98", "98"]
    assert found["phenomenon"].tolist() == ["x", "x", "own", "own"]


@pytest.mark.parametrize(
    ("written", "labels", "classes"),
    [
        ([0, 1], {"0": "negative", "1": "positive"}, CLASSES),
        (["negative", "positive"], {"0": "negative", "1": "positive"}, CLASSES),
        (["bad", "good"], {"bad": "negative", "good": "positive"}, CLASSES),
        ([1, 2], {"1": "negative", "2": "positive"}, CLASSES),  # the reviews' labels come first
        ([0, 1], {"1": "negative", "2": "positive"}, CLASSES),  # these can only be class numbers
        (["bad", "fair"], {}, ["bad", "fair", "good"]),
    ],
)
def test_labels_are_those_of_the_reviews_or_classes(tmp_path, written, labels, classes):
    rows = [row | {"label": written[row["label"]]} for row in PAIRS]
    profile = own_profile(write_rows(tmp_path / "own.json", rows), labels=labels)
    assert load_own_pairs(profile, classes)["label"].tolist() == [0, 1, 1, 0]


def changed(row, **cells):
    return [own | (cells if number == row else {}) for number, own in enumerate(PAIRS, start=1)]


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([{"pair": "a", "text": "Fun."}], "no column 'label'; its columns are pair, text"),
        ([{"label": "1", "text": "Fun."}], "no column 'pair'; its columns are label, text"),
        ([{"pair": "a", "label": 1}], "no column 'text'"),
        (changed(3, label="fine"), "column 'label', row 3: unknown label 'fine'; use 0, 1 or "
                                   "negative, positive, the same throughout"),
        (changed(3, label="positive"), "row 3: unknown label 'positive'; use 0, 1 or"),
        (changed(3, label=None), "column 'label': no label in row 3"),
        (changed(2, pair=None), "column 'pair': no name in row 2"),
        (changed(2, text=" "), "column 'text': empty or not text in row 2"),
        (changed(2, text="<br />"), "column 'text': only mark-up in row 2"),
        (PAIRS[:3], "pair 'b': 1 text(s) of 1 class(es); a pair is two texts"),
        (changed(3, label=0), "pair 'a': 2 text(s) of 1 class(es)"),
        ([*PAIRS, PAIRS[0]], "pair 'a': 3 text(s) of 2 class(es)"),
        ([], "holds no rows"),
    ],
)  # fmt: skip
def test_bad_own_pairs(tmp_path, rows, words):
    path = write_rows(tmp_path / "own.json", rows)
    with pytest.raises(UserError) as error:
        load_own_pairs(own_profile(path), CLASSES)
    assert words in str(error.value)
    assert "own.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_own_pairs_that_are_nowhere():
    with pytest.raises(UserError, match=r"no file nowhere\.csv"):
        load_own_pairs(own_profile("nowhere.csv"), CLASSES)


def test_own_pairs_of_a_hub(monkeypatch):
    def read(name, revision):
        assert (name, revision) == ("some/pairs", None)
        return hub.pop(0)

    hub = [pd.DataFrame(rows) for rows in (PAIRS, PAIRS, PAIRS, PAIRS[::-1])]
    monkeypatch.setattr(tables, "read_file_or_hub", read)
    profile = own_profile("some/pairs")
    assert load_own_pairs(profile, CLASSES)["label"].tolist() == [0, 1, 1, 0]
    first, same, other = (identify_own_pairs(profile) for _ in range(3))
    assert first == same != other


def test_no_pairs_of_ones_own():
    found = load_own_pairs(load_profile("quick"), CLASSES)
    assert found.empty
    assert found.columns.tolist() == ["pair", "label", "phenomenon", "text"]


def test_own_pairs_are_identified_by_what_they_hold(tmp_path):
    path = write_rows(tmp_path / "own.json", PAIRS)
    before = identify_own_pairs(own_profile(path))
    write_rows(path, PAIRS[::-1])
    assert identify_own_pairs(own_profile(path)) not in (before, None)
    assert identify_own_pairs(load_profile("quick")) is None
