import subprocess
import sys

import numpy as np
import pytest
from helpers import write_rows

from sentigeo.cache import Store
from sentigeo.data import reviews as reviews_module
from sentigeo.data.handcrafted import load_challenge, load_contrastive
from sentigeo.data.reviews import load_reviews, sample_test_pool
from sentigeo.encoder import load_encoder
from sentigeo.encoder.corpus import make_corpus, open_corpus
from sentigeo.encoder.tokens import count_tokens, encode_texts
from sentigeo.profile import load_profile

NAMED = {"bad": "negative", "good": "positive"}


@pytest.fixture(scope="module")
def encoder(tiny_bert):
    return load_encoder(str(tiny_bert))


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


def test_a_corpus_holds_every_text_of_the_report(profile, encoder, tmp_path):
    corpus = make_corpus(profile, encoder, Store(tmp_path / "cache"))
    reviews = load_reviews(profile)
    drawn = reviews[(reviews["split"] != "test") & (reviews["origin"] != "handcrafted")]
    for part in ("train", "validation"):
        assert corpus.texts_of(part) == drawn.loc[drawn["split"] == part, "text"].tolist()
    assert corpus.texts_of("test") == sample_test_pool(reviews, profile)["text"].tolist()
    assert corpus.texts_of("challenge") == load_challenge()["text"].tolist()
    assert corpus.texts_of("contrastive") == load_contrastive()["text"].tolist()
    assert corpus.labels_of("challenge").tolist() == load_challenge()["label"].tolist()
    assert corpus.classes == ["negative", "positive"]
    assert corpus.reviews().equals(reviews)
    assert corpus.source()["found"].str.endswith("<br />").all()


def test_its_tokens_are_those_of_its_texts(profile, encoder, tmp_path):
    corpus = make_corpus(profile, encoder, Store(tmp_path / "cache"))
    texts = corpus.texts["text"].tolist()
    assert corpus.tokens.sha256 == encode_texts(texts, encoder.tokenizer, 32).sha256
    assert corpus.lengths.tolist() == count_tokens(texts, encoder.tokenizer).tolist()
    assert open_corpus(corpus.folder).tokens.sha256 == corpus.tokens.sha256


def test_it_is_read_once(profile, encoder, tmp_path, monkeypatch):
    store = Store(tmp_path / "cache")
    first = make_corpus(profile, encoder, store)
    monkeypatch.setattr(reviews_module, "read_table", lambda path: 1 / 0)
    assert make_corpus(profile, encoder, store).folder == first.folder
    other = profile.model_copy(update={"deep_epochs": 7})  # a setting that it does not depend on
    assert make_corpus(other, encoder, store).folder == first.folder


def test_other_settings_are_another_corpus(profile, encoder, tmp_path):
    store = Store(tmp_path / "cache")
    longer = profile.model_copy(update={"max_length": 48})
    assert make_corpus(longer, encoder, store).folder != make_corpus(profile, encoder, store).folder


def test_classes_that_the_handcrafted_texts_do_not_know(profile, encoder, tmp_path):
    german = profile.model_copy(update={"language": "de"})
    corpus = make_corpus(german, encoder, Store(tmp_path))
    assert set(corpus.texts["part"]) == {"train", "validation", "test"}


def test_chapters_that_read_arrays_do_without_torch():
    rooms = ("maps", "clusters", "cluster_study", "keywords", "opinion_words", "cosines",
             "similarity", "predictions", "baselines")  # fmt: skip
    modules = [f"sentigeo.analysis.{name}" for name in rooms]
    modules += [
        f"sentigeo.figures.{name}" for name in ("maps", "clusters", "cosines", "interactive")
    ]
    modules += [
        "sentigeo.encoder.corpus_vectors",
        "sentigeo.report.notebook",
        "sentigeo.ledger.claims",
    ]
    code = (
        f"import sys, {', '.join(modules)}; print({{'torch', 'transformers'}} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
