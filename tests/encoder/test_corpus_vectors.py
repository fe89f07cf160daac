from dataclasses import replace

import numpy as np
import pytest
from helpers import store_corpus

from sentigeo.cache import Store, is_whole
from sentigeo.encoder.corpus_vectors import (
    CorpusVectors,
    open_corpus_vectors,
    save_corpus_vectors,
)
from sentigeo.encoder.vectors import Vectors
from sentigeo.files import save_arrays


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def vectors(store):
    arrays = {"rows": np.arange(3), "vectors": np.array([[[1.0], [2.0], [3.0]]], np.float32)}
    shard = store.put("vectors", {"texts": 3}, lambda part: save_arrays(part, arrays))
    return Vectors(3, 0, ((0, "cls"),), (shard,))


@pytest.fixture
def found(store, vectors):
    corpus = store_corpus(store, ["x", "y", "<z>"], [0, 1, 0], ["train", "test", "test"])
    return CorpusVectors(corpus, vectors, vectors, {"test": np.array([[2.0, 0.0], [0.0, 1.0]])})


def test_vectors_of_a_corpus_are_read_back(found, store):
    again = open_corpus_vectors(save_corpus_vectors(found, store))
    assert again.corpus.texts_of("test") == ["y", "<z>"]
    assert again.logits["test"].tolist() == [[2.0, 0.0], [0.0, 1.0]]
    assert again.stages["after"].matrix().ravel().tolist() == [1, 2, 3]
    assert again.without is None
    both = open_corpus_vectors(save_corpus_vectors(replace(found, without=found.pretrained), store))
    assert both.without.matrix().ravel().tolist() == [1, 2, 3]


@pytest.mark.parametrize("lost", ["vectors", "corpus"])
def test_they_are_of_no_use_without_what_they_rest_on(found, store, lost):
    folder = save_corpus_vectors(found, store)
    assert is_whole(folder)
    damaged = found.pretrained.shards[0] if lost == "vectors" else found.corpus.folder
    next(damaged.glob("*.npy")).write_bytes(b"oops")
    assert not is_whole(folder)
