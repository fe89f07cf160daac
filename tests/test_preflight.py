import pytest
import torch
from helpers import write_rows
from transformers import (
    AlbertConfig,
    AlbertModel,
    AutoTokenizer,
    LongformerConfig,
    LongformerModel,
)

from sentigeo.data.tables import read_packaged
from sentigeo.encoder.encoder import load_encoder
from sentigeo.errors import UserError
from sentigeo.paths import list_chapters
from sentigeo.preflight import ATTENTION, DEEP, KEYWORDS, check_run, recall_run
from sentigeo.profile import load_profile

SMALL = {"max_length": 48, "labels": {}, "draw_per_label": 20, "deep_sets": ["reviews"]}


@pytest.fixture
def small(tmp_path, tiny_bert):
    """A profile of few texts and the tiny BERT, with any keys changed."""
    rows = [
        {"text": f"word{number % 4} and another {number}", "label": "ab"[number % 2]}
        for number in range(60)
    ]
    own = {"reviews": str(write_rows(tmp_path / "own.json", rows)), "model": str(tiny_bert)}
    return lambda **changes: load_profile("quick", **{**SMALL, **own, **changes})


@pytest.fixture
def polar(tmp_path, tiny_bert):
    """A profile of few English reviews, negative and positive, with any keys changed."""
    labels = {"a": "negative", "b": "positive"}
    rows = [{"text": f"word{n % 4} and another {n}", "label": "ab"[n % 2]} for n in range(400)]
    own = {"reviews": str(write_rows(tmp_path / "own.json", rows)), "model": str(tiny_bert)}
    kept = {**SMALL, **own, "labels": labels, "draw_per_label": 100}
    return lambda **changes: load_profile("quick", **{**kept, **changes})


def test_what_may_be_skipped_is_a_chapter():
    assert {KEYWORDS, ATTENTION, DEEP} <= {path.stem for path in list_chapters()}


@pytest.fixture(scope="module")
def shipped(tmp_path_factory):
    """What is found for the packaged encoder and some of the packaged reviews, a few very long."""
    reviews = read_packaged("imdb")
    longest = reviews["text"].str.len().nlargest(40).index
    chosen = longest.union(reviews.groupby("label").head(200).index)
    path = tmp_path_factory.mktemp("shipped") / "reviews.json"
    write_rows(path, reviews.loc[chosen].to_dict("records"))
    return check_run(load_profile("quick", reviews=str(path)))


def test_shipped_profile_skips_nothing(shipped):
    assert shipped.skipped == {}


@pytest.mark.parametrize("kind", ["tiny_distilbert", "tiny_roberta", "tiny_mpnet"])
def test_other_encoders_skip_nothing(small, kind, request):
    assert check_run(small(model=str(request.getfixturevalue(kind)))).skipped == {}


def test_encoder_without_a_mask(small, monkeypatch):
    encoder = load_encoder(small().model)
    encoder.tokenizer.mask_token = None
    monkeypatch.setattr("sentigeo.encoder.encoder.load_encoder", lambda *_: encoder)
    assert list(check_run(small()).skipped) == [DEEP]
    assert "has no mask" in check_run(small()).skipped[DEEP]


def test_encoder_that_looks_at_some_tokens_only(small, tiny_roberta, tmp_path):
    folder = tmp_path / "longformer"
    AutoTokenizer.from_pretrained(tiny_roberta).save_pretrained(folder)
    torch.manual_seed(0)
    config = LongformerConfig(
        vocab_size=2000, hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
        intermediate_size=64, max_position_embeddings=66, attention_window=8,
    )  # fmt: skip
    LongformerModel(config).save_pretrained(folder)
    skipped = check_run(small(model=str(folder))).skipped
    assert list(skipped) == [ATTENTION]
    assert "does not return attention for every token" in skipped[ATTENTION]


def test_encoder_of_one_layer_used_again_and_again(small, tiny_bert, tmp_path):
    folder = tmp_path / "albert"
    AutoTokenizer.from_pretrained(tiny_bert).save_pretrained(folder)
    config = AlbertConfig(
        vocab_size=30522, embedding_size=16, hidden_size=32, num_hidden_layers=2,
        num_attention_heads=4, intermediate_size=64, max_position_embeddings=64,
    )  # fmt: skip
    AlbertModel(config).save_pretrained(folder)
    with pytest.raises(UserError, match="layers of a albert model cannot be found"):
        check_run(small(model=str(folder)))


def test_texts_without_words_in_common(small, tmp_path):
    rows = [{"text": 3 * chr(0x4E00 + n), "label": "ab"[n % 2]} for n in range(60)]
    reviews = str(write_rows(tmp_path / "words.json", rows))
    skipped = check_run(small(reviews=reviews)).skipped
    assert skipped == {KEYWORDS: "No word but stop words is used by 2 training reviews or more."}


def test_packaged_sets_are_english(small):
    assert check_run(small(language="de", deep_sets=["bbc_news", "reviews"])).skipped == {}
    skipped = check_run(small(language="de", deep_sets=["bbc_news"])).skipped
    assert skipped == {DEEP: "All of deep_sets are English; the language of this run is 'de'."}


@pytest.mark.parametrize("key", ["max_length", "deep_tokens"])
def test_budget_beyond_the_encoder_is_said_at_once(small, key):
    with pytest.raises(UserError, match=f"{key} is 65, but tiny-bert.* at most 64 tokens: lower"):
        check_run(small(**{key: 65}))


def test_text_set_that_cannot_be_used_is_an_error(small):
    with pytest.raises(UserError, match="There is no"):
        check_run(small(deep_sets=["nowhere.csv"]))


def test_conditions_that_do_not_hold_have_reasons(small):
    unmet = check_run(small()).unmet
    others = {"long-reviews", "other-draws", "deep-epochs", "doses"}
    assert unmet.keys() == {"pairs", "films", "polarity"} | others
    assert unmet["polarity"] == "The classes are not negative and positive."
    assert unmet["long-reviews"] == "Too few reviews are longer than 64 tokens."
    unmet = check_run(small(language="de", deep_epochs=30, deep_draws=3)).unmet
    assert "'de'" in unmet["english"]
    assert "deep-epochs" not in unmet


def test_other_draws_need_twice_as_many_reviews_as_one_draw(small):
    # All reviews but the drawn 20 of each class are scored: enough for draws of 10, not of 11.
    assert "other-draws" not in check_run(small(validation_share=0.5)).unmet
    assert "too few reviews" in check_run(small(validation_share=0.45)).unmet["other-draws"]


def test_the_shipped_profile_lacks_nothing_but_long_runs(shipped):
    # "films" needs the packaged file as a whole, of which these reviews are a part
    assert shipped.unmet.keys() <= {"deep-epochs", "other-draws", "films"}


def test_what_was_found_is_remembered(small):
    profile = small(seeds=3)
    assert recall_run(profile) is None
    found = check_run(profile)
    assert recall_run(profile) == found
    assert recall_run(small(model="owner/model")) is None


def test_other_pairs_of_ones_own_are_checked_again(polar, tmp_path):
    rows = [{"pair": 1, "label": label, "text": f"word {label}"} for label in "ab"]
    path = write_rows(tmp_path / "pairs.json", rows)
    profile = polar(contrast_pairs=str(path))
    found = check_run(profile)
    assert recall_run(profile) == found
    write_rows(path, rows[::-1])
    assert recall_run(profile) is None


def test_doses_need_enough_reviews(polar):
    assert "doses" not in check_run(polar()).unmet
    why = check_run(polar(doses=[8, 32])).unmet["doses"]
    assert why.startswith("There are too few texts (validation) for doses of up to 32")


def test_own_pairs_need_reviews_that_fit(small, tmp_path):
    sides = [{"pair": "p", "label": label, "text": f"text {label}"} for label in "ab"]
    path = str(write_rows(tmp_path / "pairs.json", sides))
    with pytest.raises(UserError, match=r"^contrast_pairs cannot be scored .* classes are a, b"):
        check_run(small(contrast_pairs=path))
