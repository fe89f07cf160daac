"""The runs of the fine-tuning study: trained side by side, or found in the store."""

import json
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
from sentigeo.encoder.vectors import POOLINGS, Kind, Vectors
from sentigeo.files import hash_json, load_array, write_text
from sentigeo.profile import Profile
from sentigeo.progress import track
from sentigeo.training.classifier import (
    FastWholeClassifier,
    TopClassifier,
    WholeClassifier,
    load_classifier,
)
from sentigeo.training.finetune import History, TrainingSet, predict, train_classifier
from sentigeo.training.loop import forget_state, obtain
from sentigeo.training.plan import Run, plan_runs

LAYER_COST = 27  # a layer that is trained for all tokens, where the last for [CLS] is 1


@dataclass(frozen=True)
class Result:
    """What a trained classifier answered.

    Attributes:
        run: The run.
        history: Losses and validation accuracy of each epoch.
        logits: (n, classes) for each part that was scored.
        labels: (n,) true classes of each part.
        folder: Where it is stored; a checkpoint if the run kept its model.
    """

    run: Run
    history: History
    logits: dict[str, np.ndarray]
    labels: dict[str, np.ndarray]
    folder: Path


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
    places = {store.place("finetune", _key(run, corpus, encoder, profile)): run for run in runs}
    missing = list(places.values())  # equal runs are one
    if alone:
        keys = {run: _key(run, corpus, encoder, profile) for run in missing}
        missing = [run for run, key in keys.items() if not store.find("finetune", key)]
    missing.sort(key=partial(_cost, corpus=corpus), reverse=True)
    if missing:
        _read_layers(runs, corpus, encoder, store)  # first, with a progress display of its own
    jobs = [(run, corpus.folder, profile, store.root) for run in missing]
    costs = [_cost(run, corpus) for run in missing]
    if alone:
        list(run_in_processes(train_run, jobs, "fine-tuning", costs))
    else:
        for job in track(jobs, "fine-tuning", costs):
            train_run(*job)
    return [_read(run, corpus, encoder, profile, store) for run in runs]


def train_run(run: Run, corpus_folder: Path, profile: Profile, root: Path) -> Path:
    """Train a run, unless it is in the store; return where its results are.

    Args:
        run: The run.
        corpus_folder: Where the corpus is.
        profile: What the report is.
        root: Folder of the store.
    """
    corpus, encoder = _open(corpus_folder, profile.model, profile.model_revision)
    store, accelerator = Store(root), Accelerator()
    key = _key(run, corpus, encoder, profile)
    state = store.place("training", key)
    fill = partial(_fill, run, corpus, encoder, profile, store, state)
    with one_thread(accelerator.device):
        folder = obtain(store, "finetune", key, fill, accelerator)
    if accelerator.is_main_process:
        forget_state(state)
    return folder


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
    if not 0 < layers < encoder.layers or not _can_be_cut(encoder):
        return corpus.tokens
    below = encoder.layers - layers
    return extract(corpus.tokens, encoder, store, all_kinds(encoder.layers), [below])[1][below]


def all_kinds(highest: int, lowest: int = 0) -> list[Kind]:
    """List every pooling of some layers."""
    return [(layer, pooling) for layer in range(lowest, highest + 1) for pooling in POOLINGS]


def _read_layers(runs: list[Run], corpus: Corpus, encoder: Encoder, store: Store) -> Vectors:
    """Read every layer's vectors and the trunks below all depths of the plan in one pass."""
    top = encoder.layers
    below = {top - run.layers for run in runs if 0 < run.layers < top and _can_be_cut(encoder)}
    return extract(corpus.tokens, encoder, store, all_kinds(top), sorted(below))[0]


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
    run: Run,
    corpus: Corpus,
    encoder: Encoder,
    profile: Profile,
    store: Store,
    state: Path,
    folder: Path,
) -> None:
    """Train a run and write what it answered into a folder."""
    model: Any = load_classifier(
        profile.model, profile.model_revision, corpus.classes, run.recipe.seed
    )
    texts = _texts(run.layers, corpus.folder, profile.model, profile.model_revision, store.root)
    body = _body(model, run.layers, encoder)
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


def _body(model: Any, layers: float, encoder: Encoder) -> Any:
    """Return what is trained of a model."""
    if not _can_be_cut(encoder):
        return WholeClassifier(model, int(layers))
    if layers == encoder.layers:
        return FastWholeClassifier(model, encoder.layers)
    return TopClassifier(model, layers)


def _can_be_cut(encoder: Encoder) -> bool:
    return encoder.model.config.model_type in BERT_LIKE


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


def _read(run: Run, corpus: Corpus, encoder: Encoder, profile: Profile, store: Store) -> Result:
    folder = store.place("finetune", _key(run, corpus, encoder, profile))
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
