"""The speed of fine-tuning against transformers' own Trainer."""

import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from datasets import Dataset
from transformers import DataCollatorWithPadding, PrinterCallback, Trainer, TrainingArguments

from benchmarks import take_turns
from sentigeo.cache import Store
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import TokenIds, encode_texts
from sentigeo.encoder.vectors import Trunk
from sentigeo.profile import Profile
from sentigeo.training.finetune import (
    ClassifierTask,
    Recipe,
    TopClassifier,
    TrainingSet,
    load_classifier,
)
from sentigeo.training.loop import run_epoch


def bench_finetune(
    reviews: pd.DataFrame, classes: list[str], encoder: Encoder, profile: Profile
) -> dict[str, float]:
    """Compare epochs of training.

    Every contestant trains one epoch on the same reviews cut to the same length, in batches of the
    same size. The trunk, which all runs of a study share, is timed once, in epochs of the plain
    loop.
    """
    labels = reviews["label"].to_numpy(np.int64)
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
        for contestant in contestants.values():
            contestant()  # warm-up
        seconds = take_turns(contestants, "fine-tuning")
    ratios = {
        f"finetune.{name}_speedup": seconds["plain"] / seconds[name]
        for name in contestants
        if name != "plain"
    }
    return ratios | {"finetune.trunk_in_plain_epochs": trunk_seconds / seconds["plain"]}


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
    body = TopClassifier(model, layers)
    recipe = Recipe(1, 1e-4, profile.batch_size, 0)
    none = np.array([], dtype=int)
    data = TrainingSet(source, labels, np.arange(len(labels)), extra=none, validation=none)
    task = ClassifierTask(body, data, recipe)
    weights = task.weights.values()
    ready, optimizer = task.accelerator.prepare(body, torch.optim.AdamW(weights, fused=True))
    return lambda: run_epoch(task, ready, optimizer, 0)
