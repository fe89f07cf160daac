"""What trained classifiers answered, and the vectors of all texts, pretrained and fine-tuned."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from sentigeo.analysis.predictions import outcomes, score_pairs
from sentigeo.cache import Store
from sentigeo.encoder.corpus import TIERS, Corpus, CorpusVectors
from sentigeo.encoder.encoder import Encoder, load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.vectors import Kind, Trunk, Vectors
from sentigeo.profile import Profile
from sentigeo.training.runs import (
    CONTROL_WEIGHT,
    Result,
    Run,
    all_kinds,
    extra_rows,
    unchanged_texts,
)

OWN = {"own_pairs": "own"}  # a user's own pairs


def logits_by_arm(results: Sequence[Result], corpus: Corpus) -> dict[str, np.ndarray]:
    """Return the (runs, n, classes) logits of each arm for all n texts, seed by seed.

    Those of texts that were not scored are not numbers.
    """
    found: dict[str, list[np.ndarray]] = {}
    for result in results:
        every = np.full((len(corpus.texts), len(corpus.classes)), np.nan)
        for part, logits in result.logits.items():
            every[corpus.rows(part)] = logits
        found.setdefault(result.run.arm, []).append(every)
    return {arm: np.stack(runs) for arm, runs in found.items()}


def score_tiers(
    margins: Mapping[str, np.ndarray], corpus: Corpus
) -> dict[tuple[str, str], dict[str, np.ndarray]]:
    """Return endpoints and outcomes by tier and model, of (runs, n) margins of all texts."""
    found = {}
    for part, tier in (TIERS | OWN).items():
        rows = corpus.rows(part)
        for model, every in margins.items() if len(rows) else ():
            scored, texts = every[:, rows], corpus.texts.iloc[rows]
            spread = every[:, corpus.rows("test")].std(axis=1)
            found[tier, model] = score_pairs(scored, texts, spread) | outcomes(scored, texts)
    return found


def name_models(models: Sequence[str], profile: Profile) -> dict[str, str]:
    """Return what arms and baselines are called in tables and figures."""
    few, most = profile.contrastive_samples, max(profile.doses)
    names = {
        "without": "no samples", "with": f"{few} samples", f"with_{most}": f"{most} samples",
        "positive_control": "positive control", "head_only": "classification head only",
        "head_only_with": f"classification head only, {few} samples",
        "lexicon": "lexicon", "nbsvm": "NB-SVM",
        "tfidf": "TF-IDF", "probe_cls": "probe, [CLS]", "probe_mean": "probe, mean pooling",
    }  # fmt: skip
    return {model: names[model] for model in models}


def kept_models(results: Sequence[Result]) -> dict[str, Result]:
    """Return the first model that was kept of each arm: `without` and, if there is one, `with`."""
    return {r.run.arm: r for r in results[::-1] if r.run.saved}


def list_checkpoints(results: Sequence[Result]) -> dict[str, Path]:
    """Return the folders of all models that were kept: `with`, `with_1` and so on, by seed."""
    kept = [r for r in results if r.run.saved]
    return {f"{r.run.arm}_{r.run.recipe.seed}".removesuffix("_0"): r.folder for r in kept}


def pick_tuned(results: Sequence[Result]) -> Result:
    """Return the model of later chapters: the first with contrastive samples, if there are any."""
    kept = kept_models(results)
    return kept.get("with", kept["without"])


def read_stages(
    results: Sequence[Result], corpus: Corpus, encoder: Encoder, store: Store
) -> CorpusVectors:
    """Read all texts with the pretrained encoder and the fine-tuned one, which may be lower."""
    tuned, without = pick_tuned(results), kept_models(results)["without"]
    place, layers = (corpus, encoder, store), tuned.run.layers
    pretrained = extract(corpus.tokens, encoder, store, all_kinds(encoder.layers))[0]
    fine_tuned = replace(_tuned_vectors(tuned, *place, all_kinds(layers)), below=pretrained)
    last = None
    if tuned is not without:  # of which only the last [CLS] vectors are looked at
        last = _tuned_vectors(without, *place, [(layers, "cls")])
    return CorpusVectors(corpus, pretrained, fine_tuned, tuned.logits, last)


def _tuned_vectors(
    result: Result, corpus: Corpus, encoder: Encoder, store: Store, kinds: Sequence[Kind]
) -> Vectors:
    """Read all texts with a fine-tuned encoder; what it shares with the other is not computed."""
    run = result.run
    texts = unchanged_texts(run.layers, [run.trained], corpus, encoder, store)[run.trained]
    lowest = texts.layer + 1 if isinstance(texts, Trunk) else 0
    changed = [kind for kind in kinds if kind[0] >= lowest]
    return extract(texts, load_encoder(str(result.folder)), store, changed)[0]


def list_plan(runs: Sequence[Run], corpus: Corpus, profile: Profile) -> pd.DataFrame:
    """List the runs by arm: what is trained, on what and how, and with how many seeds."""
    names = name_models([run.arm for run in runs], profile)
    rows = [
        {
            "arm": names[run.arm], "layers": run.layers, "trained": run.trained,
            "reviews": len(corpus.rows("train")), "added texts": len(set(extra_rows(run, corpus))),
            "repeats per epoch": CONTROL_WEIGHT if run.pairs else min(1, run.dose),
            "epochs": run.recipe.epochs, "learning rate": run.recipe.learning_rate,
        }
        for run in runs
    ]  # fmt: skip
    plan = pd.DataFrame(rows)
    return plan.groupby([*plan], sort=False).size().reset_index(name="seeds")


def list_curves(results: Sequence[Result], arms: Sequence[str]) -> pd.DataFrame:
    """Return losses and validation accuracy of some arms; one row per run and epoch."""
    frames = [
        pd.DataFrame(vars(r.history)).assign(condition=r.run.arm, seed=r.run.recipe.seed)
        for r in results
        if r.run.arm in arms
    ]
    curves = pd.concat(frames)
    return curves.assign(epoch=curves.index + 1)
