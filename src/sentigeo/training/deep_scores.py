"""How clusters fare while an encoder is trained with them: sizes, agreement, what is lost."""

from collections.abc import Mapping, Sequence
from itertools import product

import numpy as np
import pandas as pd
from scipy.stats import entropy
from sklearn.metrics import adjusted_rand_score, normalized_mutual_info_score

from sentigeo.analysis.clusters import align_clusters, find_clusters
from sentigeo.training.deep_clustering import Draw
from sentigeo.training.deep_study import DeepRun, DrawResult

LOST = 0.1  # of its even share: a cluster with fewer texts is lost
SHUFFLES = 20  # random clusters behind the chance level


def score_members(labels: np.ndarray, members: np.ndarray, k: int) -> dict[str, float]:
    """Measure the clusters of texts, of which some may be empty, given (n,) labels and members.

    Accuracy is by optimal assignment; `effective` is the effective number of clusters (how many of
    equal size would have the entropy of the sizes) as a share of k.
    """
    sizes = np.bincount(members, minlength=k)
    return {
        "accuracy": float(np.mean(align_clusters(labels, members) == labels)),
        "nmi": float(normalized_mutual_info_score(labels, members)),
        "ari": float(adjusted_rand_score(labels, members)),
        "largest_share": float(sizes.max() / sizes.sum()),
        "smallest_share": float(sizes.min() / sizes.sum()),
        "effective": float(np.exp(float(entropy(sizes))) / k),
    }


def score_courses(runs: Sequence[DeepRun]) -> pd.DataFrame:
    """Measure the clusters of runs before training and after each epoch.

    Besides measures and course, `lost` tells whether a cluster has less than a tenth of its even
    share, and `changed` which share of the texts was in another cluster the epoch before.
    """
    parts = []
    for run in runs:
        k, members = len(run.texts.classes), np.array(run.course.members)
        frame = pd.DataFrame([score_members(run.texts.labels, epoch, k) for epoch in members])
        frame["lost"] = frame["smallest_share"] < LOST / k
        frame["changed"] = [np.nan, *(members[1:] != members[:-1]).mean(axis=1)]
        for name in ("confidence", "silhouette", "clustering", "masked"):
            frame[name] = getattr(run.course, name)
        frame["set"], frame["draw"], frame["condition"] = run.texts.title, run.draw, run.condition
        parts.append(frame.assign(epoch=range(len(frame))))
    return pd.concat(parts, ignore_index=True)


def score_ends(result: DrawResult) -> pd.DataFrame:
    """Measure the clusters that every condition ends with: columns as those of `score_courses`.

    Besides the runs: `kmeans` and `kmeans_mean` on the [CLS] and the mean vectors of the encoder as
    it is, and `chance`, clusters as large as those of `kmeans`, assigned at random. Where
    there was no clustering loss, K-Means finds clusters of the trained encoder.
    """
    texts, seed, first = result.draw.texts, result.draw.seed, result.first.members
    k, labels = len(texts.classes), texts.labels
    ends = {"kmeans": first}
    ends["kmeans_mean"] = find_clusters(result.pretrained.matrix(-1, "mean"), k, seed).members
    for run in result.runs:
        ends[run.condition] = np.array(run.course.members[-1])
        if not result.draw.recipes[run.condition].clustering:
            ends[run.condition] = find_clusters(run.vectors, k, seed).members
    scores = {name: score_members(labels, members, k) for name, members in ends.items()}
    rng = np.random.default_rng(seed)
    random = [score_members(labels, rng.permutation(first), k) for _ in range(SHUFFLES)]
    scores["chance"] = {name: float(np.mean([one[name] for one in random])) for name in random[0]}
    frame = pd.DataFrame(scores).T.rename_axis("condition").reset_index()
    return frame.assign(set=texts.title, draw=seed)


def compare(ends: pd.DataFrame, measure: str, after: str, before: str) -> pd.DataFrame:
    """Return how much a measure differs between two conditions; sets are rows, draws columns."""
    both = (ends[ends["condition"] == name] for name in (after, before))
    tables = [scores.pivot_table(measure, "set", "draw") for scores in both]
    return tables[0] - tables[1]


def lost_runs(courses: pd.DataFrame, condition: str) -> np.ndarray:
    """Return whether each run of a condition lost a cluster at any time after the beginning."""
    later = courses[(courses["condition"] == condition) & (courses["epoch"] > 0)]
    return later.groupby(["set", "draw"])["lost"].any().to_numpy()


def stop_early(courses: pd.DataFrame, tolerance: float) -> pd.DataFrame:
    """Find where training would stop if it ended once hardly any text changes its cluster.

    That is when a smaller share of the texts than the tolerance changes, from the second epoch on;
    `stops` are these epochs by draw; accuracies are means over draws, the last epoch where none is.
    """
    rows = []
    for (title, condition), found in courses.groupby(["set", "condition"], sort=False):
        quiet = found[(found["epoch"] > 1) & (found["changed"] < tolerance)]
        stops = quiet.groupby("draw").first().reindex(found["draw"].unique())
        told = ["never" if epoch != epoch else f"{epoch:.0f}" for epoch in stops["epoch"]]
        row = {"set": title, "condition": condition, "stops": ", ".join(told)}
        last = found.sort_values("epoch").groupby("draw")["accuracy"].last()
        there = stops["accuracy"].fillna(last)
        rows.append(row | {"accuracy there": there.mean(), "in the end": last.mean()})
    return pd.DataFrame(rows)


def largest_sizes(
    runs: Sequence[DeepRun], titles: Mapping[str, str]
) -> dict[tuple[str, str], np.ndarray]:
    """Return the (epochs + 1, k) shares of clusters, of the draw that ends with the largest.

    They are by title of the set and of the condition.
    """
    found: dict[tuple[str, str], np.ndarray] = {}
    sets = dict.fromkeys(run.texts.title for run in runs)
    for title, (name, heading) in product(sets, titles.items()):
        same = [run for run in runs if run.condition == name and run.texts.title == title]
        clusters = np.arange(len(same[0].texts.classes))
        members = [np.array(run.course.members)[..., np.newaxis] for run in same]
        shares = [(each == clusters).mean(axis=1) for each in members]
        found[title, heading] = max(shares, key=lambda share: share[-1].max())
    return found


def list_sets(draws: Sequence[Draw], most_tokens: int) -> pd.DataFrame:
    """Describe the sets of texts by their first draws, cut to a number of tokens."""
    return pd.DataFrame(
        {
            "set": draw.texts.title,
            "draws": sum(other.texts.title == draw.texts.title for other in draws),
            "texts of a draw": len(draw.texts.texts),
            "classes": ", ".join(draw.texts.classes),
            "median tokens": np.median(draw.tokens.lengths),
            "cut": float((draw.tokens.lengths == most_tokens).mean()),
        }
        for draw in draws
        if draw.seed == 0
    )
