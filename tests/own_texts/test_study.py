import numpy as np
import pytest
from map_reader import read_data

from sentigeo.cache import Store
from sentigeo.errors import UserError
from sentigeo.own_texts.read import OwnTexts
from sentigeo.own_texts.study import (
    MAPS,
    cluster_own,
    colour_texts,
    find_keywords,
    list_predictions,
    list_rows,
    list_typical,
    make_own_map,
    map_own,
    pick_studied,
    read_k,
    summarise_clusters,
)


def make_texts(texts, labels=None, classes=()):
    rows = np.arange(1, len(texts) + 1)
    labels = None if labels is None else np.array(labels)
    return OwnTexts("own.json", rows, texts, texts, labels, list(classes), [])


ANIMALS = make_texts(["cat purrs", "cat purrs", "cat sleeps", "bus stops", "bus goes", "bus stops"])
MEMBERS = np.array([0, 0, 0, 1, 1, 1])


def test_k_is_a_number_or_auto():
    assert read_k("auto", ANIMALS) is None
    assert read_k("AUTO ", ANIMALS) is None
    assert read_k("3", ANIMALS) == read_k(3, ANIMALS) == 3


@pytest.mark.parametrize("k", ["two", "", "2.5", "1", "5", "-3"])
def test_impossible_numbers_of_clusters(k):
    with pytest.raises(UserError, match=f"k must be a number from 2 to 4 .*, or auto, not '{k}'"):
        read_k(k, ANIMALS)


def test_of_many_texts_some_are_seen(three_groups, tmp_path, monkeypatch):
    vectors, labels = three_groups
    for limit in ("STUDIED", "CLUSTERED", "MAPPED"):
        monkeypatch.setattr(f"sentigeo.own_texts.study.{limit}", 40)
    assert pick_studied(np.concatenate([vectors, vectors])).shape[0] <= 40
    found = cluster_own(vectors, 3)
    assert len({(a, b) for a, b in zip(found.members, labels, strict=True)}) == 3
    for points in map_own(vectors, Store(tmp_path)).values():
        assert points.shape == (60, 2)
        centres = np.stack([points[labels == n].mean(axis=0) for n in range(3)])
        nearest = np.linalg.norm(points[:, None] - centres, axis=2).argmin(axis=1)
        assert (nearest == labels).mean() > 0.95  # texts that were placed lie with the others


def test_keywords_count_texts_and_do_not_repeat_a_word():
    texts = make_texts(["cat purrs loudly"] * 40 + ["bus stops"] * 30 + ["bus goes"] * 10 + ["day"])
    members = np.repeat([0, 1, 1, 0], [40, 30, 10, 1])
    found = find_keywords(texts, members, 2)
    assert list(found) == ["cluster", "term", "score", "texts"]
    first = found[found["cluster"] == 1]
    assert len(first) == 1 or not any(" " in term for term in first["term"])
    assert first["texts"].iloc[0] == 40
    second = found[found["cluster"] == 2].set_index("term")["texts"]
    assert second["bus"] == 40
    assert "bus stops" not in second
    assert (found["score"] >= 2).all()


def test_an_encoder_that_tells_no_texts_apart_is_named():
    with pytest.raises(UserError, match=r"only 1 different vectors .* does not know their script"):
        pick_studied(np.ones((9, 4)))


def test_texts_without_common_words_have_no_keywords():
    words = make_texts(["one", "deux", "tres", "vier", "fem", "kuusi"])
    found = find_keywords(words, MEMBERS, 2)
    assert found.empty
    overview = summarise_clusters(found, MEMBERS, 2)
    assert overview["keywords"].tolist() == ["", ""]
    assert overview["share"].tolist() == [0.5, 0.5]


def test_typical_texts_are_near_and_different():
    distances = np.array([[2, 9], [2, 9], [1, 9], [9, 3], [9, 1], [9, 2.0]])
    found = list_typical(ANIMALS, distances, MEMBERS, count=2)
    assert found["text"].tolist() == ["cat sleeps", "cat purrs", "bus goes", "bus stops"]
    assert found["row"].tolist() == [3, 1, 5, 4]
    assert found["distance"].tolist() == [1, 2, 1, 3]


def test_rows_hold_what_was_found():
    maps = {"pca": np.zeros((6, 2)), "tsne": np.ones((6, 2))}
    distances = np.arange(12.0).reshape(6, 2)
    plain = list_rows(ANIMALS, MEMBERS, distances, maps)
    assert list(plain) == [
        "row", "text", "cluster", "distance", "pca_1", "pca_2", "tsne_1", "tsne_2",
    ]  # fmt: skip
    assert plain["distance"].tolist() == [0, 2, 4, 7, 9, 11]


def test_labels_and_predictions_stand_beside_them():
    labelled = make_texts(ANIMALS.texts, [0, 0, 1, 1, 1, 1], ["a", "b"])
    rows = list_rows(labelled, np.array([0, 0, 0, 1, 1, 2]), np.zeros((6, 3)), {})
    assert rows["label"].tolist() == ["a", "a", "b", "b", "b", "b"]
    assert rows["cluster_label"].tolist() == ["a", "a", "a", "b", "b", ""]
    assert rows["agrees"].tolist() == [True, True, False, True, True, False]
    predicted = list_predictions(np.array([[0.2, 0.8], [0.6, 0.4]]), ["no", "yes"])
    assert predicted.to_dict("list") == {"predicted": ["yes", "no"], "probability": [0.8, 0.6]}


def test_texts_are_coloured_by_cluster_and_by_label_if_they_have_any(monkeypatch):
    overview = summarise_clusters(find_keywords(ANIMALS, MEMBERS, 2), MEMBERS, 2)
    assert list(colour_texts(ANIMALS, MEMBERS, overview)) == ["cluster"]
    labelled = make_texts(ANIMALS.texts, [0, 0, 1, 1, 1, 1], ["a", "b"])
    groups = colour_texts(labelled, MEMBERS, overview)
    assert groups["label"].names == ["a", "b"]
    monkeypatch.setattr("sentigeo.own_texts.study.SHOWN", 4)
    data = read_data(make_own_map(labelled, dict.fromkeys(MAPS, np.eye(6)[:, :2]), groups))
    assert len(data["texts"]) == 4
    assert [own["name"] for own in data["layouts"]] == ["t-SNE", "PCA"]
    assert [own["name"] for own in data["colourings"]] == ["cluster", "label"]
