"""The runs of the fine-tuning study: planned, trained side by side, or found in the store."""

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from jinja2 import StrictUndefined, Template
from sklearn.preprocessing import StandardScaler

from sentigeo.cache import Store, load_array, package_versions, save_arrays
from sentigeo.data.handcrafted import draw_dose, take_dose
from sentigeo.encoder.bert_layers import BERT_LIKE
from sentigeo.encoder.corpus import TIERS, Corpus, open_corpus
from sentigeo.encoder.encoder import Encoder, load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.vectors import POOLINGS, Kind, vectors_as_trunk
from sentigeo.hashes import hash_code, hash_file, hash_json
from sentigeo.paths import SITE_SOURCE, write_text
from sentigeo.profile import Profile
from sentigeo.training import finetune
from sentigeo.training.finetune import History, Recipe
from sentigeo.training.loop import Texts, obtain, train_all, works_alone

SCORED = ("validation", "test", "new_films", *TIERS, "own_pairs", "sentence")  # parts of the corpus
CARD = SITE_SOURCE / "model_card.md.jinja"
LAYER_COST = 27  # a layer that is trained for all tokens, where the last for [CLS] is 1
HEAD_BATCH = 128  # texts of a step where only the classification head is trained
CONTROL_WEIGHT = 5  # times an epoch that the positive control sees each side of its pairs


@dataclass(frozen=True)
class Run:
    """One classifier to train: an arm of the study, with a seed."""

    arm: str  # `without`, `with`, `with_<n>`, `positive_control`; `head_only`, `head_only_with`
    layers: int  # of the encoder, the lowest
    trained: int  # of these, the highest; 0 trains the classification head only
    dose: int  # contrastive samples, drawn by the seed, among the training texts
    recipe: Recipe
    pairs: bool = False  # the natural pairs for training, both sides, weighted, are among them
    saved: bool = False  # as a checkpoint


@dataclass(frozen=True)
class Result:
    """What a trained classifier answered."""

    run: Run
    history: History
    logits: dict[str, np.ndarray]  # (n, classes) for each part that was scored
    folder: Path  # where it is stored; a checkpoint if the run kept its model


def plan_runs(profile: Profile, layers: int, handcrafted: bool, trunk: bool = True) -> list[Run]:
    """List the runs of a profile for an encoder with so many layers, seed by seed.

    Without handcrafted samples nothing is added to the reviews. An encoder that cannot be cut,
    without a trunk, has all its layers and runs whole even for its classification head, which then
    has as few epochs.
    """
    highest = min(profile.kept_layers or layers, layers) if trunk else layers
    depth = min(profile.trained_layers, highest)
    rate = profile.all_learning_rate if depth == highest else profile.learning_rate
    most = max(profile.doses)
    doses = {"without": 0, "with": profile.contrastive_samples, f"with_{most}": most}
    if not handcrafted:
        doses = {"without": 0}
    runs = []
    for seed in range(profile.headline_seeds):
        recipe, saved = Recipe(profile.epochs, rate, profile.batch_size, seed), seed < profile.seeds
        for arm, dose in doses.items():
            as_checkpoint = saved and arm in ("without", "with")
            runs.append(Run(arm, highest, depth, dose, recipe, saved=as_checkpoint))
        if handcrafted:
            runs.append(Run("positive_control", highest, depth, 0, recipe, pairs=True))
        if saved:
            epochs = profile.head_epochs if trunk else profile.epochs
            own = Recipe(epochs, profile.head_learning_rate, HEAD_BATCH, seed)
            heads = {"head_only": "without", "head_only_with": "with"}
            heads = {name: arm for name, arm in heads.items() if arm in doses}
            runs += [Run(name, highest, 0, doses[arm], own) for name, arm in heads.items()]
    return runs


def list_runs(corpus: Corpus, encoder: Encoder, profile: Profile) -> list[Run]:
    """List the runs of a report; too large a dose is refused before anything is trained."""
    samples = corpus.texts.iloc[corpus.rows("contrastive")]
    runs = plan_runs(profile, encoder.layers, len(samples) > 0, _can_be_cut(encoder))
    take_dose(samples, max(run.dose for run in runs))
    return runs


def train_runs(corpus: Corpus, encoder: Encoder, profile: Profile, store: Store) -> list[Result]:
    """Return the results of all runs of a report, training those that are not in the store."""
    runs, alone = list_runs(corpus, encoder, profile), works_alone()
    keys = [_key(run, corpus, encoder, profile) for run in runs]
    places = [store.place("finetune", key) for key in keys]
    unlike = dict(zip(places, zip(runs, keys, strict=True), strict=True))  # equal runs are one
    missing = [run for run, key in unlike.values() if not (alone and store.find("finetune", key))]
    missing.sort(key=partial(_cost, corpus=corpus), reverse=True)
    depths = {run.trained for run in missing}
    texts = unchanged_texts(runs[0].layers, depths, corpus, encoder, store) if missing else {}
    jobs = [(run, texts[run.trained], corpus.folder, profile, store) for run in missing]
    train_all(train_run, jobs, "fine-tuning", [_cost(run, corpus) for run in missing])
    return [_read(*pair) for pair in zip(runs, places, strict=True)]


def train_run(run: Run, texts: Texts, corpus_folder: Path, profile: Profile, store: Store) -> None:
    """Train a run on texts as they are below the trained layers, unless it is in the store."""
    corpus, encoder = _open(corpus_folder, profile.model, profile.model_revision)

    def fill(state: Path, folder: Path) -> None:
        source, drawn = (profile.model, profile.model_revision), run.recipe.seed
        model: Any = finetune.load_classifier(*source, corpus.classes, drawn, run.layers)
        kind = finetune.TopClassifier if _can_be_cut(encoder) else finetune.WholeClassifier
        body = kind(model, run.trained)
        chosen = corpus.rows("train"), extra_rows(run, corpus), corpus.rows("validation")
        data = finetune.TrainingSet(texts, corpus.labels, *chosen)
        history = finetune.train_classifier(body, data, run.recipe, state)
        parts = {part: rows for part in SCORED if len(rows := corpus.rows(part))}
        scored = finetune.predict(body, texts, np.concatenate([*parts.values()]))
        cuts = np.cumsum([len(rows) for rows in parts.values()])[:-1]
        save_arrays(folder, dict(zip(parts, np.split(scored, cuts), strict=True)))
        write_text(folder / "history.json", json.dumps(vars(history)))
        if run.saved:
            model.save_pretrained(folder)
            encoder.tokenizer.save_pretrained(folder)
            facts = {"run": run, "encoder": encoder, "corpus": corpus, "profile": profile}
            facts |= {"reviews": len(data.rows), "accuracy": history.val_accuracy[-1]}
            card = Template(CARD.read_text("utf-8"), undefined=StrictUndefined)
            write_text(folder / "README.md", card.render(facts))

    obtain(store, "finetune", _key(run, corpus, encoder, profile), fill)


def extra_rows(run: Run, corpus: Corpus) -> np.ndarray:
    """Return the rows that a run trains on beside the reviews, once for each time in an epoch."""
    samples = corpus.rows("contrastive")
    drawn = samples[draw_dose(corpus.labels[samples], run.dose, run.recipe.seed)]
    pairs = corpus.rows("natural_train" if run.pairs else "none")
    return np.concatenate([drawn, np.tile(pairs, CONTROL_WEIGHT)])


def unchanged_texts(
    layers: int, depths: Collection[int], corpus: Corpus, encoder: Encoder, store: Store
) -> dict[int, Texts]:
    """Return all texts as they are below the trained layers, by how many of the lowest these are.

    They are read in one pass: tokens if all layers are trained, and one vector each if none is,
    standardised, for on raw ones a classification head converges slowly.
    """
    if not _can_be_cut(encoder) or set(depths) <= {layers}:
        return dict.fromkeys(depths, corpus.tokens)
    below = {depth: layers - depth for depth in depths if 0 < depth < layers}
    kinds, keep = all_kinds(encoder.layers), sorted(below.values())
    vectors, trunks = extract(corpus.tokens, encoder, store, kinds, keep)
    found: dict[int, Texts] = {depth: trunks[layer] for depth, layer in below.items()}
    if 0 in depths:
        matrix = vectors.matrix(layers)
        scaler = StandardScaler().fit(matrix[corpus.rows("train")])
        found[0] = vectors_as_trunk(layers, scaler.transform(matrix))
    return found | {layers: corpus.tokens}


def all_kinds(layers: int) -> list[Kind]:
    """List every pooling of the embeddings and so many layers."""
    return [(layer, pooling) for layer in range(layers + 1) for pooling in POOLINGS]


@lru_cache(maxsize=1)
def _open(corpus_folder: Path, model: str, revision: str | None) -> tuple[Corpus, Encoder]:
    """Open what the runs of a process share."""
    return open_corpus(corpus_folder), load_encoder(model, revision)


def _can_be_cut(encoder: Encoder) -> bool:
    return encoder.model.config.model_type in BERT_LIKE


def _key(run: Run, corpus: Corpus, encoder: Encoder, profile: Profile) -> dict[str, Any]:
    """Return what a run depends on; its arm's name is not part of that, so equal runs are one."""
    return {
        "encoder": encoder.sha256,
        "source": profile.model,
        "texts": corpus.tokens.sha256,
        "labels": hash_json([corpus.labels.tolist(), corpus.texts["part"].tolist()]),
        "classes": corpus.classes,
        "run": {name: value for name, value in asdict(run).items() if name != "arm"},
        "code": hash_code(__name__),
        "card": hash_file(CARD) if run.saved else None,
        "versions": package_versions("torch", "transformers"),
    }


def _cost(run: Run, corpus: Corpus) -> int:
    """Estimate a run's work, to begin with the longest and to show progress."""
    if not run.trained:
        return len(corpus.rows("train"))
    deep = 1 + (run.trained - 1) * LAYER_COST
    trained = len(corpus.rows("train")) + len(extra_rows(run, corpus))
    scored = sum(len(corpus.rows(part)) for part in SCORED)
    return int(deep * (run.recipe.epochs * trained + scored / 3))


def _read(run: Run, folder: Path) -> Result:
    history = History(**json.loads((folder / "history.json").read_text("utf-8")))
    parts = [part for part in SCORED if (folder / f"{part}.npy").is_file()]
    logits = {part: load_array(folder / f"{part}.npy") for part in parts}
    return Result(run, history, logits, folder)
