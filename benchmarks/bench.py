"""How fast, side by side in one run, against what a user would pick instead."""

import json
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from benchmarks.finetune import bench_finetune
from benchmarks.vectors import bench_embed, bench_tsne
from sentigeo.data.reviews import load_reviews
from sentigeo.encoder.encoder import load_encoder
from sentigeo.files import write_text
from sentigeo.profile import Profile
from sentigeo.progress import track

SIZES = {"finetune": 192, "embed": 1000, "tsne": 5000}  # reviews
REPEATS = 3


def run_bench(profile: Profile, target: Path, sizes: Mapping[str, int] = SIZES) -> dict[str, float]:
    """Measure ratios and write them to a JSON file; contestants take turns, medians are compared.

    Args:
        profile: Says which encoder, and how long texts are.
        target: The file.
        sizes: How many reviews each comparison takes.
    """
    reviews = load_reviews(profile)
    own = reviews[reviews["origin"] != "handcrafted"].sample(frac=1, random_state=0)
    encoder = load_encoder(profile.model, profile.model_revision)
    texts = own["text"].tolist()
    classes = reviews.attrs["classes"]
    ratios = bench_embed(texts[: sizes["embed"]], encoder, profile)
    ratios |= bench_tsne(texts[: sizes["tsne"]], encoder, profile)
    ratios |= bench_finetune(own.head(sizes["finetune"]), classes, encoder, profile)
    ratios = {name: round(ratio, 6 if "cosine" in name else 2) for name, ratio in ratios.items()}
    write_text(target, json.dumps(ratios, indent=1) + "\n")
    return ratios


def take_turns(contestants: dict[str, Callable[[], Any]], name: str) -> dict[str, float]:
    """Run every contestant in turn, several times; return the median seconds of each."""
    seconds: dict[str, list[float]] = {contestant: [] for contestant in contestants}
    turns = [contestant for _ in range(REPEATS) for contestant in contestants]
    for contestant in track(turns, name):
        began = time.perf_counter()
        contestants[contestant]()
        seconds[contestant].append(time.perf_counter() - began)
    return {contestant: statistics.median(values) for contestant, values in seconds.items()}
