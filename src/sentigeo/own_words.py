"""What was found in a person's own texts, in sentences whose numbers are computed."""

import numpy as np
import pandas as pd

from sentigeo.confusion import chance_agreement, estimate_agreement
from sentigeo.decisions import Reading
from sentigeo.encoder import count_tokens
from sentigeo.own_texts import OwnTexts
from sentigeo.page import excerpt, plain
from sentigeo.stability import SPLITS, pick_stable

FOUND_AGAIN, PARTLY = 0.8, 0.5  # stability from which clusters are called so
RESAMPLES = 200


def describe_texts(texts: OwnTexts) -> str:
    """Say how many texts there are and what was decided while reading them."""
    return f"{len(texts.texts):,} texts of {plain(texts.name)}. {plain(' '.join(texts.notes))}"


def describe_reading(reading: Reading, texts: OwnTexts) -> str:
    """Say what read the texts, how, and how many are too long to be read whole."""
    encoder = reading.encoder
    lengths = count_tokens(texts.clean, encoder.tokenizer)
    cut = int((lengths > reading.max_length).sum())
    revision = f", revision {plain(encoder.revision)}" if encoder.revision else ""
    return (
        f"Encoder: {plain(encoder.name)} ({type(encoder.model).__name__}, {encoder.layers} layers, "
        f"{encoder.width} wide{revision}, weights {encoder.sha256[:12]}); last layer, pooling "
        f"'{reading.pooling}'. "
        + (
            f"{cut:,} of {len(lengths):,} texts have more than {reading.max_length} tokens: of "
            "these the first quarter of that budget is read and, for the rest of it, the end."
            if cut
            else f"All of them are read whole: none has more than {reading.max_length} tokens."
        )
    )


def describe_choice(study: pd.DataFrame, k: int, asked: bool, seen: int) -> str:
    """Say which number of clusters was taken, why, and whether clusters can be relied on.

    Args:
        study: Columns `k`, `stability`, `error`.
        k: The number that was taken.
        asked: Whether a person asked for it.
        seen: Texts that were studied.
    """
    tried: dict[int, float] = dict(zip(study["k"], study["stability"], strict=True))
    best = pick_stable(study)
    stability, error = tried[best], float(study.loc[study["k"] == best, "error"].iloc[0])
    if stability >= FOUND_AGAIN:
        trust = "these clusters are found again"
    elif stability >= PARTLY:
        trust = "these clusters are found again in part"
    else:
        trust = "no clusters are found again, so take them for a cut through a cloud"
    why = "as asked for" if asked else "chosen by stability"
    own = f" k = {k} has {tried[k]:.2f}." if k in tried and k != best else ""
    return (
        f"**k = {k}**, {why}. Of the numbers tried, k = {best} is the largest that is as stable as "
        f"any, with {stability:.2f} (standard error {error:.2f}; 1 is the same groups in both "
        f"halves, 0 is chance; n = {seen:,} texts, {SPLITS} splits): {trust}.{own}"
    )


def describe_clusters(overview: pd.DataFrame, typical: pd.DataFrame) -> str:
    """List the clusters with their size, keywords and most typical text."""
    lines = []
    for row in overview.to_dict("records"):
        nearest = typical.loc[typical["cluster"] == row["cluster"], "text"].iloc[0]
        lines.append(
            f"- **Cluster {row['cluster']}**, {row['texts']:,} texts ({row['share']:.0%}): "
            f"{plain(row['keywords']) or 'no keywords'}. Most typical: {plain(excerpt(nearest))}"
        )
    return "\n".join(lines)


def describe_agreement(
    labels: np.ndarray, members: np.ndarray, answers: np.ndarray, field: str
) -> str:
    """Say how far clusters and labels agree, with intervals.

    Args:
        labels: (n,) classes.
        members: (n,) clusters.
        answers: (n,) class that each text's cluster stands for.
        field: Where the labels come from.
    """
    found = estimate_agreement(labels, members, answers, RESAMPLES)
    return (
        f"Agreement with the labels '{plain(field)}' (n = {len(labels):,}): accuracy "
        f"{found['accuracy']:.3f} (dealt at random {chance_agreement(labels, answers):.3f}), "
        f"adjusted Rand index {found['ari']:.3f}, adjusted mutual information {found['ami']:.3f}. "
        "Labels name the clusters here, which flatters accuracy a little."
    )
