"""Toy trainings, which test modules share and other processes can import."""

import os
import signal
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from helpers import load_masked_lm
from safetensors.torch import save_file

from sentigeo.__main__ import main
from sentigeo.analysis.clusters import find_clusters
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.tokens import encode_texts
from sentigeo.training.deep_clustering import DeepRecipe, embed_all, train_clusters, warm_head
from sentigeo.training.deep_encoder import DeepEncoder, mask_tokens
from sentigeo.training.finetune import (
    Recipe,
    TrainingSet,
    WholeClassifier,
    load_classifier,
    predict,
    train_classifier,
)
from sentigeo.training.loop import load_state

GOOD, BAD = ["lovely", "warm", "clever", "brilliant"], ["awful", "cold", "stupid", "boring"]
CLASSIFIER_RECIPE = Recipe(epochs=4, learning_rate=2e-2, batch_size=8, seed=0, averaging=0.5)
CLUSTER_RECIPE = DeepRecipe(epochs=7, learning_rate=2e-3, batch_size=16, clustering=1.0, masked=0.5)
SETTINGS = {
    "draw_per_label": 20, "test_reviews": 12, "max_length": 32, "epochs": 1, "head_epochs": 1,
    "seeds": 1, "headline_seeds": 1, "batch_size": 8,
    "contrastive_samples": 8, "doses": "'[8, 16]'", "deep_sets": "[bbc_news]", "deep_draws": 1,
    "deep_epochs": 2,
}  # fmt: skip


def review_texts(count=48):
    rng = np.random.default_rng(0)
    labels = np.arange(count) % 2
    texts = [
        " ".join(["film", *rng.choice(GOOD if label else BAD, rng.integers(2, 9))])
        for label in labels
    ]
    return texts, labels.astype(np.int64)


def make_body(tiny_bert, kind, layers=1, seed=0):
    return kind(load_classifier(str(tiny_bert), None, ["bad", "good"], seed), layers)


def training_set(source, labels, extra=()):
    extra = np.array(extra, dtype=int)
    return TrainingSet(source, labels, np.arange(32), extra, np.arange(32, 48))


def train_toy_classifier(model, folder, dropout=True, kill=False):
    """Train all layers with one thread; return the final weights and logits."""
    torch.set_num_threads(1)
    texts, labels = review_texts()
    tokens = encode_texts(texts, load_encoder(str(model)).tokenizer, 16)
    body = make_body(model, WholeClassifier, layers=2)
    for module in body.modules():
        if not dropout and isinstance(module, torch.nn.Dropout):
            module.p = 0.0

    def end(*_):
        if (found := load_state(folder / "s")) and found[1]["epochs"] == 2:
            os.kill(os.getpid(), signal.SIGKILL)

    if kill:
        body.register_forward_pre_hook(end)
    train_classifier(body, training_set(tokens, labels), CLASSIFIER_RECIPE, folder / "s")
    logits = predict(body, tokens, np.arange(3))
    weights = {f"model/{name}": weight for name, weight in body.model.state_dict().items()}
    return weights | {"logits": torch.from_numpy(logits)}


def group_texts(count=40):
    """Two groups of texts that share no word."""
    rng = np.random.default_rng(0)
    words = [["cat", "dog", "bird", "fish"], ["engine", "wheel", "road", "car"]]
    labels = np.arange(count) % 2
    return [" ".join(rng.choice(words[label], 8)) for label in labels], labels


def make_parts(folder, texts, k=2):
    """Return tokens, masked copies, and the centroids of the un-trained encoder."""
    encoder = load_encoder(str(folder))
    tokens = encode_texts(texts, encoder.tokenizer, 32)
    copies = [mask_tokens(tokens, encoder.tokenizer, seed) for seed in range(2)]
    model, _ = load_masked_lm(folder)
    width = model.config.hidden_size
    body = DeepEncoder(model, 1, np.zeros((k, width)), copies[0].words)
    vectors = embed_all(body, tokens).numpy()
    move_centroids(body, find_clusters(vectors, k).centroids)
    return body, tokens, copies


def move_centroids(body, centroids):
    body.centroids.data = torch.tensor(centroids, dtype=torch.float32)


def train_toy_clusters(model, folder):
    """Train with one thread; return the final weights."""
    torch.set_num_threads(1)
    body, tokens, copies = make_parts(model, group_texts(22)[0])  # the last batch cannot be halved
    warm_head(body, copies, replace(CLUSTER_RECIPE, epochs=2))
    train_clusters(body, tokens, copies, CLUSTER_RECIPE, folder / "s")
    return dict(body.state_dict())


def train_together(model, folder):
    """Train a classifier, clusters, and both studies of a profile on `reviews.json`."""
    folder, rank = Path(folder), os.environ["RANK"]
    classifier = train_toy_classifier(model, folder / "classifier", dropout=False)
    save_file(classifier, folder / f"classifier-{rank}")
    clusters = train_toy_clusters(model, folder / "clusters")
    save_file(clusters, folder / f"clusters-{rank}")
    os.environ["SENTIGEO_CACHE"] = str(folder / "cache")
    settings = SETTINGS | {"model": model, "reviews": folder / "reviews.json"}
    changes = " ".join(f"{key}={value}" for key, value in settings.items())
    return main(["train", "--profile", "quick", "--set", changes])
