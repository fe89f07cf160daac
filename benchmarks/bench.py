"""How fast, side by side in one run, against what a user would pick instead."""

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.finetune import bench_finetune
from benchmarks.vectors import bench_embed, bench_tsne
from sentigeo.data.reviews import draw_reviews
from sentigeo.encoder.encoder import load_encoder
from sentigeo.paths import write_text
from sentigeo.profile import Profile

SIZES = {"finetune": 192, "embed": 1000, "tsne": 5000}  # reviews


def run_bench(profile: Profile, target: Path, sizes: Mapping[str, int] = SIZES) -> dict[str, float]:
    """Measure ratios and write them to a JSON file; contestants take turns, medians are compared.

    Args:
        profile: Says which encoder, and how long texts are.
        target: The file.
        sizes: How many reviews each comparison takes.
    """
    reviews = draw_reviews(profile)
    own = reviews.table.query("origin != 'handcrafted'").sample(frac=1, random_state=0)
    encoder = load_encoder(profile.model, profile.model_revision)
    texts = own["text"].tolist()
    ratios = bench_embed(texts[: sizes["embed"]], encoder, profile)
    ratios |= bench_tsne(texts[: sizes["tsne"]], encoder, profile)
    ratios |= bench_finetune(own.head(sizes["finetune"]), reviews.classes, encoder, profile)
    ratios = {name: round(ratio, 6 if "cosine" in name else 2) for name, ratio in ratios.items()}
    write_text(target, json.dumps(ratios, indent=1) + "\n")
    return ratios
