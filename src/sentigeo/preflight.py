"""Checks before any notebook starts: whether a run is possible, and what applies to it."""

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sentigeo.cache import Store
from sentigeo.data.handcrafted import FILES, HANDCRAFTED_CLASSES, why_unfit
from sentigeo.data.reviews import sample_test_pool
from sentigeo.data.tables import identify_source
from sentigeo.errors import UserError
from sentigeo.hashes import hash_code, hash_files
from sentigeo.paths import DATA, run_paths, write_text
from sentigeo.profile import ENGLISH, PACKAGED, Profile
from sentigeo.report.fingerprint import Conditions

KEYWORDS, ATTENTION, DEEP = "07_keywords", "10_attention", "11_deep_clustering"
FEWEST_LONG = 10  # reviews beyond the encoder's limit that can be compared
DEEP_EPOCHS, DEEP_DRAWS = 30, 3  # that claims on deep clustering are about


def check_run(profile: Profile) -> Conditions:
    """Refuse what no notebook could work with, and find chapters and cells that do not apply."""
    store, key = Store(run_paths(profile.run_name).cache), _key(profile)
    if key is None:
        return _examine(profile, store)

    def fill(folder: Path) -> None:
        write_text(folder / "conditions.json", json.dumps(asdict(_examine(profile, store))))

    return _read(store.folder("preflight", key, fill))


def recall_run(profile: Profile) -> Conditions | None:
    """Return what `check_run` last found, if nothing has changed since."""
    key = _key(profile)
    found = Store(run_paths(profile.run_name).cache).find("preflight", key) if key else None
    return _read(found) if found else None


def _read(folder: Path) -> Conditions:
    return Conditions(**json.loads((folder / "conditions.json").read_text("utf-8")))


def _key(profile: Profile) -> dict[str, Any] | None:
    """Return everything that the conditions of a run depend on, if that can be identified."""
    named = [(profile.model, profile.model_revision), (profile.reviews, profile.reviews_revision)]
    named += [(name, None) for name in (*profile.deep_sets, profile.contrast_pairs) if name]
    sources = [identify_source(*place) for place in named]
    if None in sources:
        return None
    return {
        "sources": sources,
        "settings": profile.settings,
        "handcrafted": hash_files(DATA, FILES),
        "code": hash_code(__name__),
    }


def _examine(profile: Profile, store: Store) -> Conditions:
    from sentigeo.analysis.attention import run_with_attention  # all of these are slow to import
    from sentigeo.data.text_sets import load_text_sets
    from sentigeo.encoder.bert_layers import encoder_layers
    from sentigeo.encoder.corpus import make_corpus
    from sentigeo.encoder.encoder import load_encoder
    from sentigeo.encoder.tokens import tokenize

    encoder = load_encoder(profile.model, profile.model_revision)
    encoder_layers(encoder.model)  # refuses an encoder whose layers cannot be trained one by one
    _check_budget("max_length", profile.max_length, encoder)
    corpus = make_corpus(profile, encoder, store)
    unfit = why_unfit(corpus.classes, profile.language)
    if profile.contrast_pairs and unfit:
        raise UserError(f"contrast_pairs cannot be scored beside the report's own pairs: {unfit}.")
    skipped = {
        KEYWORDS: _why_no_keywords(corpus.texts_of("train")),
        ATTENTION: _refusal(run_with_attention, encoder, tokenize(["A word."], encoder)[0]),
        DEEP: _why_no_deep_clustering(encoder, profile),
    }
    if not skipped[DEEP]:
        _check_budget("deep_tokens", profile.deep_tokens, encoder)
        load_text_sets(profile, corpus)
    unmet = _list_unmet(profile, corpus, encoder)
    return Conditions({name: why for name, why in skipped.items() if why}, unmet)


def _list_unmet(profile: Profile, corpus: Any, encoder: Any) -> dict[str, str]:
    """Return the conditions that do not hold for a run, and why; cells and claims name them."""
    from sentigeo.encoder.bert_layers import BERT_LIKE

    classes, language, kind = corpus.classes, profile.language, encoder.model.config.model_type
    unfit, english = why_unfit(classes, language), language == ENGLISH
    long = _why_no_long_reviews(profile, corpus, encoder)
    draws, few = _why_no_other_draws(profile, corpus), _why_no_doses(profile, corpus)
    trained = profile.deep_epochs >= DEEP_EPOCHS and profile.deep_draws >= DEEP_DRAWS
    conditions = {
        "pairs": (not unfit, f"There are no handcrafted texts for these reviews: {unfit}."),
        "films": (profile.reviews == PACKAGED, "Which film a review is about cannot be told."),
        "doses": (not few, few),
        "two-classes": (len(classes) == 2, f"There are {len(classes)} classes, not two."),
        "polarity": (classes == HANDCRAFTED_CLASSES, "The classes are not negative and positive."),
        "english": (english, f"The texts are English, and the reviews' language is '{language}'."),
        "long-reviews": (not long, long),
        "other-draws": (not draws, draws),
        "bert-like": (kind in BERT_LIKE, f"The layers of a {kind} model are not BERT's."),
        "deep-epochs": (trained, f"They need {DEEP_EPOCHS} epochs and {DEEP_DRAWS} draws."),
    }
    return {tag: why for tag, (holds, why) in conditions.items() if not holds}


def _check_budget(key: str, tokens: int, encoder: Any) -> None:
    if tokens > encoder.max_length:
        most = f"{encoder.name} reads at most {encoder.max_length} tokens"
        raise UserError(f"{key} is {tokens}, but {most}: lower it.")


def _why_no_long_reviews(profile: Profile, corpus: Any, encoder: Any) -> str:
    parts = [corpus.rows(part) for part in ("train", "validation", "test")]
    long = sum(int((corpus.lengths[rows] > encoder.max_length).sum()) for rows in parts)
    short = [rows[corpus.lengths[rows] <= profile.max_length] for rows in parts[:2]]
    if long < FEWEST_LONG:
        return f"Too few reviews are longer than {encoder.max_length} tokens."
    if min(len(set(corpus.labels[rows])) for rows in short) < 2:
        return f"The reviews of at most {profile.max_length} tokens are of one class."
    return ""


def _why_no_doses(profile: Profile, corpus: Any) -> str:
    """Say if there are too few texts for the largest dose, or to repeat the source's experiment."""
    most, counts = max(profile.doses), corpus.texts.groupby(["part", "label"]).size()
    parts = {"validation": most, "natural_train": most, "contrastive": most // 2, "train": 50}
    few = [name for name, least in parts.items() if counts.get((name, 0), 0) < least]
    why = f"There are too few texts ({', '.join(few)}) for doses of up to {most} and the reruns."
    return why if few else ""


def _why_no_other_draws(profile: Profile, corpus: Any) -> str:
    reviews = corpus.reviews()
    scored = sample_test_pool(reviews, profile)["id"]
    others = reviews[(reviews["origin"] != "handcrafted") & ~reviews["id"].isin(scored)]
    least = 2 * round(profile.draw_per_label * (1 - profile.validation_share))
    counts = others["label"].value_counts().reindex(range(len(corpus.classes)), fill_value=0)
    return "There are too few reviews for draws that differ." if counts.min() < least else ""


def _why_no_keywords(texts: list[str]) -> str:
    """Say if texts share no word, as in scripts without spaces between words."""
    from sentigeo.analysis.keywords import least_texts, share_a_term

    least = least_texts(len(texts))
    why = f"No word but stop words is used by {least} training reviews or more."
    return "" if share_a_term(texts, least) else why


def _why_no_deep_clustering(encoder: Any, profile: Profile) -> str:
    from sentigeo.data.text_sets import usable_sets
    from sentigeo.training.deep_encoder import check_masked_lm

    if not usable_sets(profile):
        return f"All of deep_sets are English; the language of this run is '{profile.language}'."
    return _refusal(check_masked_lm, encoder)


def _refusal(check: Callable[..., object], *arguments: Any) -> str:
    try:
        check(*arguments)
    except UserError as error:
        return str(error)
    return ""
