"""Clusters, maps and keywords of a person's own texts, few or very many."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from sentigeo.analysis.clusters import Clusters, align_clusters, find_clusters, pick_typical
from sentigeo.analysis.keywords import count_terms, keep_best, least_texts, log_odds, top_terms
from sentigeo.analysis.maps import largest_perplexity, load_maps, some_rows
from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.figures.interactive import make_map_page
from sentigeo.figures.style import Colouring, colour_clusters, colour_labels
from sentigeo.own_texts.read import LEAST, OwnTexts

STUDIED = 1_000  # texts that k is chosen with
CLUSTERED = 20_000  # texts that clusters are found in; all others go to the nearest
MAPPED = 5_000  # texts that maps are drawn with; all others are placed into them
SHOWN = 20_000  # texts on the interactive map
MAPS = {"pca": "PCA", "tsne": "t-SNE"}  # what to call them
PERPLEXITY = 30.0
MOST_CLUSTERS = 30
LEAST_SCORE = 2.0  # standard errors by which a keyword's odds surpass those of other clusters


def read_k(k: Any, texts: OwnTexts) -> int | None:
    """Return the number of clusters that a person asked for, or none for `auto`."""
    if str(k).strip().lower() == "auto":
        return None
    most = min(MOST_CLUSTERS, len(set(texts.clean)))
    if not str(k).strip().isdecimal() or not 2 <= int(k) <= most:
        raise UserError(f"k must be a number from 2 to {most} for these texts, or auto, not '{k}'.")
    return int(k)


def pick_studied(vectors: np.ndarray) -> np.ndarray:
    """Return the different ones among some of the (n, d) vectors, to choose k with."""
    different = np.unique(vectors[some_rows(len(vectors), STUDIED)], axis=0)
    if len(different) < LEAST:
        few = f"only {len(different)} different vectors for these texts"
        raise UserError(f"The encoder has {few}: perhaps it does not know their script.")
    return different


def cluster_own(vectors: np.ndarray, k: int) -> Clusters:
    """Find k clusters in some of the (n, d) vectors and put every one into the nearest."""
    found = find_clusters(vectors[some_rows(len(vectors), CLUSTERED)], k)
    return replace(found, members=found.assign(vectors))


def map_own(vectors: np.ndarray, store: Store) -> dict[str, np.ndarray]:
    """Return (n, 2) maps by method: drawn with some of the vectors, the others placed into them."""
    seen = some_rows(len(vectors), MAPPED)
    others = np.setdiff1d(np.arange(len(vectors)), seen)
    perplexity = min(PERPLEXITY, largest_perplexity(len(seen)))
    wanted = [(method, 0) for method in MAPS]
    maps = {}
    for own in load_maps(store, vectors[seen], vectors[others], wanted, perplexity):
        maps[own.method] = np.empty((len(vectors), 2), np.float32)
        maps[own.method][seen], maps[own.method][others] = own.fitted, own.placed
    return maps


def find_keywords(texts: OwnTexts, members: np.ndarray, k: int, count: int = 10) -> pd.DataFrame:
    """List the words and pairs of words that set each cluster apart, if texts have any in common.

    Columns are `cluster` (from 1), `term`, `score` (log-odds), `texts` (of the cluster that use it,
    of at most `CLUSTERED` that were counted).
    """
    seen = some_rows(len(members), CLUSTERED)
    try:
        terms = count_terms([texts.clean[row] for row in seen], least_texts(len(seen)))
    except UserError:
        return pd.DataFrame({"cluster": [], "term": [], "score": [], "texts": []})
    uses = terms.texts_by_cluster(members[seen], k)
    scores = keep_best(log_odds(uses))
    scores[scores < LEAST_SCORE] = -np.inf
    top = _drop_nested(top_terms(scores, terms.names, len(terms.names)))
    top = top.groupby("cluster").head(count).reset_index(drop=True)
    columns = pd.Index(terms.names).get_indexer(pd.Index(top["term"]))
    top["texts"] = uses[top["cluster"].astype(int), columns]
    return top.assign(cluster=top["cluster"] + 1)


def _drop_nested(top: pd.DataFrame) -> pd.DataFrame:
    """Leave out terms that share a word with a better one of the same cluster."""
    kept, used = [], set[tuple[int, str]]()
    for row in top.itertuples():
        words = {(int(str(row.cluster)), word) for word in str(row.term).split()}
        kept.append(not words & used)
        used |= words if kept[-1] else set()
    return top[np.array(kept, bool)]


def list_typical(
    texts: OwnTexts, distances: np.ndarray, members: np.ndarray, count: int = 5
) -> pd.DataFrame:
    """List a count of texts nearest to the centroid of each cluster, no text twice.

    Distances are (n, k). Returns columns `cluster` (from 1), `row`, `distance`, `text`.
    """
    first = pd.Series(texts.clean).drop_duplicates().index.to_numpy()
    typical = pick_typical(distances[first], members[first], count)
    rows = [
        (cluster + 1, texts.rows[place], distances[place, cluster], texts.texts[place])
        for cluster, nearest in typical.items()
        for place in first[nearest]
    ]
    return pd.DataFrame(rows, columns=["cluster", "row", "distance", "text"])


def colour_texts(
    texts: OwnTexts, members: np.ndarray, overview: pd.DataFrame
) -> dict[str, Colouring]:
    """Colour texts by cluster and, if they have any, by label."""
    coloured = {"cluster": colour_clusters(members, overview)}
    if texts.labels is not None:
        coloured["label"] = colour_labels(texts.labels, texts.classes)
    return coloured


def summarise_clusters(keywords: pd.DataFrame, members: np.ndarray, k: int) -> pd.DataFrame:
    """Return columns `cluster` (from 1), `texts`, `share`, `keywords`; one row per cluster."""
    sizes = np.bincount(members, minlength=k)
    words = keywords.groupby("cluster")["term"].agg(", ".join)
    found = pd.DataFrame({"cluster": range(1, k + 1), "texts": sizes})
    found["share"] = found["texts"] / len(members)
    return found.assign(keywords=[words.get(number, "") for number in found["cluster"]])


def list_rows(
    texts: OwnTexts, members: np.ndarray, distances: np.ndarray, maps: dict[str, np.ndarray]
) -> pd.DataFrame:
    """Put the cluster, (n, k) distances and (n, 2) maps of every text side by side.

    Columns are `row`, `text`, `cluster` (from 1), `distance` (from its centroid), two per map and,
    with labels, `label`, `cluster_label` (the one that its cluster is given) and `agrees`.
    """
    found: dict[str, Any] = {"row": texts.rows, "text": texts.texts, "cluster": members + 1}
    found["distance"] = distances[np.arange(len(members)), members]
    for method, points in maps.items():
        found |= {f"{method}_1": points[:, 0], f"{method}_2": points[:, 1]}
    if texts.labels is not None:
        names = np.array([*texts.classes, ""], dtype=object)
        answers = align_clusters(texts.labels, members)
        found |= {"label": names[texts.labels], "cluster_label": names[answers]}
        found["agrees"] = answers == texts.labels
    return pd.DataFrame(found)


def list_predictions(probabilities: np.ndarray, classes: Sequence[str]) -> pd.DataFrame:
    """Return columns `predicted` and `probability` from (n, classes) probabilities."""
    names = np.array(classes, dtype=object)[probabilities.argmax(axis=1)]
    return pd.DataFrame({"predicted": names, "probability": probabilities.max(axis=1)})


def make_own_map(texts: OwnTexts, maps: dict[str, np.ndarray], groups: dict[str, Colouring]) -> str:
    """Return the interactive map of so many texts as it can show."""
    shown = some_rows(len(texts.texts), SHOWN)
    return make_map_page(
        f"{len(shown):,} texts of {texts.name}",
        [texts.texts[row] for row in shown],
        {MAPS[method]: maps[method][shown] for method in ("tsne", "pca")},
        {name: own.at(shown) for name, own in groups.items()},
        texts.rows[shown],
    )
