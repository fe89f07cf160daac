import json
from difflib import SequenceMatcher

import pandas as pd
import pytest
from helpers import write_rows

from sentigeo.data import contrast_pairs
from sentigeo.data.contrast_pairs import (
    apply_edits,
    identify_own_pairs,
    load_easier_pairs,
    load_natural_pairs,
    load_own_pairs,
)
from sentigeo.data.reviews import near_duplicates, read_packaged
from sentigeo.errors import UserError
from sentigeo.profile import load_profile

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
    line = json.loads((contrast_pairs.DATA / "natural_pairs.jsonl").read_text().splitlines()[0])
    line["edits"][0][0] += 1
    (tmp_path / "natural_pairs.jsonl").write_text(json.dumps(line))
    monkeypatch.setattr(contrast_pairs, "DATA", tmp_path)
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
    others = [pd.read_csv(contrast_pairs.DATA / name)["text"] for name in
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
    monkeypatch.setattr(contrast_pairs, "read_file_or_hub", read)
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
