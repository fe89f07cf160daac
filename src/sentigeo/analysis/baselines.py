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


def fit_tfidf(
    train: pd.DataFrame, validation: pd.DataFrame, strengths: tuple[float, ...] = STRENGTHS
) -> Pipeline:
    """Fit TF-IDF of one and two words with logistic regression.

    Texts that share no words, as where these are not written apart, are taken letter by letter.

    Args:
        train: Reviews to fit on.
        validation: Reviews that choose the inverse regularisation strength, the first of equals.
        strengths: Values of C to try.
    """
    vectorizer = _vectorizer(train["text"])
    known = vectorizer.fit_transform(train["text"])
    new = vectorizer.transform(validation["text"])
    models = [LogisticRegression(C=c, max_iter=1000).fit(known, train["label"]) for c in strengths]
    best = int(np.argmax([model.score(new, validation["label"]) for model in models]))
    return make_pipeline(vectorizer, models[best])


def topic_vectors(
    train: Sequence[str], test: Sequence[str], size: int = TOPICS
) -> tuple[np.ndarray, np.ndarray]:
    """Return the (n, size) and (t, size) vectors of latent semantic analysis, of length 1.

    TF-IDF in few dimensions, learned from `train`: what one would cluster without an encoder. With
    fewer words there are fewer dimensions.
    """
    vectorizer = _vectorizer(pd.Series(train))
    known = vectorizer.fit_transform(train)
    reduce = make_pipeline(
        TruncatedSVD(min(size, known.shape[1] - 1), random_state=0), Normalizer(copy=False)
    )
    return reduce.fit_transform(known), reduce.transform(vectorizer.transform(test))


def draw_candidates(
    reviews: pd.DataFrame, test: pd.DataFrame, profile: Profile
) -> tuple[pd.DataFrame, int]:
    """Return the reviews that other draws may take, and how many of each class a draw trains on."""
    candidates = reviews[(reviews["origin"] != "handcrafted") & ~reviews["id"].isin(test["id"])]
    return candidates, round(profile.draw_per_label * (1 - profile.validation_share))


def has_other_draws(reviews: pd.DataFrame, test: pd.DataFrame, profile: Profile) -> bool:
    """Tell whether a corpus has room for draws that differ from the study's."""
    candidates, size = draw_candidates(reviews, test, profile)
    return bool(candidates["label"].value_counts().min() >= 2 * size)


def score_over_draws(
    reviews: pd.DataFrame, test: pd.DataFrame, profile: Profile, strength: float
) -> np.ndarray:
    """Score TF-IDF trained on other draws of the same size from the same corpus.

    The study's draw is one of many: how much does a result depend on it?

    Args:
        reviews: All drawn reviews and the whole test pool.
        test: The reviews that are scored, and never drawn.
        profile: Says how many to draw, and how often.
        strength: Inverse regularisation strength, as chosen on the study's draw.

    Returns:
        (seeds,) accuracy on `test`.
    """
    candidates, size = draw_candidates(reviews, test, profile)
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
