"""The plan of the fine-tuning study: which classifiers are trained, on what, and how."""

import json
import math
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from accelerate import Accelerator

from sentigeo.analysis.predictions import pair_consistency
from sentigeo.cache import Store, package_versions
from sentigeo.code_hash import hash_code
from sentigeo.cores import ask, start_workers
from sentigeo.data.corpus import build_corpus
from sentigeo.data.handcrafted import take_dose, why_unfit
from sentigeo.encoder.bert_layers import BERT_LIKE
from sentigeo.encoder.encoder import Encoder, load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import TokenIds, encode_texts
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
from sentigeo.training.loop import Recipe, TrainingSet, predict, train
from sentigeo.training.state import History, forget_state, obtain

EVERYTHING = ("validation", "test", "challenge")
MOST_PROCESSES = 4  # that train at the same time; each needs a gigabyte or more
LAYER_COST = 27  # a layer that is trained for all tokens, where the last for [CLS] is 1


@dataclass(frozen=True)
class Run:
    """One classifier to train.

    Attributes:
        name: Condition it belongs to: `without`, `with`, `head_only`, `dose_<n>`; and, on fewer
            reviews, `head`, `top` and `all`.
        layers: Trained layers; 0 trains the head only, 1.5 one layer and half of the next.
        dose: Handcrafted samples among the training texts.
        reviews: Reviews to train on, the first of the training rows; 0 takes all.
        recipe: How to train.
        scored: Parts of the corpus that are scored; validation is scored after every epoch.
        keep: Whether the model itself is kept as a checkpoint.
    """

    name: str
    layers: float
    dose: int
    reviews: int
    recipe: Recipe
    scored: tuple[str, ...] = EVERYTHING
    keep: bool = False


def plan_runs(profile: Profile, layers: int, handcrafted: bool, trunk: bool = True) -> list[Run]:
    """List the runs of a profile.

    Args:
        profile: Says how deep, how often and how long to train.
        layers: Layers of the encoder.
        handcrafted: Whether the data have handcrafted samples; without them there is one dose, 0.
        trunk: Whether the encoder can be cut; without that whole layers are trained, on all tokens.
    """
    top, last = min(profile.trained_layers, layers), min(profile.dose_layers, layers)
    if not trunk:
        profile = profile.model_copy(update={"token_share": 1.0})
        top, last = math.floor(top), math.floor(last)
    conditions, doses = {"without": 0}, [0]
    if handcrafted:
        conditions["with"] = profile.contrastive_samples
        doses = profile.doses
    runs = []
    for seed in range(profile.headline_seeds):
        recipe = _recipe(profile, top, layers, seed, profile.epochs, profile.batch_size)
        runs += [Run(n, top, d, 0, recipe, keep=seed == 0) for n, d in conditions.items()]
        recipe = _recipe(profile, 0, layers, seed, profile.epochs, profile.batch_size)
        runs.append(Run("head_only", 0, 0, 0, recipe, scored=("test", "challenge")))
    kept = {(run.layers, run.dose, run.recipe) for run in runs if run.keep}
    for seed in range(profile.seeds):
        recipe = _recipe(profile, last, layers, seed, profile.dose_epochs, profile.batch_size)
        for dose in doses:
            keep = (last, dose, recipe) in kept
            runs.append(Run(f"dose_{dose}", last, dose, 0, recipe, keep=keep))
    for name, depth in {"head": 0, "top": min(top, 2), "all": layers}.items():
        recipe = _recipe(profile, depth, layers, 0, profile.epochs, profile.depth_batch_size)
        runs.append(Run(name, depth, 0, profile.depth_reviews, recipe, scored=("depth",)))
    return runs


def _recipe(
    profile: Profile, depth: float, layers: int, seed: int, epochs: int, batch_size: int
) -> Recipe:
    rates: dict[float, float] = {0: profile.head_learning_rate, layers: profile.all_learning_rate}
    return Recipe(
        epochs=epochs,
        learning_rate=rates.get(depth, profile.learning_rate),
        batch_size=batch_size,
        token_share=profile.token_share if 1 < depth < layers else 1.0,
        seed=seed,
    )


@dataclass(frozen=True)
class Result:
    """What a trained classifier answered.

    Attributes:
        run: The run.
        history: Losses and validation accuracy of each epoch.
        logits: (n, classes) for each part that was scored.
        folder: Where it is stored; a checkpoint if the run kept its model.
    """

    run: Run
    history: History
    logits: dict[str, np.ndarray]
    folder: Path


def kept_models(results: list[Result]) -> dict[str, Result]:
    """Return the models that were kept, by condition: `without` and, if there is one, `with`."""
    kept = {result.run.name: result for result in results if result.run.keep}
    return {name: kept[name] for name in ("without", "with") if name in kept}


def pick_tuned(results: list[Result]) -> Result:
    """Return the model that stands for fine-tuning in later chapters.

    That is the first one with contrastive samples, or without where there are none.
    """
    kept = kept_models(results)
    return kept.get("with", kept["without"])


class Study:
    """Trains the runs of a profile, or reads them from the cache.

    Args:
        reviews: As `load_reviews` returns them.
        encoder: What to fine-tune.
        profile: What the study is.
        store: Where results are kept.
    """

    def __init__(
        self, reviews: pd.DataFrame, encoder: Encoder, profile: Profile, store: Store
    ) -> None:
        self.profile, self.encoder, self.store = profile, encoder, store
        self._reviews = reviews
        self.classes: list[str] = reviews.attrs["classes"]
        self.corpus = build_corpus(reviews, profile)
        self.labels = self.corpus["label"].to_numpy(np.int64)
        self.tokens = encode_texts(
            self.corpus["text"].tolist(), encoder.tokenizer, profile.max_length, profile.truncation
        )
        fit = not why_unfit(self.classes, profile.language)
        self._has_trunk = encoder.model.config.model_type in BERT_LIKE
        self.runs = plan_runs(profile, encoder.layers, fit, self._has_trunk)
        samples = self.corpus[self.corpus["part"] == "contrastive"]
        take_dose(samples, max(run.dose for run in self.runs))  # too large a dose is said at once
        self.data_key = {
            "encoder": encoder.sha256,
            "source": profile.model,
            "texts": self.tokens.sha256,
            "labels": hash_json([self.labels.tolist(), self.corpus["part"].tolist()]),
            "classes": self.classes,
            "code": hash_code(__name__),
            "versions": package_versions("torch", "transformers"),
        }

    def rows(self, part: str) -> np.ndarray:
        """Return the rows of a part of the corpus; `depth` is a part of the test reviews."""
        if part == "depth":
            return self._alternate(self.rows("test"), self.profile.depth_test_reviews)
        return np.flatnonzero(self.corpus["part"] == part)

    def train_rows(self, run: Run) -> np.ndarray:
        """Return the rows of the reviews that a run trains on."""
        return self._alternate(self.rows("train"), run.reviews)

    def results(self) -> list[Result]:
        """Return the results of all runs, training those that are not in the cache."""
        accelerator, missing = Accelerator(), self._missing()
        if missing:
            _ = self._extraction  # first, with a progress display of its own
        by_itself = accelerator.num_processes == 1 and accelerator.device.type == "cpu"
        if missing and by_itself and torch.get_num_threads() > 1:
            self._train_side_by_side(missing)
        runs = track(self.runs, "fine-tuning", [self._cost(run) for run in self.runs])
        return [self._read(run, self.obtain(run, accelerator)) for run in runs]

    def _missing(self) -> list[Run]:
        """List the runs that are not in the cache, each once, the longest first."""
        places = {self.store.place("finetune", self._key(run)): run for run in self.runs}
        missing = [run for place, run in places.items() if not place.is_dir()]
        return sorted(missing, key=self._cost, reverse=True)

    def obtain(self, run: Run, accelerator: Accelerator | None = None) -> Path:
        """Return where a run's results are, training it if they are not in the cache."""
        accelerator, key = accelerator or Accelerator(), self._key(run)
        folder = obtain(self.store, "finetune", key, partial(self._train, run), accelerator)
        if accelerator.is_main_process:
            forget_state(self.store.place("training", key))
        return folder

    def _train_side_by_side(self, runs: list[Run]) -> None:
        """Train runs in processes of few threads, which waste less than one process of many."""
        threads = torch.get_num_threads()
        count = min(MOST_PROCESSES, threads, len(runs))
        make = partial(_open_study, self._reviews, self.profile, self.store.root, threads // count)
        with start_workers(count, make) as workers:
            begun = [workers.submit(ask, "obtain", run) for run in runs]
            for task in track(begun, "fine-tuning", [self._cost(run) for run in runs]):
                task.result()

    @property
    def vectors(self) -> Vectors:
        """The vectors of all texts before fine-tuning."""
        return self._extraction[0]

    def tuned_vectors(self, result: Result) -> Vectors:
        """Return the vectors of all texts after fine-tuning; only changed layers are computed."""
        source = self._changed_from(result)
        lowest = math.floor(source.layer) + 1 if isinstance(source, Trunk) else 0
        kinds = _all_kinds(lowest, self.encoder.layers)
        tuned = load_encoder(str(result.folder))
        return replace(extract(source, tuned, self.store, kinds)[0], below=self.vectors)

    def tuned_cls(self, result: Result) -> Vectors:
        """Return the last [CLS] vectors of all texts after fine-tuning, and no others."""
        tuned, kinds = load_encoder(str(result.folder)), [(self.encoder.layers, POOLINGS[0])]
        return extract(self._changed_from(result), tuned, self.store, kinds)[0]

    def truth(self, part: str) -> np.ndarray:
        """Return the (n,) true classes of a part."""
        return np.asarray(self.labels[self.rows(part)])

    def predictions(self, results: list[Result], name: str, part: str) -> np.ndarray:
        """Return the (runs, n) predicted classes of a condition, in the order of its seeds."""
        return np.stack([r.logits[part].argmax(1) for r in results if r.run.name == name])

    def hits(self, results: list[Result], name: str, part: str) -> np.ndarray:
        """Return (runs, n) truth values: which texts of a part a condition classifies rightly."""
        return np.asarray(self.predictions(results, name, part) == self.truth(part))

    def consistent(self, results: list[Result], name: str) -> np.ndarray:
        """Return (runs, pairs) truth values: which challenge pairs are right on both sides."""
        challenge = self.corpus.loc[self.rows("challenge")]
        answers = self.predictions(results, name, "challenge")
        return np.stack([pair_consistency(challenge, run).to_numpy() for run in answers])

    def _cost(self, run: Run) -> int:
        """Estimate a run's work, to begin with the longest and to show progress."""
        deep = max(0, run.layers - 1) * LAYER_COST
        scored = sum(len(self.rows(part)) for part in run.scored)
        trained = run.recipe.epochs * (run.reviews or len(self.rows("train")))
        return int(trained * (1 + deep * run.recipe.token_share) + scored * deep / 3)

    def _key(self, run: Run) -> dict[str, Any]:
        """Return what a run depends on; its name is not part of that, so equal runs are one."""
        return {**self.data_key, "run": {k: v for k, v in asdict(run).items() if k != "name"}}

    def _train(self, run: Run, folder: Path) -> None:
        """Train a run and write what it answered into a folder."""
        profile = self.profile
        model: Any = load_classifier(
            profile.model, profile.model_revision, self.classes, run.recipe.seed
        )
        body, source = self._body(model, run)
        state = self.store.place("training", self._key(run))
        data = TrainingSet(source, self.labels, self.train_rows(run), self._dose_rows(run))
        validation = self.rows("validation") if "validation" in run.scored else np.array([], int)
        history, validated = train(body, data, validation, run.recipe, state)
        for part in run.scored:
            if len(rows := self.rows(part)):
                logits = validated if part == "validation" else predict(body, source, rows)
                np.save(folder / f"{part}.npy", logits, allow_pickle=False)
        write_text(folder / "history.json", json.dumps(vars(history)))
        if run.keep:
            model.save_pretrained(folder)
            self.encoder.tokenizer.save_pretrained(folder)
            write_text(folder / "README.md", self._card(run, history))

    def _body(self, model: Any, run: Run) -> tuple[Any, TokenIds | Trunk]:
        """Return what is trained of a model, and what it is fed with."""
        if not self._has_trunk:
            return WholeClassifier(model, int(run.layers)), self.tokens
        if run.layers == self.encoder.layers:
            return FastWholeClassifier(model, self.encoder.layers), self.tokens
        return TopClassifier(model, run.layers), self._trunk(run)

    def _changed_from(self, result: Result) -> TokenIds | Trunk:
        """Return what all texts are below the layers that training may have changed."""
        cut = self._has_trunk and 0 < result.run.layers < self.encoder.layers
        return self._trunk(result.run) if cut else self.tokens

    def _trunk(self, run: Run) -> Trunk:
        """Return the hidden states that a run's trained part starts from."""
        vectors, trunks = self._extraction
        if run.layers == 0:
            return vectors_as_trunk(self.encoder.layers, vectors.matrix())
        return trunks[self.encoder.layers - run.layers]

    @cached_property
    def _extraction(self) -> tuple[Vectors, dict[float, Trunk]]:
        """Every layer's vectors and the trunks below all depths of the plan, from one pass."""
        top = self.encoder.layers
        kept = {top - run.layers for run in self.runs if 0 < run.layers < top and self._has_trunk}
        return extract(self.tokens, self.encoder, self.store, _all_kinds(0, top), sorted(kept))

    def _alternate(self, rows: np.ndarray, count: int) -> np.ndarray:
        """Take the first rows of each class in turn; a count of 0 takes all."""
        if not count:
            return rows
        turn = self.corpus.loc[rows].groupby("label").cumcount().to_numpy()
        return np.sort(rows[np.argsort(turn, kind="stable")][:count])

    def _dose_rows(self, run: Run) -> np.ndarray:
        return take_dose(self.corpus.loc[self.rows("contrastive")], run.dose).index.to_numpy()

    def _read(self, run: Run, folder: Path) -> Result:
        parts = [part for part in run.scored if (folder / f"{part}.npy").is_file()]
        history = History(**json.loads((folder / "history.json").read_text("utf-8")))
        return Result(run, history, {p: load_array(folder / f"{p}.npy") for p in parts}, folder)

    def _card(self, run: Run, history: History) -> str:
        """Write a model card."""
        trained = (
            "all layers" if run.layers == self.encoder.layers else f"the top {run.layers:g} layers"
        )
        recipe = "\n".join(f"- {name}: {value}" for name, value in asdict(run.recipe).items())
        return (
            f"---\nbase_model: {self.encoder.name}\npipeline_tag: text-classification\n---\n\n"
            f"# {self.encoder.name}, fine-tuned ({run.name})\n\n"
            f"A sentiment classifier of the Sentigeo report. Of {self.encoder.name}, {trained} and "
            f"the head were trained on {len(self.train_rows(run)):,} reviews and {run.dose} "
            f"handcrafted samples; texts were cut to {self.profile.max_length} tokens "
            f"({self.profile.truncation}).\n\nClasses: {', '.join(self.classes)}. Accuracy on "
            f"{len(self.rows('validation')):,} validation reviews: "
            f"{history.val_accuracy[-1]:.3f}.\n\n## Training\n\n{recipe}\n"
        )


def _open_study(reviews: pd.DataFrame, profile: Profile, root: Path, threads: int) -> Study:
    """Open a study once more, in a process that is to have so many threads."""
    torch.set_num_threads(threads)
    encoder = load_encoder(profile.model, profile.model_revision)
    return Study(reviews, encoder, profile, Store(root))


def _all_kinds(lowest: int, highest: int) -> list[Kind]:
    return [(layer, pooling) for layer in range(lowest, highest + 1) for pooling in POOLINGS]
