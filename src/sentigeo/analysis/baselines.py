"""Baselines that every model must beat: a lexicon, NB-SVM, TF-IDF; and vectors of topics."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC
from vaderSentiment.vaderSentiment import SentimentIntensityAnalyzer

from sentigeo.analysis.keywords import share_a_term
from sentigeo.cache import Store, load_array, save_arrays
from sentigeo.encoder.corpus import Corpus
from sentigeo.errors import UserError
from sentigeo.hashes import hash_array
from sentigeo.profile import Profile
from sentigeo.text import split_sentences, words

# What validation chooses from; the first of equals is taken.
LEAST = (2, 5)  # texts that must use a term for it to count
STRENGTHS = (0.1, 1.0, 10.0, 100.0, 1000.0)  # C of the logistic regression on TF-IDF
SVM_STRENGTHS = (0.001, 0.01, 0.1)  # C of the support vector machine
INTERPOLATIONS = (0.25, 0.5, 0.75, 1.0)  # 0 is naive Bayes with one weight, 1 the machine's own

Models = Callable[[csr_matrix, np.ndarray], Iterator[LogisticRegression | LinearSVC]]


@dataclass(frozen=True)
class Lexicon:
    """Calls texts positive whose score is above a threshold."""

    threshold: float

    def decision_function(self, texts: Iterable[str]) -> np.ndarray:
        """Return (n,) margins: scores less the threshold."""
        return score_lexicon(texts) - self.threshold

    def predict(self, texts: Iterable[str]) -> np.ndarray:
        """Return (n,) classes, 0 or 1."""
        return decide(self.decision_function(texts))


def score_lexicon(texts: Iterable[str]) -> np.ndarray:
    """Return (n,) scores from -1 to 1: the mean of VADER's compound score over sentences."""
    # Hutto and Gilbert (2014). A whole review would be slower, and its compound nearly always +-1.
    rate = SentimentIntensityAnalyzer().polarity_scores
    compounds = ([rate(part)["compound"] for part in split_sentences(text)] for text in texts)
    return np.array([np.mean(found or [0.0]) for found in compounds])


def fit_lexicon(reviews: pd.DataFrame) -> Lexicon:
    """Choose the threshold that has most of some reviews right, the lowest of equals."""
    scores, positive = score_lexicon(reviews["text"]), reviews["label"].to_numpy() == 1
    cuts = np.unique(scores)
    right = [np.mean((scores > cut) == positive) for cut in cuts]
    return Lexicon(float(cuts[np.argmax(right)]))


def fit_tfidf(train: pd.DataFrame, validation: pd.DataFrame) -> Pipeline:
    """Fit TF-IDF with logistic regression; validation chooses its strength and rarest term."""
    return _fit_best(partial(TfidfVectorizer, sublinear_tf=True), _regressions, train, validation)


def fit_nbsvm(train: pd.DataFrame, validation: pd.DataFrame) -> Pipeline:
    """Fit NB-SVM on two classes; validation chooses strength, interpolation and rarest term."""
    if not set(train["label"]) <= {0, 1}:
        raise UserError("NB-SVM tells two classes apart, not more.")
    return _fit_best(partial(CountVectorizer, binary=True), _nbsvms, train, validation)


def log_count_ratio(counts: csr_matrix, labels: np.ndarray) -> np.ndarray:
    """Return (v,) log-ratios of the shares of (n, v) counts that each term has in classes 1, 0."""
    positive, negative = (1 + np.asarray(counts[labels == k].sum(axis=0)).ravel() for k in (1, 0))
    return np.asarray(np.log(positive / positive.sum()) - np.log(negative / negative.sum()))


def decide(margins: np.ndarray) -> np.ndarray:
    """Return the (n,) classes that (n,) margins, or (n, classes) of more than two, speak for."""
    return np.asarray(margins > 0 if margins.ndim == 1 else margins.argmax(axis=1)).astype(np.int64)


def save_margins(margins: Mapping[str, np.ndarray], corpus: Corpus, store: Store) -> Path:
    """Keep each baseline's margins of all n texts of a corpus as `<name>.npy`; return where."""
    hashes = {name: hash_array(values) for name, values in margins.items()}
    key = {"corpus": str(corpus.folder.relative_to(store.root)), "margins": hashes}
    fill = partial(save_arrays, arrays=margins)
    return store.folder("baselines", key, fill, rests_on=[corpus.folder])


def load_margins(folder: Path) -> dict[str, np.ndarray]:
    """Return the margins that `save_margins` kept: (n,), or (n, classes) of more than two."""
    return {path.stem: load_array(path) for path in sorted(folder.glob("*.npy"))}


def score_over_draws(
    reviews: pd.DataFrame, test: pd.DataFrame, profile: Profile, model: Pipeline
) -> np.ndarray:
    """Return (seeds,) accuracies on `test` of a model fitted to other draws of the same size."""
    candidates = reviews[(reviews["origin"] != "handcrafted") & ~reviews["id"].isin(test["id"])]
    size = round(profile.draw_per_label * (1 - profile.validation_share))
    scores = []
    for seed in range(profile.seeds):
        drawn = candidates.groupby("label").sample(size, random_state=seed)
        fitted = clone(model).fit(drawn["text"], drawn["label"])
        scores.append(fitted.score(test["text"], test["label"]))
    return np.array(scores)


def topic_vectors(
    train: Sequence[str], test: Sequence[str], size: int = 100
) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, size) and (t, size) vectors of latent semantic analysis, learned from `train`."""
    vectorizer = _vectorizers(partial(TfidfVectorizer, sublinear_tf=True), train)[0]
    known = vectorizer.fit_transform(train)
    svd = TruncatedSVD(min(size, known.shape[1] - 1), random_state=0)  # few words, few dimensions
    reduce = make_pipeline(svd, Normalizer(copy=False))
    return reduce.fit_transform(known), reduce.transform(vectorizer.transform(test))


def _fit_best(
    make: Callable[..., CountVectorizer],
    models: Models,
    train: pd.DataFrame,
    validation: pd.DataFrame,
) -> Pipeline:
    """Return the pair of vectoriser and model that has most validation reviews right."""
    labels, scores, pairs = train["label"].to_numpy(), [], []
    for vectorizer in _vectorizers(make, train["text"]):
        known = vectorizer.fit_transform(train["text"])
        new = vectorizer.transform(validation["text"])
        for model in models(known, labels):
            scores.append(model.score(new, validation["label"]))
            pairs.append((vectorizer, model))
    return make_pipeline(*pairs[int(np.argmax(scores))])


def _vectorizers(
    make: Callable[..., CountVectorizer], texts: Iterable[str]
) -> list[CountVectorizer]:
    """Count one and two words or, where words are not written apart, one and two letters."""
    make = partial(make, ngram_range=(1, 2))
    shared = [least for least in LEAST if share_a_term(texts, least)]
    whole = partial(make, tokenizer=words, token_pattern=None, lowercase=False)
    return [whole(min_df=least) for least in shared] or [make(analyzer="char")]


def _regressions(values: csr_matrix, labels: np.ndarray) -> Iterator[LogisticRegression]:
    for strength in STRENGTHS:
        yield LogisticRegression(C=strength, max_iter=1000).fit(values, labels)


def _nbsvms(counts: csr_matrix, labels: np.ndarray) -> Iterator[LinearSVC]:
    """Fit machines to counts times their log-count ratio, which then goes into their weights."""
    # Wang and Manning (2012): weights are drawn towards their mean size, which is naive Bayes.
    ratio = log_count_ratio(counts, labels)
    scaled = csr_matrix(counts.multiply(ratio))
    for strength in SVM_STRENGTHS:
        machine = LinearSVC(C=strength, random_state=0).fit(scaled, labels)
        mean = np.abs(machine.coef_).mean()
        for own in INTERPOLATIONS:
            model = copy(machine)
            model.coef_ = (own * machine.coef_ + (1 - own) * mean) * ratio
            yield model
