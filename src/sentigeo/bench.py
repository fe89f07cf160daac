"""How fast, side by side in one run, against what a user would pick instead."""

import json
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from datasets import Dataset
from transformers import DataCollatorWithPadding, PrinterCallback, Trainer, TrainingArguments

from sentigeo.classifier import FastWholeClassifier, TopClassifier, load_classifier
from sentigeo.encoder import load_encoder
from sentigeo.extract import extract
from sentigeo.finetune import Recipe, TrainingSet, train_epoch
from sentigeo.profile import Profile
from sentigeo.progress import track
from sentigeo.reviews import load_reviews
from sentigeo.store import Store, write_text
from sentigeo.tokens import TokenIds, encode_texts
from sentigeo.trunk import Trunk

REVIEWS = 192
REPEATS = 3


def run_bench(profile: Profile, target: Path, count: int = REVIEWS) -> dict[str, float]:
    """Measure the speed-ups of fine-tuning and write them to a JSON file.

    Every contestant trains one epoch on the same reviews cut to the same length, in batches of the
    same size; contestants take turns, and the ratio is that of the medians. The trunk, which all
    runs of a study share, is timed once, in epochs of the plain loop.
    """
    reviews = load_reviews(profile)
    classes = reviews.attrs["classes"]
    drawn = (reviews["origin"] != "handcrafted") & (reviews["split"] == "train")
    reviews = reviews[drawn].sample(count, random_state=0)
    labels = reviews["label"].to_numpy(np.int64)
    encoder = load_encoder(profile.model, profile.model_revision)
    tokens = encode_texts(
        reviews["text"].tolist(), encoder.tokenizer, profile.max_length, profile.truncation
    )
    with tempfile.TemporaryDirectory() as folder:
        began = time.perf_counter()
        below = [encoder.layers - 1, encoder.layers - 2]
        _, trunks = extract(tokens, encoder, Store(Path(folder)), kinds=[], keep=below)
        trunk_seconds = time.perf_counter() - began
        contestants = {
            "plain": _plain_epoch(profile, tokens, labels, classes, encoder.tokenizer, folder),
            "last_layer": _own_epoch(profile, trunks[encoder.layers - 1], labels, classes, 1),
            "top2": _own_epoch(profile, trunks[encoder.layers - 2], labels, classes, 2),
            "all_layers": _own_epoch(profile, tokens, labels, classes, encoder.layers),
        }
        seconds = _take_turns(contestants)
    ratios = {
        f"finetune.{name}_speedup": round(seconds["plain"] / seconds[name], 2)
        for name in contestants
        if name != "plain"
    }
    ratios["finetune.trunk_in_plain_epochs"] = round(trunk_seconds / seconds["plain"], 2)
    write_text(target, json.dumps(ratios, indent=1) + "\n")
    return ratios


def _take_turns(contestants: dict[str, Callable[[], Any]]) -> dict[str, float]:
    """Run every contestant in turn, several times; return the median seconds of each."""
    for contestant in contestants.values():
        contestant()  # warm-up
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    turns = [name for _ in range(REPEATS) for name in contestants]
    for name in track(turns, "bench"):
        began = time.perf_counter()
        contestants[name]()
        seconds[name].append(time.perf_counter() - began)
    return {name: statistics.median(values) for name, values in seconds.items()}


def _plain_epoch(
    profile: Profile,
    tokens: TokenIds,
    labels: np.ndarray,
    classes: list[str],
    tokenizer: Any,
    folder: str,
) -> Callable[[], Any]:
    """An epoch of transformers' Trainer as it comes: all layers, padded to the longest."""
    rows = [{"input_ids": tokens[i].tolist(), "labels": int(y)} for i, y in enumerate(labels)]
    model: Any = load_classifier(profile.model, profile.model_revision, classes)
    for module in model.modules():  # attention dropout as published
        if isinstance(module, torch.nn.Dropout):
            module.p = model.config.hidden_dropout_prob
    trainer = Trainer(
        model=model,
        args=TrainingArguments(
            output_dir=folder, num_train_epochs=1, report_to=[], save_strategy="no",
            per_device_train_batch_size=profile.batch_size, disable_tqdm=True,
            logging_strategy="no", use_cpu=not torch.cuda.is_available(),
        ),
        train_dataset=Dataset.from_list(rows),
        data_collator=DataCollatorWithPadding(tokenizer),
    )  # fmt: skip
    trainer.remove_callback(PrinterCallback)
    return trainer.train  # type: ignore[no-any-return]


def _own_epoch(
    profile: Profile, source: TokenIds | Trunk, labels: np.ndarray, classes: list[str], layers: int
) -> Callable[[], Any]:
    """An epoch of this package's training; every token is seen."""
    model = load_classifier(profile.model, profile.model_revision, classes)
    kind = TopClassifier if isinstance(source, Trunk) else FastWholeClassifier
    body = kind(model, layers)
    recipe = Recipe(1, 1e-4, profile.batch_size, 1.0, 0)
    data = TrainingSet(source, labels, np.arange(len(labels)), np.array([], dtype=int))
    accelerator = Accelerator()
    trained = [weight for weight in body.parameters() if weight.requires_grad]
    ready, optimizer = accelerator.prepare(body, torch.optim.AdamW(trained, fused=True))
    return lambda: train_epoch(ready, optimizer, data, recipe, 0, accelerator)
