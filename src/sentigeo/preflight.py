"""What is found out before any notebook starts: whether a run can be made, and what it skips."""

from sentigeo.analysis.keywords import least_texts, share_a_term
from sentigeo.attention.attention import run_with_attention
from sentigeo.data.reviews import load_reviews
from sentigeo.data.text_sets import load_text_sets, usable_sets
from sentigeo.encoder.bert_layers import encoder_layers
from sentigeo.encoder.encoder import Encoder, load_encoder
from sentigeo.encoder.tokens import tokenize
from sentigeo.errors import UserError
from sentigeo.profile import Profile
from sentigeo.training.deep_encoder import check_masked_lm

KEYWORDS, ATTENTION, DEEP = "07_keywords", "10_attention", "11_deep_clustering"


def check_run(profile: Profile) -> dict[str, str]:
    """Refuse what no notebook could work with, and find the chapters that make no sense.

    Returns:
        Why each skipped chapter is skipped; for the shipped profiles there are none.

    Raises:
        UserError: Texts or encoder cannot be used.
    """
    reviews = load_reviews(profile)
    encoder = load_encoder(profile.model, profile.model_revision)
    encoder_layers(encoder.model)  # refuses an encoder whose layers cannot be trained one by one
    _check_budget("max_length", profile.max_length, encoder)
    reasons = {
        KEYWORDS: _no_keywords(reviews.loc[reviews["split"] == "train", "text"].tolist()),
        ATTENTION: _no_attention(encoder),
        DEEP: _no_deep_clustering(encoder, profile),
    }
    if not reasons[DEEP]:
        _check_budget("deep_tokens", profile.deep_tokens, encoder)
        load_text_sets(profile)
    return {chapter: reason for chapter, reason in reasons.items() if reason}


def _check_budget(key: str, tokens: int, encoder: Encoder) -> None:
    if tokens > encoder.max_length:
        raise UserError(
            f"{key} is {tokens}, but {encoder.name} reads at most {encoder.max_length} tokens: "
            "lower it."
        )


def _no_keywords(texts: list[str]) -> str:
    """Say if training texts share no word, as where words are not written apart."""
    least = least_texts(len(texts))
    if share_a_term(texts, least):
        return ""
    return f"No word but stop words is used by {least} training reviews or more."


def _no_attention(encoder: Encoder) -> str:
    """Say if an encoder does not return what its heads look at."""
    try:
        run_with_attention(encoder, tokenize(["A word."], encoder)[0])
    except UserError as error:
        return str(error)
    return ""


def _no_deep_clustering(encoder: Encoder, profile: Profile) -> str:
    """Say if an encoder cannot guess hidden tokens, or if there are no texts to cluster."""
    if not usable_sets(profile):
        return f"All of deep_sets are English; the language of this run is '{profile.language}'."
    try:
        check_masked_lm(encoder)
    except UserError as error:
        return str(error)
    return ""
