import numpy as np
import pandas as pd
import pytest
import torch
from helpers import labelled_cloud
from sklearn.neighbors import KNeighborsClassifier
from sklearn.preprocessing import normalize

from sentigeo.analysis.doses import draw_shots
from sentigeo.analysis.neighbours import (
    METHODS,
    classify_by_cosine,
    compare_controls,
    few_shot_hits,
    find_word,
    learning_curve,
    nearest_has_sense,
    nearest_rows,
    self_similarity,
    shared_word_hits,
    study_senses,
    word_vectors,
)
from sentigeo.encoder.encoder import load_encoder
from sentigeo.errors import UserError
from sentigeo.stats import unfold


@pytest.fixture(scope="module")
def groups():
    return labelled_cloud(240, 6, apart=2.5)


def test_nearest_text_and_class_mean_are_those_of_scikit_learn(groups):
    vectors, labels = groups
    shots, new = vectors[:30], vectors[30:]
    units = normalize(shots)
    one = KNeighborsClassifier(1, metric="cosine").fit(shots, labels[:30])
    assert np.array_equal(
        classify_by_cosine(shots, labels[:30], new, "nearest text"), one.predict(new)
    )
    means = normalize([units[labels[:30] == number].mean(axis=0) for number in range(3)])
    nearest = KNeighborsClassifier(1, metric="cosine").fit(means, np.arange(3))
    found = classify_by_cosine(shots, labels[:30], new, "nearest class mean")
    assert np.array_equal(found, nearest.predict(new))


def test_length_of_a_vector_does_not_matter(groups):
    vectors, labels = groups
    for method in METHODS:
        first = classify_by_cosine(vectors[:30], labels[:30], vectors[30:], method)
        second = classify_by_cosine(vectors[:30] * 7, labels[:30], vectors[30:] * 0.1, method)
        assert np.array_equal(first, second)


def test_shots_are_balanced_and_nested(groups):
    labels = groups[1]
    small, large = draw_shots(labels, 2, 5), draw_shots(labels, 8, 5)
    assert np.bincount(labels[large]).tolist() == [8, 8, 8]
    assert set(small) <= set(large)
    assert set(draw_shots(labels, 8, 6)) != set(large)
    with pytest.raises(UserError, match="200 shots are not possible"):
        draw_shots(labels, 200, 0)


def test_more_shots_classify_better(groups):
    vectors, labels = groups
    hits = few_shot_hits(
        vectors[:120], labels[:120], vectors[120:], labels[120:], counts=[1, 16], draws=6
    )
    assert hits["nearest text", 1].shape == (6, 120)
    curve = unfold(learning_curve(hits, labels[120:], 100)).set_index(["method", "shots"])
    for method in METHODS:
        assert curve.loc[(method, 16), "value"] > curve.loc[(method, 1), "value"]
        row = curve.loc[(method, 1)]
        assert row["bottom"] <= row["value"] <= row["top"]


def test_nearest_rows_come_in_order():
    rows, cosines = nearest_rows(np.array([1.0, 0]), np.array([[0.0, 1], [2, 0], [1, 1]]), 2)
    assert rows.tolist() == [1, 2]
    assert cosines == pytest.approx([1, 0.5**0.5])


def test_every_class_counts_as_much():
    truth = np.array([0, 0, 0, 2])
    hits = {("one", 1): np.array([[True, True, True, False], [False, True, True, True]])}
    (row,) = unfold(learning_curve(hits, truth, 100)).to_dict("records")
    assert row["value"] == pytest.approx((3 / 3 + 0 + 2 / 3 + 1) / 4)
    assert (row["bottom"], row["top"]) == pytest.approx((0.5 + 0.025 / 3, 5 / 6 - 0.025 / 3))
    assert row["n"] == 4


def test_an_interval_of_uneven_classes_stays_within_what_is_possible():
    truth = np.repeat([0, 1], [90, 10])
    (sure,) = learning_curve({("one", 1): np.ones((5, 100), bool)}, truth, 100)["estimate"]
    assert (sure.value, sure.low, sure.high) == pytest.approx((1.0, 1.0, 1.0))
    hits = np.random.default_rng(0).random((5, 100)) < 0.95
    (found,) = learning_curve({("one", 1): hits}, truth, 500)["estimate"]
    assert 0.7 < found.low < found.value < found.high <= 1


@pytest.fixture(scope="module")
def tiny(tiny_bert):
    return load_encoder(str(tiny_bert))


def test_a_word_is_found_whole_and_in_any_case():
    assert find_word("A dormouse met the Mouse.", "mouse") == (19, 24)
    with pytest.raises(UserError, match="'mouse' is not in its sentence: 'No dormice"):
        find_word("No dormice here.", "mouse")


def test_vector_of_a_word_that_splits_is_the_mean_of_its_pieces(tiny):
    text, word = "an unpredictablest thing", "unpredictablest"
    pieces = tiny.tokenizer.tokenize(word)
    assert len(pieces) > 1
    found, context = word_vectors([text, "a mouse ran"], [word, "mouse"], tiny)
    assert found.shape == (3, 2, 32)
    with torch.inference_mode():
        states = tiny.model(
            **tiny.tokenizer([text], return_tensors="pt"), output_hidden_states=True
        ).hidden_states
    for layer in range(3):
        expected = states[layer][0, 2 : 2 + len(pieces)].mean(dim=0)  # after [CLS] and "an"
        assert found[layer, 0] == pytest.approx(expected.numpy(), abs=1e-5)
        others = states[layer][0, [1, 2 + len(pieces)]].mean(dim=0)  # "an" and "thing"
        assert context[layer, 0] == pytest.approx(others.numpy(), abs=1e-5)


def test_padding_and_batches_change_nothing(tiny, monkeypatch):
    texts = ["the mouse", "there was a mouse in the house that day", "mouse"]
    together = word_vectors(texts, ["mouse"] * 3, tiny)
    monkeypatch.setattr("sentigeo.analysis.neighbours.BATCH", 1)
    for first, second in zip(together, word_vectors(texts, ["mouse"] * 3, tiny), strict=True):
        assert first == pytest.approx(second, abs=1e-5)
    assert not together[1][:, 2].any()  # a word alone has no context


def test_a_word_beyond_the_limit_is_named(tiny):
    with pytest.raises(UserError, match="'mouse' stands beyond what the encoder reads of text 2"):
        word_vectors(["a mouse", "so " * 100 + "mouse"], ["mouse", "mouse"], tiny)


def test_nearest_use_by_hand():
    vectors = np.array([[1.0, 0], [1, 0.1], [0, 1], [0.9, 0.2]])
    found = nearest_has_sense(vectors, np.array(list("aabb")))
    assert found.tolist() == [True, True, True, False]


@pytest.fixture(scope="module")
def table():
    return pd.DataFrame(
        {"word": ["bat"] * 4 + ["star"] * 4, "sense": list("aabbccdd"),
         "text": ["bat flew cave", "bat cave night", "bat hit ball", "bat ball wood",
                  "star sky", "star sky far", "star film", "star film red"]}
    )  # fmt: skip


def test_senses_that_lie_apart_are_found_in_their_layer(table):
    rng = np.random.default_rng(0)
    apart = np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]] + 0.01 * rng.normal(size=(8, 4))
    noise = np.ones((8, 4)) + 0.01 * rng.normal(size=(8, 4))
    study = study_senses(np.stack([noise, apart]), table)
    assert study[study["layer"] == 1]["hit"].all()
    assert study[study["layer"] == 1]["silhouette"].min() > 0.9
    assert study[study["layer"] == 0]["silhouette"].mean() < 0.5
    alike = unfold(self_similarity(np.stack([noise, apart]), table)).pivot_table(
        index="layer", columns="name", values="value"
    )
    assert alike.loc[1, "same sense"] > 0.95 > 0.1 > alike.loc[1, "other sense"]
    assert alike.loc[0].min() > 0.95  # all alike: the layer tells nothing apart


def test_shared_words(table):
    assert shared_word_hits(table).all()
    unlike = table.assign(text=table["word"] + " x" + table.index.astype(str))
    assert not shared_word_hits(unlike).any()


def test_controls_stand_beside_the_last_layer(table):
    apart, mixed = np.eye(4)[[0, 0, 1, 1, 2, 2, 3, 3]], np.eye(4)[[0, 1, 0, 1, 2, 3, 2, 3]]
    study = study_senses(np.stack([mixed, apart]), table)
    context = study_senses(np.stack([apart, mixed]), table)
    found = compare_controls(study, context, table)
    assert found.index.tolist() == list(range(8))
    assert found["sense"].tolist() == table["sense"].tolist()
    assert found["hit"].all()
    assert found["shared words"].all()
    assert not found[["embeddings", "context"]].to_numpy().any()


def test_one_sense_is_refused(table):
    with pytest.raises(UserError, match="'bat' have one sense"):
        study_senses(np.ones((1, 2, 3)), table.head(2))
