"""How fast, side by side in one run, against what a user would pick instead."""

import json
from collections.abc import Mapping
from pathlib import Path

from sentigeo.bench_finetune import bench_finetune
from sentigeo.bench_vectors import bench_embed, bench_tsne
from sentigeo.encoder import load_encoder
from sentigeo.profile import Profile
from sentigeo.reviews import load_reviews
from sentigeo.store import write_text

SIZES = {"finetune": 192, "embed": 1000, "tsne": 5000}  # reviews


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
