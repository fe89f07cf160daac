"""What trained classifiers answered, and where they put the texts."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pandas as pd

from sentigeo.analysis.predictions import pair_consistency
from sentigeo.cache import Store
from sentigeo.encoder.corpus import Corpus
from sentigeo.encoder.corpus_vectors import CorpusVectors
from sentigeo.encoder.encoder import Encoder, load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.trunk import Trunk
from sentigeo.encoder.vectors import Kind, Vectors
from sentigeo.stats import list_estimates, mcnemar, share_of_few
from sentigeo.training.runs import Result, Run, all_kinds, train_rows, unchanged_texts


def predictions(results: Sequence[Result], name: str, part: str) -> np.ndarray:
    """Return the (runs, n) predicted classes of a condition, in the order of its seeds."""
    return np.stack([r.logits[part].argmax(1) for r in results if r.run.name == name])


def hits(results: Sequence[Result], name: str, part: str) -> np.ndarray:
    """Return (runs, n) truth values: which texts of a part a condition classifies correctly."""
    truth = next(r.labels[part] for r in results if r.run.name == name)
    return np.asarray(predictions(results, name, part) == truth)


def consistent(results: Sequence[Result], name: str, corpus: Corpus) -> np.ndarray:
    """Return (runs, pairs) truth values: which challenge pairs are right on both sides."""
    challenge = corpus.texts.iloc[corpus.rows("challenge")]
    answers = predictions(results, name, "challenge")
    return np.stack([pair_consistency(challenge, run).to_numpy() for run in answers])


def kept_models(results: Sequence[Result]) -> dict[str, Result]:
    """Return the models that were kept, by condition: `without` and, if there is one, `with`."""
    kept = {result.run.name: result for result in results if result.run.keep}
    return {name: kept[name] for name in ("without", "with") if name in kept}


def pick_tuned(results: Sequence[Result]) -> Result:
    """Return the model of later chapters: the first with contrastive samples, if there are any."""
    kept = kept_models(results)
    return kept.get("with", kept["without"])


def read_stages(
    results: Sequence[Result], corpus: Corpus, encoder: Encoder, store: Store
) -> CorpusVectors:
    """Read all texts with the pretrained and the fine-tuned encoder."""
    tuned, without = pick_tuned(results), kept_models(results)["without"]
    kinds, place = all_kinds(encoder.layers), (corpus, encoder, store)
    pretrained = extract(corpus.tokens, encoder, store, kinds)[0]
    fine_tuned = replace(_tuned_vectors(tuned, *place, kinds), below=pretrained)
    last = None
    if tuned is not without:  # of which only the last [CLS] vectors are looked at
        last = _tuned_vectors(without, *place, [(encoder.layers, "cls")])
    return CorpusVectors(corpus, pretrained, fine_tuned, tuned.logits, last)


def _tuned_vectors(
    result: Result, corpus: Corpus, encoder: Encoder, store: Store, kinds: Sequence[Kind]
) -> Vectors:
    """Read all texts with a fine-tuned encoder; what it shares with the other is not computed."""
    texts = unchanged_texts(result.run.layers, corpus, encoder, store)
    lowest = math.floor(texts.layer) + 1 if isinstance(texts, Trunk) else 0
    changed = [kind for kind in kinds if kind[0] >= lowest]
    return extract(texts, load_encoder(str(result.folder)), store, changed)[0]


def list_plan(runs: Sequence[Run], corpus: Corpus) -> pd.DataFrame:
    """List the runs by condition: what is trained, on what and how, and with how many seeds."""
    columns = ["layers", "dose", "epochs", "batch_size", "learning_rate", "token_share", "reviews"]
    counts = [{"reviews": len(train_rows(run, corpus))} for run in runs]
    rows = [vars(run) | vars(run.recipe) | own for run, own in zip(runs, counts, strict=True)]
    sizes = pd.DataFrame(rows).groupby(["name", *columns], sort=False).size()
    return sizes.reset_index(name="seeds").rename(columns=lambda name: name.replace("_", " "))


def list_curves(results: Sequence[Result], names: Sequence[str]) -> pd.DataFrame:
    """Return losses and validation accuracy of some conditions; one row per run and epoch."""
    frames = [
        pd.DataFrame(vars(r.history)).assign(condition=r.run.name, seed=r.run.recipe.seed)
        for r in results
        if r.run.name in names
    ]
    curves = pd.concat(frames)
    return curves.assign(epoch=curves.index + 1)


def measure_conditions(
    results: Sequence[Result], corpus: Corpus
) -> dict[str, dict[str, np.ndarray]]:
    """Return which cases each kept condition gets right, by measure and condition.

    Accuracies are (runs, texts) and `challenge_consistency` is (runs, pairs); measures on the
    challenge texts are left out where there are none.
    """
    parts = {"val_accuracy": "validation", "test_accuracy": "test"}
    names, challenge = list(kept_models(results)), len(corpus.rows("challenge")) > 0
    if challenge:
        parts["challenge_accuracy"] = "challenge"
    found = {m: {n: hits(results, n, part) for n in names} for m, part in parts.items()}
    if challenge:
        found["challenge_consistency"] = {n: consistent(results, n, corpus) for n in names}
    return found


def compare_seeds(measures: Mapping[str, Mapping[str, np.ndarray]]) -> pd.DataFrame:
    """Compare `with` and `without` by McNemar's exact test; one row per measure and seed."""
    return pd.DataFrame(
        {
            "measure": measure.replace("_", " "),
            "seed": seed,
            "only with": int((after & ~before).sum()),
            "only without": int((before & ~after).sum()),
            "p": mcnemar(after, before),
        }
        for measure, found in measures.items()
        for seed, (after, before) in enumerate(zip(found["with"], found["without"], strict=True))
    )


def score_phenomena(pairs: Mapping[str, np.ndarray], corpus: Corpus) -> pd.DataFrame:
    """Estimate the share of pairs that are right, of (runs, pairs) truth values by condition."""
    kinds = corpus.texts.iloc[corpus.rows("challenge")].drop_duplicates("pair")["phenomenon"]
    found = {
        (kind.replace("_", " "), name): share_of_few(runs[:, kinds == kind].mean(axis=0))
        for kind in dict.fromkeys(kinds)
        for name, runs in pairs.items()
    }
    return list_estimates(found, "name", "condition")


def list_doses(steps: Mapping[int, np.ndarray]) -> tuple[pd.DataFrame, tuple[float, float]]:
    """List the consistency of (runs, pairs) truth values by dose, and its range at the first dose.

    Returns:
        Columns `dose`, `seed`, `value`; and mean minus and plus two standard deviations of seeds.
    """
    rows = [(d, seed, run.mean()) for d, runs in steps.items() for seed, run in enumerate(runs)]
    frame = pd.DataFrame(rows, columns=["dose", "seed", "value"])
    first = frame.loc[frame["dose"] == next(iter(steps)), "value"]
    return frame, (first.mean() - 2 * first.std(ddof=1), first.mean() + 2 * first.std(ddof=1))
