"""What every later model must beat: the largest class, and TF-IDF with logistic regression."""

import numpy as np
import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import Pipeline, make_pipeline

from sentigeo.duplicates import words
from sentigeo.profile import Profile

STRENGTHS = (1.0, 10.0, 100.0)


def fit_majority(train: pd.DataFrame) -> DummyClassifier:
    """Fit the classifier that always answers with the largest class."""
    return DummyClassifier(strategy="most_frequent").fit(train["text"], train["label"])


def fit_tfidf(
    train: pd.DataFrame, validation: pd.DataFrame, strengths: tuple[float, ...] = STRENGTHS
) -> Pipeline:
    """Fit TF-IDF of one and two words with logistic regression.

    Args:
        train: Reviews to fit on.
        validation: Reviews that choose among the inverse regularisation strengths; the first of
            equally good ones is taken.
        strengths: Values of C to try.
    """
    vectorizer = TfidfVectorizer(
        tokenizer=words, token_pattern=None, lowercase=False, ngram_range=(1, 2), min_df=2,
        sublinear_tf=True,
    )  # fmt: skip
    known, held_out = (
        vectorizer.fit_transform(train["text"]),
        vectorizer.transform(validation["text"]),
    )
    models = [LogisticRegression(C=c, max_iter=1000).fit(known, train["label"]) for c in strengths]
    best = int(np.argmax([model.score(held_out, validation["label"]) for model in models]))
    return make_pipeline(vectorizer, models[best])


def pair_consistency(challenge: pd.DataFrame, predicted: np.ndarray) -> pd.Series:
    """Tell for each challenge pair whether both its sides were classified correctly.

    Args:
        challenge: Columns `pair` and `label`, one row a text.
        predicted: (n,) predicted class of each row.

    Returns:
        Truth values indexed by pair, in order of appearance.
    """
    right = pd.Series(predicted == challenge["label"].to_numpy(), index=challenge["pair"])
    return right.groupby(level=0, sort=False).all()


def score_over_draws(
    reviews: pd.DataFrame, test: pd.DataFrame, profile: Profile, strength: float
) -> np.ndarray:
    """Score TF-IDF trained on other draws of the same size from the same corpus.

    The study's draw is one of many: how much does a result depend on it? Each draw takes
    `draw_per_label` reviews of each class that are not scored, and trains on as large a share of
    them as the study does.

    Args:
        reviews: As `load_reviews` returns them.
        test: The reviews that are scored.
        profile: Says how many to draw, and how often.
        strength: Inverse regularisation strength, as chosen on the study's draw.

    Returns:
        (seeds,) accuracy on `test`.
    """
    candidates = reviews[(reviews["origin"] != "handcrafted") & ~reviews["id"].isin(test["id"])]
    scores = []
    for seed in range(profile.seeds):
        drawn = candidates.groupby("label").sample(profile.draw_per_label, random_state=seed)
        train, validation = train_test_split(
            drawn, test_size=profile.validation_share, stratify=drawn["label"], random_state=seed
        )
        model = fit_tfidf(train, validation, strengths=(strength,))
        scores.append(model.score(test["text"], test["label"]))
    return np.array(scores)
