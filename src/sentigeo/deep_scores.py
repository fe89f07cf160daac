"""How clusters under training stand: how they agree with labels, and whether they are healthy."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from scipy.stats import entropy
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from sentigeo.cluster import align_clusters, find_clusters
from sentigeo.deep_cluster import Course
from sentigeo.deep_study import CONDITIONS, DeepRun, DeepStudy
from sentigeo.stats import Estimate, half_samples, mean_over_runs, mean_share


def score_members(labels: np.ndarray, members: np.ndarray, k: int) -> dict[str, float]:
    """Measure clusters of texts.

    Args:
        labels: (n,) true classes.
        members: (n,) cluster of each text.
        k: Number of clusters, empty ones included.

    Returns:
        `accuracy` by optimal assignment, `nmi` (normalised mutual information), `ari` (adjusted
        Rand index), `largest_share` (of the texts in the largest cluster), `entropy` of the sizes
        in nats, and `effective`, the number of equally large clusters that has this entropy.
    """
    sizes = np.bincount(members, minlength=k)
    spread = float(entropy(sizes))
    return {
        "accuracy": float(np.mean(align_clusters(labels, members) == labels)),
        "nmi": float(normalized_mutual_info_score(labels, members)),
        "ari": float(adjusted_rand_score(labels, members)),
        "largest_share": float(sizes.max() / sizes.sum()),
        "entropy": spread,
        "effective": float(np.exp(spread)),
    }


def score_course(labels: np.ndarray, course: Course, k: int) -> pd.DataFrame:
    """Measure clusters whenever targets were computed.

    Returns:
        A row for each epoch from 0: columns `epoch`, those of `score_members`, and `surety`,
        `silhouette`, `clustering`, `masked` as in the course.
    """
    scores = [score_members(labels, np.array(members), k) for members in course.members]
    frame = pd.DataFrame(scores)
    frame.insert(0, "epoch", range(len(frame)))
    for name in ("surety", "silhouette", "clustering", "masked"):
        frame[name] = getattr(course, name)
    return frame


def score_runs(study: DeepStudy, runs: Sequence[DeepRun]) -> pd.DataFrame:
    """Measure the clusters of every run whenever targets were computed.

    Returns:
        Columns `condition`, `seed`, and those of `score_course`.
    """
    parts = []
    for run in runs:
        frame = score_course(study.texts.labels, run.course, study.k)
        frame.insert(0, "condition", run.condition)
        frame.insert(1, "seed", run.seed)
        parts.append(frame)
    return pd.concat(parts, ignore_index=True)


def final_members(study: DeepStudy, runs: Sequence[DeepRun]) -> dict[str, list[np.ndarray]]:
    """Return the (n,) clusters that each condition ends with, for each seed.

    `kmeans` are the clusters of the encoder as it is. Where there was no clustering loss, K-Means
    finds clusters of the trained encoder.
    """
    found = {"kmeans": [own.members for own in study.first_clusters]}
    for run in runs:
        members = np.array(run.course.members[-1])
        if not CONDITIONS[run.condition].clustering:
            members = find_clusters(run.vectors, study.k, run.seed).members
        found.setdefault(run.condition, []).append(members)
    return found


def estimate_clusters(
    labels: np.ndarray, members: Sequence[np.ndarray], k: int, resamples: int
) -> dict[str, Estimate]:
    """Estimate what clusters are like on average over seeds.

    Args:
        labels: (n,) true classes.
        members: (n,) cluster of each text, for each seed.
        k: Number of clusters.
        resamples: Bootstrap resamples behind the interval of the accuracy.

    Returns:
        `accuracy` (interval over texts and seeds), `nmi` (over halves of the texts) and
        `largest_share` (over seeds).
    """

    def mean_nmi(rows: np.ndarray) -> float:
        return float(
            np.mean([normalized_mutual_info_score(labels[rows], own[rows]) for own in members])
        )

    largest = [score_members(labels, own, k)["largest_share"] for own in members]
    return {
        "accuracy": mean_over_runs(right_texts(labels, members), resamples),
        "nmi": half_samples(mean_nmi, len(labels)),
        "largest_share": mean_share(largest),
    }


def right_texts(labels: np.ndarray, members: Sequence[np.ndarray]) -> np.ndarray:
    """Return (seeds, n) truth values: which texts are in the cluster of their class."""
    return np.stack([align_clusters(labels, own) == labels for own in members])


def settling_epoch(course: Course, tolerance: float) -> int | None:
    """Return the first epoch, after the first, that changes the cluster of hardly any text.

    Args:
        course: What training looked like.
        tolerance: Share of texts that may still change.

    Returns:
        The epoch after which training could have stopped; none if it never settled.
    """
    members = np.array(course.members)
    changed = (members[1:] != members[:-1]).mean(axis=1)
    settled = np.flatnonzero(changed[1:] < tolerance)
    return int(settled[0]) + 2 if len(settled) else None


def is_degenerate(effective: np.ndarray) -> bool:
    """Tell whether clusters degenerated.

    They did if at any time fewer than half-way between one and as many effective clusters were left
    as there were in the beginning.

    Args:
        effective: (epochs + 1,) effective clusters.
    """
    return bool(effective.min() < (effective[0] + 1) / 2)


def largest_run(runs: Sequence[DeepRun], condition: str) -> DeepRun:
    """Return the run of a condition that ends with the largest cluster."""
    own = [run for run in runs if run.condition == condition]
    return max(own, key=lambda run: np.bincount(run.course.members[-1]).max())


def size_shares(course: Course, k: int) -> np.ndarray:
    """Return the (epochs + 1, k) shares of the texts in each cluster."""
    return np.stack([np.bincount(own, minlength=k) / len(own) for own in course.members])
