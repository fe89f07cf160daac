import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from helpers import store_corpus, write_rows

from sentigeo.cache import Store, is_whole, save_arrays
from sentigeo.data import tables
from sentigeo.data.films import group_films
from sentigeo.data.handcrafted import (
    load_challenge,
    load_contrastive,
    load_natural_pairs,
)
from sentigeo.data.reviews import load_reviews, sample_test_pool
from sentigeo.encoder.corpus import (
    TIERS,
    CorpusVectors,
    join_texts,
    make_corpus,
    open_corpus,
    open_corpus_vectors,
    save_corpus_vectors,
)
from sentigeo.encoder.tokens import count_tokens, encode_texts
from sentigeo.encoder.vectors import Vectors
from sentigeo.profile import load_profile

NAMED = {"bad": "negative", "good": "positive"}


@pytest.fixture
def profile(tmp_path):
    """Reviews of a person's own, two classes, short and long ones."""
    rng = np.random.default_rng(0)
    words = [" ".join(rng.choice(list("abcdefghij"), rng.integers(5, 90))) for _ in range(60)]
    rows = [
        {"text": f"{text}<br />", "label": ("bad", "good")[n % 2]} for n, text in enumerate(words)
    ]
    path = write_rows(tmp_path / "own.json", rows)
    return load_profile(
        "quick", reviews=str(path), labels=NAMED, draw_per_label=10, test_reviews=20, max_length=32
    )


def test_a_corpus_holds_every_text_of_the_report(profile, tiny, tmp_path):
    corpus = make_corpus(profile, tiny, Store(tmp_path / "cache"))
    reviews = load_reviews(profile)
    drawn = reviews[(reviews["split"] != "test") & (reviews["origin"] != "handcrafted")]
    for part in ("train", "validation"):
        assert corpus.texts_of(part) == drawn.loc[drawn["split"] == part, "text"].tolist()
    assert corpus.texts_of("test") == sample_test_pool(reviews, profile)["text"].tolist()
    assert corpus.texts_of("challenge") == load_challenge()["text"].tolist()
    assert corpus.texts_of("contrastive") == load_contrastive()["text"].tolist()
    assert corpus.labels_of("challenge").tolist() == load_challenge()["label"].tolist()
    for part in (*TIERS, "natural_train"):
        sides = corpus.texts.iloc[corpus.rows(part)].groupby("pair")["label"]
        assert len(sides) >= 20
        assert set(sides.apply(sorted).map(tuple)) == {(0, 1)}
    assert corpus.labels_of("sentence").tolist() == [0]
    assert corpus.texts["id"].is_unique
    assert not len(corpus.new_films())  # of one's own reviews films are not known
    assert corpus.classes == ["negative", "positive"]
    assert corpus.reviews().equals(reviews)
    assert corpus.source()["found"].str.endswith("<br />").all()


def test_its_tokens_are_those_of_its_texts(profile, tiny, tmp_path):
    corpus = make_corpus(profile, tiny, Store(tmp_path / "cache"))
    texts = corpus.texts["text"].tolist()
    assert corpus.tokens.sha256 == encode_texts(texts, tiny.tokenizer, 32).sha256
    assert corpus.lengths.tolist() == count_tokens(texts, tiny.tokenizer).tolist()
    assert open_corpus(corpus.folder).tokens.sha256 == corpus.tokens.sha256


def test_it_is_read_once(profile, tiny, tmp_path, monkeypatch):
    store = Store(tmp_path / "cache")
    first = make_corpus(profile, tiny, store)
    monkeypatch.setattr(tables, "read_table", lambda path: 1 / 0)
    assert make_corpus(profile, tiny, store).folder == first.folder
    other = profile.model_copy(update={"deep_epochs": 7})  # a setting that it does not depend on
    assert make_corpus(other, tiny, store).folder == first.folder


def test_other_settings_are_another_corpus(profile, tiny, tmp_path):
    store = Store(tmp_path / "cache")
    longer = profile.model_copy(update={"max_length": 48})
    assert make_corpus(longer, tiny, store).folder != make_corpus(profile, tiny, store).folder


def test_other_pairs_of_ones_own_are_another_corpus(profile, tiny, tmp_path):
    store, rows = Store(tmp_path / "cache"), [{"pair": 1, "label": n, "text": "x"} for n in (0, 1)]
    path = write_rows(tmp_path / "pairs.json", rows)
    own = profile.model_copy(update={"contrast_pairs": str(path)})
    found = {make_corpus(one, tiny, store).folder for one in (profile, own, own)}
    write_rows(path, rows[::-1])
    assert len(found | {make_corpus(own, tiny, store).folder}) == 3


def test_classes_that_the_handcrafted_texts_do_not_know(profile, tiny, tmp_path):
    german = profile.model_copy(update={"language": "de"})
    corpus = make_corpus(german, tiny, Store(tmp_path))
    assert set(corpus.texts["part"]) == {"train", "validation", "test"}


def test_chapters_that_read_arrays_do_without_torch():
    rooms = ("maps", "clusters", "cluster_study", "keywords", "opinion_words", "cosines",
             "neighbours", "predictions", "baselines")  # fmt: skip
    modules = [f"sentigeo.analysis.{name}" for name in rooms]
    modules += [
        f"sentigeo.figures.{name}" for name in ("maps", "clusters", "cosines", "interactive")
    ]
    modules += [
        "sentigeo.encoder.corpus",
        "sentigeo.report.notebook",
        "sentigeo.ledger.claims",
    ]
    code = (
        f"import sys, {', '.join(modules)}; print({{'torch', 'transformers'}} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"


@pytest.fixture(scope="module")
def films(drawn_reviews):
    """The film of every packaged review, by its id."""
    source = drawn_reviews.source
    return pd.Series(group_films(source), index=source["id"])


@pytest.fixture(scope="module")
def published(drawn_reviews, films):
    """The texts of the published report; films are grouped once."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sentigeo.encoder.corpus.group_films", lambda source: films.to_numpy())
        return join_texts(drawn_reviews, load_profile("laptop"))


def ids_of(texts, *parts):
    return texts.loc[texts["part"].isin(parts), "id"]


def test_pairs_to_score_on_share_no_text_with_anything_else(published):
    natural = load_natural_pairs()
    held_out = natural[natural["part"] == "test"]
    others = published[published["part"] != "natural"]
    assert not others["text"].isin(held_out["text"]).any()
    reviews = ids_of(published, "train", "validation", "test", "new_films")
    assert not reviews.isin([f"imdb-{row:05d}" for row in load_natural_pairs()["row"]]).any()
    rows = natural.groupby("part")["row"].agg(set)
    assert not rows["train"] & rows["test"]


def test_no_film_has_pairs_to_train_on_and_pairs_to_score_on(films):
    natural = load_natural_pairs()
    found = natural.groupby("part")["row"].agg(lambda rows: {*films.iloc[rows]})
    assert not found["train"] & found["test"]


def test_films_called_new_have_no_training_review(published, films):
    natural = load_natural_pairs()
    edited = films.iloc[natural.loc[natural["part"] == "train", "row"]]
    trained = {*films[ids_of(published, "train")], *edited}
    scored = published[published["part"].isin(["test", "new_films"])]
    known = films[scored["id"]].isin(trained).to_numpy()
    assert (scored["known_film"] == known).all()
    assert 0 < known.sum() < len(known)
    assert not scored.loc[scored["part"] == "new_films", "known_film"].any()
    assert published.drop(scored.index)["known_film"].isna().all()


def test_reviews_of_new_films_are_balanced(published):
    new = published[published["known_film"].eq(False)]
    most = load_profile("laptop").new_film_reviews
    assert new["label"].value_counts().to_dict() == {0: most // 2, 1: most // 2}
    assert not set(ids_of(published, "new_films")) & set(ids_of(published, "test"))


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def vectors(store):
    arrays = {"rows": np.arange(3), "vectors": np.array([[[1.0], [2.0], [3.0]]], np.float32)}
    shard = store.put("vectors", {"texts": 3}, lambda part: save_arrays(part, arrays))
    return Vectors(3, 0, ((0, "cls"),), (shard,))


@pytest.fixture
def found(store, vectors):
    corpus = store_corpus(store, ["x", "y", "<z>"], [0, 1, 0], ["train", "test", "test"])
    return CorpusVectors(corpus, vectors, vectors, {"test": np.array([[2.0, 0.0], [0.0, 1.0]])})


def test_vectors_of_a_corpus_are_read_back(found, store):
    again = open_corpus_vectors(save_corpus_vectors(found, store))
    assert again.corpus.texts_of("test") == ["y", "<z>"]
    assert again.logits["test"].tolist() == [[2.0, 0.0], [0.0, 1.0]]
    assert again.stages["after"].matrix().ravel().tolist() == [1, 2, 3]
    assert again.without is None
    both = open_corpus_vectors(save_corpus_vectors(replace(found, without=found.pretrained), store))
    assert both.without.matrix().ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize("lost", ["vectors", "corpus"])
def test_they_are_of_no_use_without_what_they_rest_on(found, store, lost):
    folder = save_corpus_vectors(found, store)
    assert is_whole(folder)
    damaged = found.pretrained.shards[0] if lost == "vectors" else found.corpus.folder
    next(damaged.glob("*.npy")).write_bytes(b"oops")
    assert not is_whole(folder)
