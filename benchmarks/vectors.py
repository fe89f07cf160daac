"""The speed of extraction against sentence-transformers, and of maps against scikit-learn."""

import time

import numpy as np
import torch
from joblib import cpu_count
from sentence_transformers import SentenceTransformer
from sklearn.manifold import TSNE

from benchmarks import take_turns
from sentigeo.analysis.maps import draw_maps
from sentigeo.analysis.probes import row_cosines
from sentigeo.encoder.encoder import Encoder, find_encoder, hush_transformers
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.tokens import encode_texts
from sentigeo.profile import Profile

SQUARE = 2048  # rows of the matrices whose product gives the machine's rate
PRODUCTS = 10  # of them in a turn
WARM_UP = 32  # texts


def bench_embed(texts: list[str], encoder: Encoder, profile: Profile) -> dict[str, float]:
    """Compare mean-pooled vectors of the same texts, cut to the same length, on the same weights.

    The share of peak is the rate of useful multiplications and additions over the best rate of
    large matrix products, which take their turns among the contestants.
    """
    hush_transformers()
    other = SentenceTransformer(find_encoder(profile.model)[0])
    other.max_seq_length = profile.max_length
    square = torch.rand(SQUARE, SQUARE)
    found: dict[str, np.ndarray] = {}
    rates: list[float] = []

    def own(count: int | None = None) -> None:
        found["own"] = embed_texts(
            texts[:count], encoder, pooling="mean", max_length=profile.max_length
        )

    def theirs(count: int | None = None) -> None:
        found["theirs"] = np.asarray(other.encode(texts[:count], show_progress_bar=False))

    def product() -> None:
        for _ in range(PRODUCTS):
            began = time.perf_counter()
            square @ square
            rates.append(2 * SQUARE**3 / (time.perf_counter() - began))

    own(WARM_UP)
    theirs(WARM_UP)
    product()
    seconds = take_turns({"own": own, "theirs": theirs, "product": product}, "extraction")
    tokens = encode_texts(texts, encoder.tokenizer, profile.max_length, "first")
    work = count_operations(tokens.lengths, encoder) / max(rates)
    return {
        "embed.speedup_vs_sentence_transformers": seconds["theirs"] / seconds["own"],
        "embed.share_of_peak": work / seconds["own"],
        "embed.sentence_transformers_share_of_peak": work / seconds["theirs"],
        "embed.smallest_cosine": float(row_cosines(found["own"], found["theirs"]).min()),
    }


def bench_tsne(texts: list[str], encoder: Encoder, profile: Profile) -> dict[str, float]:
    """Compare t-SNE maps of real vectors; each side draws as many maps as there are cores."""
    vectors = embed_texts(texts, encoder, layer=0, pooling="mean", max_length=profile.max_length)
    seeds = range(cpu_count())

    def own(maps: int = len(seeds)) -> None:
        wanted = [("tsne", seed) for seed in range(maps)]
        list(draw_maps(vectors, vectors[:1], wanted, profile.perplexity))

    def theirs() -> None:
        for seed in seeds:
            TSNE(perplexity=profile.perplexity, random_state=seed, n_jobs=-1).fit_transform(vectors)

    seconds = take_turns({"own": own, "theirs": theirs, "one": lambda: own(1)}, "t-SNE")
    return {
        "tsne.speedup_vs_sklearn": seconds["theirs"] / seconds["own"],
        "tsne.seconds_of_one_map": seconds["one"],
    }


def count_operations(lengths: np.ndarray, encoder: Encoder) -> float:
    """Count multiplications and additions that texts of (n,) tokens cost a BERT-type encoder."""
    width, inner = encoder.width, int(encoder.model.config.intermediate_size)
    token = 2 * (4 * width**2 + 2 * width * inner)  # projections and feed-forward
    scores = 4 * width * lengths.astype(float) ** 2  # queries with keys, weights with values
    return float(encoder.layers * (token * lengths.sum() + scores.sum()))
