"""Clusters, maps and keywords of your own texts, and what is said about them."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
from jinja2 import Environment, FileSystemLoader, StrictUndefined

from sentigeo.analysis import cluster_study
from sentigeo.analysis.clusters import Clusters, align_clusters, find_clusters, pick_typical
from sentigeo.analysis.keywords import count_terms, keep_best, least_texts, log_odds, top_terms
from sentigeo.analysis.maps import largest_perplexity, load_maps, some_rows
from sentigeo.cache import Store
from sentigeo.encoder.encoder import PACKAGED_NAME
from sentigeo.encoder.tokens import count_tokens
from sentigeo.errors import UserError
from sentigeo.figures.interactive import make_map_page
from sentigeo.figures.style import Colouring, colour_clusters, colour_labels
from sentigeo.own_texts.read import LEAST, OwnTexts, Reading
from sentigeo.paths import SITE_SOURCE
from sentigeo.text import excerpt, plain

STUDIED = 1_000  # texts that k is chosen with
CLUSTERED = 20_000  # texts that clusters are found in; all others go to the nearest
MAPPED = 5_000  # texts that maps are drawn with; all others are placed into them
SHOWN = 20_000  # texts on the interactive map
MAPS = {"pca": "PCA", "tsne": "t-SNE"}  # what to call them
PERPLEXITY = 30.0
MOST_CLUSTERS = 30
LEAST_SCORE = 2.0  # standard errors by which a keyword's odds surpass those of other clusters
RESAMPLES = 200  # behind the intervals of agreement with labels


def read_k(k: Any, texts: OwnTexts) -> int | None:
    """Return the number of clusters that was asked for, or none for `auto`."""
    if str(k).strip().lower() == "auto":
        return None
    most = min(MOST_CLUSTERS, len(set(texts.clean)))
    if not str(k).strip().isdecimal() or not 2 <= int(k) <= most:
        raise UserError(f"k must be a number from 2 to {most} for these texts, or auto, not '{k}'.")
    return int(k)


def pick_studied(vectors: np.ndarray) -> np.ndarray:
    """Return the distinct ones among some of the (n, d) vectors, to choose k with."""
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
    for drawn in load_maps(store, vectors[seen], vectors[others], wanted, perplexity):
        maps[drawn.method] = points = np.empty((len(vectors), 2), np.float32)
        points[seen], points[others] = drawn.fitted, drawn.placed
    return maps


def find_keywords(texts: OwnTexts, members: np.ndarray, k: int, count: int = 10) -> pd.DataFrame:
    """List what sets each `cluster` (from 1) apart: `term`, `score` (log-odds), `texts` with it."""
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
    """List the texts with the smallest (n, k) distances as `cluster`, `row`, `distance`, `text`."""
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
    found = pd.DataFrame({"cluster": range(1, k + 1), "texts": sizes})
    found["share"] = sizes / len(members)
    words = keywords.groupby("cluster")["term"].agg(", ".join)
    return found.assign(keywords=[words.get(number, "") for number in found["cluster"]])


def list_rows(
    texts: OwnTexts, members: np.ndarray, distances: np.ndarray, maps: dict[str, np.ndarray]
) -> pd.DataFrame:
    """Put what was found about each text, by its cluster, (n, k) distances and maps, in a row."""
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
    """Return the interactive map, of as many texts as it can show."""
    shown = some_rows(len(texts.texts), SHOWN)
    return make_map_page(
        f"{len(shown):,} texts of {texts.name}",
        [texts.texts[row] for row in shown],
        {MAPS[method]: maps[method][shown] for method in ("tsne", "pca")},
        {name: colouring.at(shown) for name, colouring in groups.items()},
        texts.rows[shown],
    )


def _write(paragraph: str, **facts: Any) -> str:
    """Return a paragraph, which is a macro of the template, on one line."""
    environment = Environment(loader=FileSystemLoader(SITE_SOURCE), undefined=StrictUndefined)
    environment.filters |= {"plain": plain, "number": format}
    macros = environment.get_template("your_texts.md.jinja").module
    return " ".join(getattr(macros, paragraph)(**facts).split())


def describe_texts(texts: OwnTexts) -> str:
    """Say how many texts there are and what was decided while reading them."""
    return _write("texts", texts=texts)


def describe_reading(reading: Reading, texts: OwnTexts) -> str:
    """Describe the encoder, and say how many texts are too long to be read whole."""
    encoder, english = reading.encoder, reading.encoder.name == PACKAGED_NAME
    cut = int((count_tokens(texts.clean, encoder.tokenizer) > reading.max_length).sum())
    facts = {"kind": type(encoder.model).__name__, "english": english, "cut": cut}
    return _write("reading", reading=reading, encoder=encoder, count=len(texts.clean), **facts)


def describe_choice(study: pd.DataFrame, k: int, asked: bool, seen: int) -> str:
    """Say which k was taken, why, and whether the study of those texts has found groups."""
    rows, best = study[study["k"] == k].to_dict("records"), cluster_study.pick_stable(study)
    facts = {"rows": rows, "best": best, "tried": len(study), "lead": study["lead"].max()}
    return _write("choice", k=k, asked=asked, seen=seen, rules=cluster_study, **facts)


def describe_clusters(overview: pd.DataFrame, typical: pd.DataFrame) -> str:
    """List the clusters with their size, keywords and most typical text."""
    nearest = typical.groupby("cluster")["text"].first().map(excerpt)
    rows = overview.assign(nearest=overview["cluster"].map(nearest)).to_dict("records")
    return "\n".join(_write("row", row=row) for row in rows)


def describe_agreement(labels: np.ndarray, members: np.ndarray, field: str) -> str:
    """Say how far (n,) clusters agree with the (n,) labels of a field, with intervals."""
    answers = align_clusters(labels, members)
    found = cluster_study.estimate_agreement(labels, members, answers, RESAMPLES)
    facts = {"k": len(np.unique(members)), "classes": len(np.unique(labels)), "field": field}
    facts["chance"] = cluster_study.matched_by_chance(labels, members)
    return _write("agreement", **facts, **found)
