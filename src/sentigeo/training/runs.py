"""The runs of the fine-tuning study: planned, trained side by side, or found in the store."""

import json
import math
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import Accelerator

from sentigeo.cache import Store, package_versions
from sentigeo.code_hash import hash_code
from sentigeo.cores import run_in_processes
from sentigeo.data.handcrafted import take_dose
from sentigeo.encoder.bert_layers import BERT_LIKE
from sentigeo.encoder.corpus import Corpus, open_corpus
from sentigeo.encoder.encoder import Encoder, load_encoder
from sentigeo.encoder.extract import extract, one_thread
from sentigeo.encoder.tokens import TokenIds
from sentigeo.encoder.trunk import Trunk, vectors_as_trunk
from sentigeo.encoder.vectors import POOLINGS, Kind
from sentigeo.files import hash_json, load_array, write_text
from sentigeo.profile import Profile
from sentigeo.progress import track
from sentigeo.training.finetune import (
    History,
    Recipe,
    TrainingSet,
    load_classifier,
    predict,
    train_classifier,
    trained_part,
)
from sentigeo.training.loop import obtain

EVERYTHING = ("validation", "test", "challenge")
LAYER_COST = 27  # a layer that is trained for all tokens, where the last for [CLS] is 1


@dataclass(frozen=True)
class Run:
    """One classifier to train."""

    name: str  # `without`, `with`, `head_only`, `dose_<n>`; on fewer reviews `head`, `top`, `all`
    layers: float  # trained; 0 trains the classification head only, 1.5 one and half of the next
    dose: int  # handcrafted samples among the training texts
    reviews: int  # the first of the training rows; 0 takes all
    recipe: Recipe
    scored: tuple[str, ...] = EVERYTHING  # parts of the corpus
    keep: bool = False  # the model as a checkpoint


@dataclass(frozen=True)
class Result:
    """What a trained classifier answered."""

    run: Run
    history: History
    logits: dict[str, np.ndarray]  # (n, classes) for each part that was scored
    labels: dict[str, np.ndarray]  # (n,) true classes of each part
    folder: Path  # where it is stored; a checkpoint if the run kept its model


def plan_runs(profile: Profile, layers: int, handcrafted: bool, trunk: bool = True) -> list[Run]:
    """List the runs of a profile for an encoder with so many layers.

    Without handcrafted samples there is one dose, 0. An encoder that cannot be cut, without a
    trunk, is trained in whole layers, on all tokens.
    """
    top, last = min(profile.trained_layers, layers), min(profile.dose_layers, layers)
    if not trunk:
        profile = profile.model_copy(update={"token_share": 1.0})
        top, last = math.floor(top), math.floor(last)
    conditions, doses = {"without": 0}, [0]
    if handcrafted:
        conditions["with"] = profile.contrastive_samples
        doses = profile.doses
    cook, size, runs = partial(_recipe, profile, layers), profile.batch_size, []
    for seed in range(profile.headline_seeds):
        recipe = cook(top, seed, profile.epochs, size)
        runs += [Run(n, top, d, 0, recipe, keep=seed == 0) for n, d in conditions.items()]
        recipe = cook(0, seed, profile.epochs, size)
        runs.append(Run("head_only", 0, 0, 0, recipe, scored=("test", "challenge")))
    kept = {(run.layers, run.dose, run.recipe) for run in runs if run.keep}
    for seed in range(profile.seeds):
        recipe = cook(last, seed, profile.dose_epochs, size)
        for dose in doses:
            keep = (last, dose, recipe) in kept
            runs.append(Run(f"dose_{dose}", last, dose, 0, recipe, keep=keep))
    for name, depth in {"head": 0, "top": min(top, 2), "all": layers}.items():
        recipe = cook(depth, 0, profile.epochs, profile.depth_batch_size)
        runs.append(Run(name, depth, 0, profile.depth_reviews, recipe, scored=("depth",)))
    return runs


def _recipe(
    profile: Profile, layers: int, depth: float, seed: int, epochs: int, size: int
) -> Recipe:
    rates: dict[float, float] = {0: profile.head_learning_rate, layers: profile.all_learning_rate}
    share = profile.token_share if 1 < depth < layers else 1.0
    return Recipe(epochs, rates.get(depth, profile.learning_rate), size, share, seed)


def list_runs(corpus: Corpus, encoder: Encoder, profile: Profile) -> list[Run]:
    """List the runs of a report; too large a dose is refused before anything is trained."""
    samples = corpus.texts.iloc[corpus.rows("contrastive")]
    runs = plan_runs(profile, encoder.layers, len(samples) > 0, _can_be_cut(encoder))
    take_dose(samples, max(run.dose for run in runs))
    return runs


def train_runs(corpus: Corpus, encoder: Encoder, profile: Profile, store: Store) -> list[Result]:
    """Return the results of all runs of a report, training those that are not in the store.

    On a CPU runs train side by side, each in a process with one thread, however many are missing:
    a run that was stopped ends with the same numbers. Several processes train each run together.
    """
    runs, accelerator = list_runs(corpus, encoder, profile), Accelerator()
    alone = accelerator.num_processes == 1 and accelerator.device.type == "cpu"
    keys = [_key(run, corpus, encoder, profile) for run in runs]
    places = [store.place("finetune", key) for key in keys]
    unlike = dict(zip(places, zip(runs, keys, strict=True), strict=True))  # equal runs are one
    missing = [run for run, key in unlike.values() if not (alone and store.find("finetune", key))]
    missing.sort(key=partial(_cost, corpus=corpus), reverse=True)
    if missing:  # first, in one pass, with a progress display of its own
        below = {encoder.layers - run.layers for run in runs if _has_trunk(run.layers, encoder)}
        extract(corpus.tokens, encoder, store, all_kinds(encoder.layers), sorted(below))
    jobs = [(run, corpus.folder, profile, store.root) for run in missing]
    costs = [_cost(run, corpus) for run in missing]
    if alone:
        list(run_in_processes(train_run, jobs, "fine-tuning", costs))
    else:
        for job in track(jobs, "fine-tuning", costs):
            train_run(*job)
    return [_read(*pair, corpus, profile) for pair in zip(runs, places, strict=True)]


def train_run(run: Run, corpus_folder: Path, profile: Profile, root: Path) -> Path:
    """Train a run of a corpus, unless it is in the store; return where its results are."""
    corpus, encoder = _open(corpus_folder, profile.model, profile.model_revision)
    key = _key(run, corpus, encoder, profile)
    with one_thread(Accelerator().device):
        fill = partial(_fill, run, corpus_folder, profile, root)
        return obtain(Store(root), "finetune", key, fill)


def rows_of(part: str, corpus: Corpus, profile: Profile) -> np.ndarray:
    """Return the rows of a part of the corpus; `depth` is a part of the test reviews."""
    if part == "depth":
        return _alternate(corpus, corpus.rows("test"), profile.depth_test_reviews)
    return corpus.rows(part)


def train_rows(run: Run, corpus: Corpus) -> np.ndarray:
    """Return the rows of the reviews that a run trains on."""
    return _alternate(corpus, corpus.rows("train"), run.reviews)


def unchanged_texts(
    layers: float, corpus: Corpus, encoder: Encoder, store: Store
) -> TokenIds | Trunk:
    """Return all texts as they are below so many trained layers; as tokens if all are trained."""
    if not _has_trunk(layers, encoder):
        return corpus.tokens
    below = encoder.layers - layers
    return extract(corpus.tokens, encoder, store, all_kinds(encoder.layers), [below])[1][below]


def all_kinds(highest: int, lowest: int = 0) -> list[Kind]:
    """List every pooling of some layers."""
    return [(layer, pooling) for layer in range(lowest, highest + 1) for pooling in POOLINGS]


@lru_cache(maxsize=1)
def _open(corpus_folder: Path, model: str, revision: str | None) -> tuple[Corpus, Encoder]:
    """Open what the runs of a process share."""
    return open_corpus(corpus_folder), load_encoder(model, revision)


@lru_cache(maxsize=8)
def _texts(layers: float, corpus_folder: Path, model: str, revision: str | None, root: Path) -> Any:
    """Return what a run's trained part is fed with."""
    (corpus, encoder), store = _open(corpus_folder, model, revision), Store(root)
    if layers == 0 and _can_be_cut(encoder):
        vectors, _ = extract(corpus.tokens, encoder, store, all_kinds(encoder.layers))
        return vectors_as_trunk(encoder.layers, vectors.matrix())
    return unchanged_texts(layers, corpus, encoder, store)


def _fill(
    run: Run, corpus_folder: Path, profile: Profile, root: Path, state: Path, folder: Path
) -> None:
    """Train a run and write what it answered into a folder."""
    source = profile.model, profile.model_revision
    corpus, encoder = _open(corpus_folder, *source)
    model: Any = load_classifier(*source, corpus.classes, run.recipe.seed)
    texts, body = _texts(run.layers, corpus_folder, *source, root), trained_part(model, run.layers)
    samples = corpus.texts.iloc[corpus.rows("contrastive")]
    data = TrainingSet(
        texts,
        corpus.labels,
        rows=train_rows(run, corpus),
        extra=take_dose(samples, run.dose).index.to_numpy(),
        validation=corpus.rows("validation" if "validation" in run.scored else "none"),
    )
    history, validated = train_classifier(body, data, run.recipe, state)
    for part in run.scored:
        if len(rows := rows_of(part, corpus, profile)):
            logits = validated if part == "validation" else predict(body, texts, rows)
            np.save(folder / f"{part}.npy", logits, allow_pickle=False)
    write_text(folder / "history.json", json.dumps(vars(history)))
    if run.keep:
        model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        write_text(folder / "README.md", _card(run, history, corpus, encoder, profile))


def _can_be_cut(encoder: Encoder) -> bool:
    return encoder.model.config.model_type in BERT_LIKE


def _has_trunk(layers: float, encoder: Encoder) -> bool:
    return 0 < layers < encoder.layers and _can_be_cut(encoder)


def _key(run: Run, corpus: Corpus, encoder: Encoder, profile: Profile) -> dict[str, Any]:
    """Return what a run depends on; its name is not part of that, so equal runs are one."""
    return {
        "encoder": encoder.sha256,
        "source": profile.model,
        "texts": corpus.tokens.sha256,
        "labels": hash_json([corpus.labels.tolist(), corpus.texts["part"].tolist()]),
        "classes": corpus.classes,
        "depth_test_reviews": profile.depth_test_reviews,
        "run": {name: value for name, value in asdict(run).items() if name != "name"},
        "code": hash_code(__name__),
        "versions": package_versions("torch", "transformers"),
    }


def _cost(run: Run, corpus: Corpus) -> int:
    """Estimate a run's work, to begin with the longest and to show progress."""
    deep = max(0, run.layers - 1) * LAYER_COST
    scored = sum(len(corpus.rows(part)) for part in run.scored)
    trained = run.recipe.epochs * (run.reviews or len(corpus.rows("train")))
    return int(trained * (1 + deep * run.recipe.token_share) + scored * deep / 3)


def _alternate(corpus: Corpus, rows: np.ndarray, count: int) -> np.ndarray:
    """Take the first rows of each class in turn; a count of 0 takes all."""
    if not count:
        return rows
    turn = corpus.texts.iloc[rows].groupby("label").cumcount().to_numpy()
    return np.sort(rows[np.argsort(turn, kind="stable")][:count])


def _read(run: Run, folder: Path, corpus: Corpus, profile: Profile) -> Result:
    history = History(**json.loads((folder / "history.json").read_text("utf-8")))
    parts = [part for part in run.scored if (folder / f"{part}.npy").is_file()]
    logits = {part: load_array(folder / f"{part}.npy") for part in parts}
    labels = {part: corpus.labels[rows_of(part, corpus, profile)] for part in parts}
    return Result(run, history, logits, labels, folder)


def _card(run: Run, history: History, corpus: Corpus, encoder: Encoder, profile: Profile) -> str:
    """Write a model card."""
    depth = "all layers" if run.layers == encoder.layers else f"the top {run.layers:g} layers"
    recipe = "\n".join(f"- {name}: {value}" for name, value in asdict(run.recipe).items())
    return (
        f"---\nbase_model: {encoder.name}\npipeline_tag: text-classification\n---\n\n"
        f"# {encoder.name}, fine-tuned ({run.name})\n\n"
        f"A sentiment classifier of the Sentigeo report. Of {encoder.name}, {depth} and the "
        f"classification head were trained on {len(train_rows(run, corpus)):,} reviews and "
        f"{run.dose} handcrafted samples; texts were cut to {profile.max_length} tokens "
        f"({profile.truncation}).\n\nClasses: {', '.join(corpus.classes)}. Accuracy on "
        f"{len(corpus.rows('validation')):,} validation reviews: "
        f"{history.val_accuracy[-1]:.3f}.\n\n## Training\n\n{recipe}\n"
    )
