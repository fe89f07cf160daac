"""Keywords: the words that characterise a cluster, and which way they lean."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from sentigeo.errors import UserError

PRIOR = 1000.0  # uses that the prior of the log-odds is worth
SMOOTHING = 0.5  # added to every count of a keyword's lean

# Words with their apostrophes: "don't" is one word, and so is "o'clock".
_WORD = re.compile(r"[^\W\d_]+(?:'[^\W\d_]+)*")
# Negations turn an opinion round, so they are no stop words here.
_NEGATIONS = {
    "no",
    "nor",
    "not",
    "never",
    "none",
    "nothing",
    "cannot",
    "cant",
    "couldnt",
    "without",
}
_STOP_WORDS = ENGLISH_STOP_WORDS - _NEGATIONS
_ENDINGS = {"s", "m", "re", "ve", "ll", "d"}  # of "it's", "i'm", "they're", "we've", "he'll", "i'd"


@dataclass(frozen=True)
class Terms:
    """How often n texts use v terms.

    Attributes:
        names: The terms in alphabetical order.
        counts: (n, v).
    """

    names: list[str]
    counts: csr_matrix

    @property
    def presence(self) -> csr_matrix:
        """(n, v) ones where a text uses a term, however often."""
        return (self.counts > 0).astype(np.int64)

    def sum_by_cluster(self, members: np.ndarray, k: int) -> np.ndarray:
        """Return the (k, v) uses of each term in the texts of each cluster."""
        return _sum_rows(self.counts, members, k)

    def texts_by_cluster(self, members: np.ndarray, k: int) -> np.ndarray:
        """Return the (k, v) texts of each cluster that use each term.

        A name that one review repeats twenty times says no more than one that it uses once.
        """
        return _sum_rows(self.presence, members, k)


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, contractions whole."""
    return _WORD.findall(text.lower().replace("\u2019", "'"))


def is_stop_word(word: str) -> bool:
    """Tell whether a word says nothing by itself: nor do contractions and single letters."""
    stem, _, ending = word.partition("'")
    return len(word) < 2 or word in _STOP_WORDS or (stem in _STOP_WORDS and ending in _ENDINGS)


def split_terms(text: str) -> list[str]:
    """Return the words of a text that are no stop words, and the pairs of such that are neighbours.

    Words before the stop words are gone count as neighbours only if nothing stood between them.
    """
    words = [None if is_stop_word(word) else word for word in split_words(text)]
    pairs = [f"{a} {b}" for a, b in pairwise(words) if a and b]
    return [word for word in words if word] + pairs


def count_terms(texts: Sequence[str], least: int, names: Sequence[str] | None = None) -> Terms:
    """Count words and pairs of words.

    Args:
        texts: n texts.
        least: Texts that must use a term for it to count.
        names: Count these terms instead of all that there are.
    """
    vocabulary = None if names is None else sorted(set(names))
    counter = CountVectorizer(analyzer=split_terms, min_df=least, vocabulary=vocabulary)
    if not any(split_terms(text) for text in texts):
        raise UserError("The texts hold no words but stop words: there are no keywords.")
    try:
        counts = counter.fit_transform(texts)
    except ValueError:
        raise UserError(
            f"No word is used by {least} texts or more: there are no keywords."
        ) from None
    return Terms(counter.get_feature_names_out().tolist(), csr_matrix(counts))


def class_tfidf(table: np.ndarray) -> np.ndarray:
    """Return the (k, v) class-based TF-IDF of terms: frequent here, and rare over all clusters.

    The term's share of the cluster's words, times log(1 + a / f), where a is the mean number of
    words of a cluster and f the uses of the term in all of them (Grootendorst, 2022).

    Args:
        table: (k, v) uses of each term in each cluster.
    """
    sizes = table.sum(axis=1, keepdims=True)
    shares = table / np.maximum(sizes, 1)
    return np.asarray(shares * np.log1p(sizes.mean() / np.maximum(table.sum(axis=0), 1)))


def log_odds(table: np.ndarray, prior: float = PRIOR) -> np.ndarray:
    """Return the (k, v) z-scores of each term's log-odds in a cluster against all others.

    With an informative Dirichlet prior: every cluster is first taken to use words as all clusters
    together do, and rare words need much evidence (Monroe, Colaresi and Quinn, 2008).

    Args:
        table: (k, v) uses of each term in each cluster.
        prior: Uses that the prior is worth.
    """
    table = table.astype(np.float64)
    total = table.sum(axis=0)
    guess = prior * total / max(total.sum(), 1)
    own, others = table + guess, total - table + guess
    odds = [np.log(part / (part.sum(axis=1, keepdims=True) - part)) for part in (own, others)]
    return np.asarray((odds[0] - odds[1]) / np.sqrt(1 / own + 1 / others))


def keep_best(scores: np.ndarray) -> np.ndarray:
    """Leave a term's score only in the cluster where it is highest; elsewhere it is minus infinity.

    So no term can be a keyword of two clusters.
    """
    best = scores.argmax(axis=0) == np.arange(len(scores))[:, None]
    return np.where(best, scores, -np.inf)


def lead_over_others(scores: np.ndarray) -> np.ndarray:
    """Return by how much a term's score in a cluster surpasses its best score in any other.

    Of two clusters at most one is in the lead, so words that are frequent in both drop out.
    """
    if len(scores) < 2:
        return scores
    ranked = np.sort(scores, axis=0)
    return np.asarray(scores - np.where(scores == ranked[-1], ranked[-2], ranked[-1]))


def top_terms(scores: np.ndarray, names: Sequence[str], count: int) -> pd.DataFrame:
    """List the terms with the highest positive scores of each cluster.

    Returns:
        Columns `cluster`, `term`, `score`, best first; equal scores in the order of the names.
    """
    rows = [
        {"cluster": cluster, "term": names[place], "score": float(own[place])}
        for cluster, own in enumerate(scores)
        for place in np.argsort(-own, kind="stable")[:count]
        if own[place] > 0
    ]
    return pd.DataFrame(rows, columns=["cluster", "term", "score"])


def shared_terms(top: pd.DataFrame) -> float:
    """Return the share of listed terms that stand in the lists of several clusters."""
    lists = top.groupby("term")["cluster"].nunique()
    return float((lists > 1).mean()) if len(lists) else float("nan")


def lean_of_terms(presence: csr_matrix, labels: np.ndarray, own: np.ndarray) -> np.ndarray:
    """Return how strongly terms speak for a class: the log-odds of that class in texts with them.

    Args:
        presence: (n, t) ones where a text uses a term.
        labels: (n,) classes of the texts.
        own: (t,) the class that each term is asked about.

    Returns:
        (t,) log of the odds of using the term, in texts of the class against all others; above 0 it
        leans to its class.
    """
    classes = np.unique(np.concatenate([labels, own]))
    inside = (labels[:, None] == classes).astype(np.int64)
    with_term = np.asarray(presence.T @ inside)[np.arange(len(own)), np.searchsorted(classes, own)]
    size = inside.sum(axis=0)[np.searchsorted(classes, own)]
    used = np.asarray(presence.sum(axis=0)).ravel()
    cells = [with_term, size - with_term, used - with_term, len(labels) - size - used + with_term]
    a, b, c, d = (cell + SMOOTHING for cell in cells)
    return np.asarray(np.log(a / b) - np.log(c / d))


def permute_lean(
    presence: csr_matrix, labels: np.ndarray, own: np.ndarray, shuffles: int
) -> tuple[float, float, np.ndarray]:
    """Test whether terms lean to their classes more than they would if labels were dealt at random.

    Args:
        presence: (n, t) ones where a text uses a term.
        labels: (n,) classes of the texts.
        own: (t,) the class of each term.
        shuffles: How often the labels are dealt anew.

    Returns:
        The mean lean, its one-sided p-value, and the (shuffles,) mean leans of dealt labels.
    """
    rng = np.random.default_rng(0)
    found = float(lean_of_terms(presence, labels, own).mean())
    dealt = np.array(
        [lean_of_terms(presence, rng.permutation(labels), own).mean() for _ in range(shuffles)]
    )
    return found, float((1 + (dealt >= found).sum()) / (1 + shuffles)), dealt


def _sum_rows(counts: csr_matrix, members: np.ndarray, k: int) -> np.ndarray:
    inside = csr_matrix((members == np.arange(k)[:, None]).astype(np.int64))
    return np.asarray((inside @ counts).todense())
