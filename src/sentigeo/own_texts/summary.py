"""What was found in a person's own texts, in sentences whose numbers are computed."""

import numpy as np
import pandas as pd

from sentigeo.analysis.cluster_study import (
    GROUPS,
    PARTLY,
    SPLITS,
    estimate_agreement,
    matched_by_chance,
    pick_stable,
)
from sentigeo.analysis.clusters import align_clusters
from sentigeo.encoder.encoder import PACKAGED_NAME
from sentigeo.encoder.tokens import count_tokens
from sentigeo.own_texts.decisions import Reading
from sentigeo.own_texts.read import OwnTexts
from sentigeo.text import excerpt, plain

RESAMPLES = 200


def describe_texts(texts: OwnTexts) -> str:
    """Say how many texts there are and what was decided while reading them."""
    return f"{len(texts.texts):,} texts of {plain(texts.name)}. {plain(' '.join(texts.notes))}"


def describe_reading(reading: Reading, texts: OwnTexts) -> str:
    """Say what read the texts, how, and how many are too long to be read whole."""
    encoder = reading.encoder
    lengths = count_tokens(texts.clean, encoder.tokenizer)
    cut = int((lengths > reading.max_length).sum())
    english = "It was trained on English texts. " if encoder.name == PACKAGED_NAME else ""
    revision = f", revision {plain(encoder.revision)}" if encoder.revision else ""
    whole = f"Every text is read whole: none has more than {reading.max_length} tokens."
    if cut:
        whole = (
            f"{cut:,} of {len(lengths):,} texts have more than {reading.max_length} tokens: of "
            "these the first quarter of that budget is read and, for the rest of it, the end."
        )
    return (
        f"Encoder: {plain(encoder.name)} ({type(encoder.model).__name__}, {encoder.layers} layers, "
        f"{encoder.width} wide{revision}, weights {encoder.sha256[:12]}); last layer, pooling "
        f"'{reading.pooling}'. {english}{whole}"
    )


def describe_choice(study: pd.DataFrame, k: int, asked: bool, seen: int) -> str:
    """Say which k was taken, why, and whether clusters can be taken for groups.

    The study is that of `study_stability` on so many different texts that were seen.
    """
    best = pick_stable(study)
    if asked:
        why = "as asked for" + (f"; k = {best} would be chosen by stability" if best != k else "")
    elif len(study) == 1:
        why = "because there are too few texts to choose"
    elif study["lead"].max() < PARTLY:
        why = "because no number stands out"
    else:
        why = "chosen by stability"
    own = study[study["k"] == k]
    if own.empty:
        return f"**k = {k}**, {why}. Halves of n = {seen:,} texts are too small to try so many."
    found = own.iloc[0]
    return (
        f"**k = {k}**, {why}. Clusters found in either half of the texts agree to "
        f"{found['stability']:.2f} (adjusted Rand index: 1 for the same groups, 0 for chance; mean "
        f"of {SPLITS} splits, standard deviation {found['spread']:.2f}; n = {seen:,} different "
        f"texts); in clouds of the same extent without groups, to {found['cloud']:.2f}. "
        f"{_trust(found['lead'])}"
    )


def _trust(lead: float) -> str:
    """Say whether clusters are groups, by how far their stability leads that of clouds."""
    if lead >= GROUPS:
        return "So these are groups that are found again."
    if lead >= PARTLY:
        return "So these are groups in part: some of their borders are found again."
    return "So take them for a cut through a cloud rather than for groups."


def describe_clusters(overview: pd.DataFrame, typical: pd.DataFrame) -> str:
    """List the clusters with their size, keywords and most typical text."""
    lines = []
    for row in overview.to_dict("records"):
        nearest = typical.loc[typical["cluster"] == row["cluster"], "text"].iloc[0]
        lines.append(
            f"- **Cluster {row['cluster']}**, {row['share']:.0%} (n = {row['texts']:,}): "
            f"{plain(row['keywords']) or 'no keywords'}. Most typical: {plain(excerpt(nearest))}"
        )
    return "\n".join(lines)


def describe_agreement(labels: np.ndarray, members: np.ndarray, field: str) -> str:
    """Say how far (n,) clusters agree with the (n,) labels of a field, with intervals."""
    found = estimate_agreement(labels, members, align_clusters(labels, members), RESAMPLES)
    k, classes = len(np.unique(members)), len(np.unique(labels))
    left_over = f" ({k - classes} clusters are left without one)" if k > classes else ""
    return (
        f"Agreement of k = {k} clusters with the {classes} labels '{plain(field)}', where each "
        f"label is given one cluster{left_over}: accuracy "
        f"{found['accuracy']:.3f} (labels shuffled and matched alike: "
        f"{matched_by_chance(labels, members):.3f}), adjusted Rand index {found['ari']:.3f}, "
        f"adjusted mutual information {found['ami']:.3f}."
    )
