"""What several tests make use of."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import yaml

from sentigeo.cache import save_arrays
from sentigeo.encoder.corpus import COLUMNS, open_corpus
from sentigeo.encoder.tokens import encode_texts
from sentigeo.encoder.vectors import Vectors
from sentigeo.paths import write_text


def labelled_cloud(count: int, width: int, apart: float) -> tuple[np.ndarray, np.ndarray]:
    """Points of three classes around corners so far from the middle, and their labels."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=count)
    return rng.normal(size=(count, width)) + apart * np.eye(width)[labels], labels


def change_profile(folder: Path, **values):
    """Write other values into the profile file `quick.yaml` of a folder."""
    path = folder / "quick.yaml"
    path.write_text(yaml.safe_dump({**yaml.safe_load(path.read_text()), **values}))
    return path


def write_rows(path: Path, rows: list[dict]):
    """Write a list of objects as JSON."""
    path.write_text(json.dumps(rows), "utf-8")
    return path


def store_corpus(store, texts, labels, parts, classes=("negative", "positive"), ids=None, **more):
    """Keep a small corpus in a store; its token ids are given, or one token per text."""
    rows = {"id": [f"own-{n}" for n in range(len(texts))], "text": texts, "label": labels}
    table = pd.DataFrame(rows | {"part": parts} | more).reindex(columns=COLUMNS)
    ids = ids or [[1]] * len(texts)
    lengths = np.array([len(own) for own in ids])

    def fill(folder):
        table.to_parquet(folder / "texts.parquet", index=False)
        reviews = table[["id", "text", "label"]].assign(origin="own", split=table["part"])
        reviews.to_parquet(folder / "reviews.parquet", index=False)
        source = table[["id", "text", "label"]].assign(found=table["text"])
        source.to_parquet(folder / "source.parquet", index=False)
        arrays = {"ids": np.concatenate(ids).astype(np.int32), "lengths": lengths}
        save_arrays(folder, arrays | {"starts": np.concatenate([[0], np.cumsum(lengths)])})
        facts = {"classes": list(classes), "provenance": {"source": "own"}, "padding": 0}
        write_text(folder / "facts.json", json.dumps(facts))

    return open_corpus(store.folder("corpus", {"texts": texts, "parts": parts}, fill))


def store_vectors(store, matrices):
    """Keep the (n, d) vectors of some layers and poolings in a store, as extraction does."""
    vectors = np.stack(list(matrices.values())).astype(np.float32)
    arrays = {"rows": np.arange(vectors.shape[1]), "vectors": vectors}
    shard = store.put("vectors", {"size": len(matrices)}, lambda part: save_arrays(part, arrays))
    layers = max(layer for layer, _ in matrices)
    return Vectors(vectors.shape[1], layers, tuple(matrices), (shard,))


def store_toy_corpus(store, encoder):
    """Keep toy reviews, 8 contrastive samples, 4 challenge pairs and 2 + 3 natural ones."""
    sizes = {"train": 24, "validation": 8, "contrastive": 8, "test": 12, "challenge": 8}
    sizes |= {"natural_train": 4, "natural": 6}
    parts = [part for part, size in sizes.items() for _ in range(size)]
    rng, paired = np.random.default_rng(0), ("challenge", "natural_train", "natural")
    words = [["dull", "cold", "awful", "film"], ["warm", "lovely", "clever", "film"]]
    labels = [n % 2 for n in range(len(parts))]
    texts = [" ".join(rng.choice(words[label], rng.integers(2, 40))) for label in labels]
    tokens = encode_texts(texts, encoder.tokenizer, 32)
    ids = [tokens[row].tolist() for row in range(len(texts))]
    pairs = [n // 2 if part in paired else None for n, part in enumerate(parts)]
    kinds = [None if pair is None else f"kind_{pair % 2}" for pair in pairs]
    pairs = [None if pair is None else f"p{pair}" for pair in pairs]
    return store_corpus(store, texts, labels, parts, ids=ids, pair=pairs, phenomenon=kinds)


def load_masked_lm(folder):
    """Load a model with its MLM head; and say whether that was drawn."""
    from transformers import AutoModelForMaskedLM

    from sentigeo.encoder.encoder import load_with_head

    model, drawn = load_with_head(AutoModelForMaskedLM, str(folder), None, seed=0)
    return model, bool(drawn)


def run_script(module, function, call, processes=1):
    """Call a function of a test module in another process, or in several that work together."""
    script = f"""import os, sys
from pathlib import Path
sys.path.insert(0, {str(Path(__file__).parent)!r})
from safetensors.torch import save_file
from {module} import {function}
{call}
"""
    command = [sys.executable, "-c", script]
    if processes > 1:
        launcher = "torch.distributed.run", "--standalone", f"--nproc_per_node={processes}"
        command = [sys.executable, "-m", *launcher, "--no-python", *command]
    environment = os.environ | {"ACCELERATE_USE_CPU": "true"}
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
