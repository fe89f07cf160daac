"""Recipes of fine-tuning compared on validation reviews, before any test review is scored.

`python -m benchmarks.recipes` trains them all, in about half an hour on two cores, and writes
`data/recipes.yaml`, which chapter 2 shows.
"""

import time
from pathlib import Path
from tempfile import NamedTemporaryFile, TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import yaml
from torch import Tensor

from sentigeo.cache import Store
from sentigeo.cores import run_in_processes
from sentigeo.data.literature import RECIPES
from sentigeo.encoder.bert_layers import pool, run_layer
from sentigeo.encoder.corpus import make_corpus
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import TokenIds
from sentigeo.encoder.vectors import Trunk
from sentigeo.paths import run_paths, write_text
from sentigeo.profile import Profile, load_profile
from sentigeo.training.finetune import (
    Recipe,
    TopClassifier,
    TrainingSet,
    load_classifier,
    train_classifier,
)

SEEDS, FEW = 5, 1  # trainings of a recipe; of one that trains a layer for all tokens


class Trial(NamedTuple):
    """A recipe, as far as trials differ."""

    kept: int  # layers, the lowest
    trained: int  # of these, the highest
    pooling: str  # `cls`, or `mean`: the pooler reads the mean over tokens
    epochs: int
    learning_rate: float
    seeds: int  # trainings


TRIALS = [
    *(Trial(kept, 1, "cls", 2, 1e-3, SEEDS) for kept in (3, 4, 5, 6)),
    *(Trial(4, 1, "cls", 2, rate, SEEDS) for rate in (5e-4, 2e-3)),
    *(Trial(4, 1, "cls", epochs, 5e-4, SEEDS) for epochs in (3, 4)),
    *(Trial(kept, 2, "cls", 2, 5e-4, FEW) for kept in (4, 6)),
    *(Trial(kept, 1, "mean", 2, 5e-4, FEW) for kept in (4, 6)),
]


class MeanClassifier(TopClassifier):
    """A classifier whose pooler reads the mean over all tokens of the last layer."""

    def forward(self, inputs: Tensor, mask: Tensor) -> Tensor:
        """Return the (b, classes) logits of (b, w, d) states with a (b, w) mask."""
        for layer in self.layers:
            inputs = run_layer(layer, inputs, mask)
        states: Any = self.pooler(pool(inputs, mask, "mean")[:, None])
        return self.classifier(self.dropout(states))  # type: ignore[no-any-return]


def run_trial(
    trial: Trial, seed: int, trunk: Trunk, labels: np.ndarray, train: int, profile: Profile
) -> dict[str, Any]:
    """Train on the first rows of a trunk; return how it does on the others, row by row."""
    classes = list(profile.labels.values())
    model = load_classifier(profile.model, profile.model_revision, classes, seed, trial.kept)
    kind = MeanClassifier if trial.pooling == "mean" else TopClassifier
    rows = np.split(np.arange(len(labels)), [train])
    data = TrainingSet(trunk, labels, rows[0], np.array([], int), rows[1])
    recipe = Recipe(trial.epochs, trial.learning_rate, profile.batch_size, seed)
    began = time.perf_counter()
    with NamedTemporaryFile() as state:
        history = train_classifier(kind(model, trial.trained), data, recipe, Path(state.name))
    reached = {"accuracy": history.val_accuracy[-1], "loss": history.val_loss[-1]}
    seconds = (time.perf_counter() - began) / trial.epochs
    return trial._asdict() | {"seconds per epoch": seconds} | reached


def compare_recipes(profile: Profile, trials: list[Trial]) -> pd.DataFrame:
    """Train every trial with its seeds; return means over seeds and the deviation of accuracy."""
    encoder = load_encoder(profile.model, profile.model_revision)
    corpus = make_corpus(profile, encoder, Store(run_paths(profile.run_name).cache))
    rows = np.concatenate([corpus.rows("train"), corpus.rows("validation")])
    texts = [corpus.tokens[row] for row in rows]
    starts = np.cumsum([0, *map(len, texts)])
    tokens = TokenIds(np.concatenate(texts), starts, corpus.tokens.padding)
    below = sorted({trial.kept - trial.trained for trial in trials})
    with TemporaryDirectory() as folder:
        trunks = extract(tokens, encoder, Store(Path(folder)), [], below)[1]
        known = corpus.labels[rows], len(corpus.rows("train")), profile
        jobs = [
            (trial, seed, trunks[trial.kept - trial.trained], *known)
            for trial in sorted(trials, key=lambda trial: -trial.trained)
            for seed in range(trial.seeds)
        ]
        found = pd.DataFrame(run_in_processes(run_trial, jobs, "recipes"))
    recipe = list(Trial._fields[:-1])
    by_recipe = found.groupby(recipe, sort=False)
    means = by_recipe[["accuracy", "loss", "seconds per epoch"]].mean()
    more = {"deviation": by_recipe["accuracy"].std(), "seeds": by_recipe.size()}
    return means.assign(**more).reset_index().sort_values("accuracy", ascending=False)


if __name__ == "__main__":
    rows = compare_recipes(load_profile("laptop"), TRIALS).round(4)
    write_text(RECIPES, yaml.safe_dump(rows.to_dict("records"), sort_keys=False))
