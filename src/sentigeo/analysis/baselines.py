"""What every later model must beat: the largest class, and TF-IDF with logistic regression."""

from collections.abc import Sequence

import numpy as np
import pandas as pd
from sklearn.decomposition import TruncatedSVD
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer

from sentigeo.analysis.keywords import share_a_term
from sentigeo.profile import Profile
from sentigeo.text import words

STRENGTHS = (1.0, 10.0, 100.0)
TOPICS = 100
LEAST = 2  # texts that must use a word for it to count


def fit_majority(train: pd.DataFrame) -> DummyClassifier:
    """Fit the classifier that always answers with the largest class."""
    return DummyClassifier(strategy="most_frequent").fit(train["text"], train["label"])


def fit_tfidf(train: pd.DataFrame, validation: pd.DataFrame) -> Pipeline:
    """Fit TF-IDF of one and two words with logistic regression.

    Texts that share no words, as where these are not written apart, are taken letter by letter.
    Validation chooses among inverse regularisation strengths, the first of equally good ones.
    """
    vectorizer = _vectorizer(train["text"])
    known = vectorizer.fit_transform(train["text"])
    new = vectorizer.transform(validation["text"])
    models = [LogisticRegression(C=c, max_iter=1000).fit(known, train["label"]) for c in STRENGTHS]
    best = int(np.argmax([model.score(new, validation["label"]) for model in models]))
    return make_pipeline(vectorizer, models[best])


def topic_vectors(
    train: Sequence[str], test: Sequence[str], size: int = TOPICS
) -> tuple[np.ndarray, np.ndarray]:
    """Return (n, size) and (t, size) vectors of latent semantic analysis, learned from `train`."""
    vectorizer = _vectorizer(pd.Series(train))
    known = vectorizer.fit_transform(train)
    svd = TruncatedSVD(min(size, known.shape[1] - 1), random_state=0)  # few words, few dimensions
    reduce = make_pipeline(svd, Normalizer(copy=False))
    return reduce.fit_transform(known), reduce.transform(vectorizer.transform(test))


def score_over_draws(
    reviews: pd.DataFrame, test: pd.DataFrame, profile: Profile, strength: float
) -> np.ndarray:
    """Return the (seeds,) accuracies on `test` of TF-IDF trained on other draws of the same size.

    The study's draw is one of many: how much does a result depend on it?
    """
    candidates = reviews[(reviews["origin"] != "handcrafted") & ~reviews["id"].isin(test["id"])]
    size = round(profile.draw_per_label * (1 - profile.validation_share))
    scores = []
    for seed in range(profile.seeds):
        drawn = candidates.groupby("label").sample(size, random_state=seed)
        classifier = LogisticRegression(C=strength, max_iter=1000)
        model = make_pipeline(_vectorizer(drawn["text"]), classifier)
        model.fit(drawn["text"], drawn["label"])
        scores.append(model.score(test["text"], test["label"]))
    return np.array(scores)


def _vectorizer(texts: pd.Series) -> TfidfVectorizer:
    if not share_a_term(texts, LEAST):
        return TfidfVectorizer(analyzer="char", ngram_range=(1, 2), sublinear_tf=True)
    return TfidfVectorizer(
        tokenizer=words, token_pattern=None, lowercase=False, ngram_range=(1, 2), min_df=LEAST,
        sublinear_tf=True,
    )  # fmt: skip
