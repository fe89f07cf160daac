"""Keywords: the words that characterise a cluster."""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS, CountVectorizer

from sentigeo.errors import UserError
from sentigeo.text import MARKS

PRIOR = 1000.0  # uses that the prior of the log-odds is worth
# Words with their apostrophes ("don't" is one word) and with the vowel signs of other scripts.
_LETTER = rf"[^\W\d_][{MARKS}]*"
_WORD = re.compile(rf"(?:{_LETTER})+(?:'(?:{_LETTER})+)*")
_BREAK = re.compile(r"[.,;:!?()\[\]\"\u201c\u201d\u2026]+|--+|\s-\s")
# Of the usual stop words these negate an opinion, or are one.
_MEANINGFUL = {
    "no", "nor", "not", "never", "none", "nothing", "neither", "nobody", "noone", "nowhere",
    "cannot", "cant", "couldnt", "hasnt", "without",
    "empty", "enough", "interest", "serious", "sincere", "top", "well",
}  # fmt: skip
_STOP_WORDS = ENGLISH_STOP_WORDS - _MEANINGFUL
_ENDINGS = {"s", "m", "re", "ve", "ll", "d"}  # of "it's", "i'm", "they're", "we've", "he'll", "i'd"
SMOOTHING = 0.5  # texts added to every count


@dataclass(frozen=True)
class Terms:
    """How often n texts use v terms, in alphabetical order."""

    names: list[str]
    counts: csr_matrix  # (n, v)

    def uses_by_cluster(self, members: np.ndarray, k: int) -> np.ndarray:
        """Return the (k, v) uses of each term in the texts of each cluster."""
        inside = csr_matrix((members == np.arange(k)[:, None]).astype(np.int64))
        return np.asarray((inside @ self.counts).todense())

    def texts_by_cluster(self, members: np.ndarray, k: int) -> np.ndarray:
        """Return the (k, v) texts of each cluster that use each term, however often."""
        return Terms(self.names, (self.counts > 0).astype(np.int64)).uses_by_cluster(members, k)


def split_words(text: str) -> list[str]:
    """Return the words of a text in lower case, contractions whole."""
    plain = unicodedata.normalize("NFC", text).lower().replace("\u2019", "'")
    return _WORD.findall(plain)


def is_stop_word(word: str) -> bool:
    """Tell whether a word says nothing by itself, as contractions and single letters do not."""
    stem, _, ending = word.partition("'")
    return len(word) < 2 or word in _STOP_WORDS or (stem in _STOP_WORDS and ending in _ENDINGS)


def split_terms(text: str) -> list[str]:
    """Return a text's words without stop words, and pairs of those that are adjacent."""
    terms = []
    for phrase in _BREAK.split(text):
        words = [None if is_stop_word(word) else word for word in split_words(phrase)]
        terms += [word for word in words if word]
        terms += [f"{first} {second}" for first, second in pairwise(words) if first and second]
    return terms


def strip_text(text: str) -> str:
    """Return the words of a text in lower case, without stop words, marks and numbers."""
    return " ".join(word for word in split_words(text) if not is_stop_word(word))


def least_texts(texts: int) -> int:
    """Return how many texts of a given number must use a term for it to count: from 2 to 10."""
    return min(10, max(2, texts // 20))


def share_a_term(texts: Iterable[str], least: int) -> bool:
    """Tell whether `least` texts share a term, as they do where words are written apart."""
    used: Counter[str] = Counter()
    for text in texts:
        terms = set(split_terms(text))
        used.update(terms)
        if any(used[term] >= least for term in terms):
            return True
    return False


def count_terms(texts: Sequence[str], least: int, names: Sequence[str] | None = None) -> Terms:
    """Count words and pairs of words that at least `least` of n texts use, or given ones."""
    vocabulary = None if names is None else sorted(set(names))
    counter = CountVectorizer(analyzer=split_terms, min_df=least, vocabulary=vocabulary)
    try:
        counts = counter.fit_transform(texts)
    except ValueError:
        reason = f"no word but stop words is used by {least} texts or more"
        raise UserError(f"There are no keywords: {reason}.") from None
    return Terms(counter.get_feature_names_out().tolist(), csr_matrix(counts))


def class_tfidf(table: np.ndarray) -> np.ndarray:
    """Return the (k, v) class-based TF-IDF of (k, v) uses: frequent here, rare over all."""
    # Grootendorst (2022): share of a cluster's words x log(1 + mean words of a cluster / all uses)
    sizes = table.sum(axis=1, keepdims=True)
    shares = table / np.maximum(sizes, 1)
    return np.asarray(shares * np.log1p(sizes.mean() / np.maximum(table.sum(axis=0), 1)))


def log_odds(table: np.ndarray, prior: float = PRIOR) -> np.ndarray:
    """Return (k, v) z-scores of (k, v) uses: a term's log-odds in a cluster against all others."""
    # Monroe, Colaresi and Quinn (2008): a Dirichlet prior of a given weight has every cluster
    # use words as all together do; so rare words need much evidence.
    table = table.astype(np.float64)
    total = table.sum(axis=0)
    guess = prior * total / max(total.sum(), 1)
    inside, outside = table + guess, total - table + guess
    odds = [np.log(part / (part.sum(axis=1, keepdims=True) - part)) for part in (inside, outside)]
    return np.asarray((odds[0] - odds[1]) / np.sqrt(1 / inside + 1 / outside))


def keep_best(scores: np.ndarray) -> np.ndarray:
    """Keep a term's score only in the cluster where it is highest; elsewhere it is -infinity."""
    best = scores.argmax(axis=0) == np.arange(len(scores))[:, None]
    return np.where(best, scores, -np.inf)


def lead_over_others(scores: np.ndarray) -> np.ndarray:
    """Return by how much a term's score in a cluster surpasses its best score in any other."""
    if len(scores) < 2:
        return scores
    ranked = np.sort(scores, axis=0)
    return np.asarray(scores - np.where(scores == ranked[-1], ranked[-2], ranked[-1]))


def top_terms(scores: np.ndarray, names: Sequence[str], count: int) -> pd.DataFrame:
    """List the highest positive scores of each cluster, best first, equal ones by name."""
    rows = [
        (cluster, names[place], float(row[place]))
        for cluster, row in enumerate(scores)
        for place in np.argsort(-row, kind="stable")[:count]
        if row[place] > 0
    ]
    return pd.DataFrame(rows, columns=["cluster", "term", "score"])


def rank_terms(terms: Terms, members: np.ndarray, k: int, count: int) -> dict[str, pd.DataFrame]:
    """List the top terms of clusters by uses, by class-based TF-IDF and by log-odds."""
    texts = terms.texts_by_cluster(members, k)
    scores = {
        "uses": terms.uses_by_cluster(members, k),
        "class TF-IDF": lead_over_others(class_tfidf(texts)),
        "log-odds": keep_best(log_odds(texts)),
    }
    return {name: top_terms(score, terms.names, count) for name, score in scores.items()}


def shared_terms(top: pd.DataFrame) -> float:
    """Return the share of listed terms that stand in the lists of several clusters."""
    lists = top.groupby("term")["cluster"].nunique()
    return float((lists > 1).mean())


def measure_polarity(
    texts: Sequence[str], labels: np.ndarray, classes: int, terms: Sequence[str]
) -> pd.DataFrame:
    """Return log-odds ratios of using a term (row) in texts of a class (column), to all others."""
    if not len(terms):
        raise UserError("There are no keywords to look up.")
    found = count_terms(texts, 1, terms)
    used = found.texts_by_cluster(labels, classes)  # (classes, t)
    sizes = np.bincount(labels, minlength=classes)[:, None]
    others, other_sizes = used.sum(axis=0) - used, sizes.sum() - sizes
    both = ((used, sizes), (others, other_sizes))
    inside, outside = (np.log((n + SMOOTHING) / (of - n + SMOOTHING)) for n, of in both)
    return pd.DataFrame((inside - outside).T, index=found.names)


def judge_keywords(
    polarity: pd.DataFrame, keywords: pd.DataFrame, permutations: int
) -> tuple[np.ndarray, np.ndarray, float]:
    """Tell whether keywords go with their `label`, the class of their cluster.

    Return the (m,) log-odds ratio of each `term` for its label, the means of shuffled labels, and
    the two-sided p-value.
    """
    ratios, rows = polarity.loc[keywords["term"]].to_numpy(), np.arange(len(keywords))
    labels, rng = keywords["label"].to_numpy(), np.random.default_rng(0)
    found = ratios[rows, labels]
    orders = (rng.permutation(labels) for _ in range(permutations))
    shuffled = np.array([ratios[rows, order].mean() for order in orders])
    centre = shuffled.mean()
    far = np.abs(shuffled - centre) >= abs(found.mean() - centre) - 1e-12
    return found, shuffled, float((1 + far.sum()) / (1 + permutations))
