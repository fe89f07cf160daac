import numpy as np
import pytest

from sentigeo.analysis.probes import WAYS, pick_long_rows, read_long_texts, score_readings
from sentigeo.cache import Store
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.encoder.vectors import Vectors
from sentigeo.files import save_arrays


@pytest.fixture(scope="module")
def tiny(tiny_bert):
    return load_encoder(str(tiny_bert))  # reads 64 tokens


def test_three_ways_are_what_they_are_called(tiny, tmp_path):
    texts = ["good " * 40 + "bad " * 60, "fine " * 200]
    found = read_long_texts(texts, tiny, ("mean", "cls"), Store(tmp_path))
    for pooling in ("mean", "cls"):
        expected = {
            "beginning": embed_texts(texts, tiny, pooling=pooling),
            "head and tail": embed_texts(texts, tiny, pooling=pooling, truncation="first+last"),
            "windows": embed_texts(texts, tiny, pooling=pooling, window=64),
        }
        for way in WAYS:
            assert np.allclose(found[pooling, way], expected[way], atol=1e-5)


def test_long_rows_are_drawn_from_those_beyond_the_limit():
    counts = np.array([5, 20, 30, 10, 40, 50])
    assert pick_long_rows(counts, np.arange(5), 10, 99).tolist() == [1, 2, 4]
    drawn = pick_long_rows(counts, np.arange(6), 10, 2)
    assert len(drawn) == 2
    assert set(drawn) < {1, 2, 4, 5}


def test_readings_are_scored_by_a_probe_of_short_texts(tmp_path):
    rng = np.random.default_rng(0)
    labels = np.arange(60) % 2
    known = (rng.normal(size=(60, 3)) + 6 * labels[:, None]).astype(np.float32)
    arrays = {"rows": np.arange(60), "vectors": known[None]}
    shard = Store(tmp_path).put("vectors", {}, lambda part: save_arrays(part, arrays))
    short = Vectors(60, 0, ((0, "mean"),), (shard,))
    long = {
        ("mean", way): np.full((2, 3), level) for way, level in zip(WAYS, (0, 6, 0), strict=True)
    }
    hits = score_readings(long, np.array([0, 1]), short, labels, [np.arange(40), np.arange(40, 60)])
    assert hits["mean", "beginning"].tolist() == [True, False]
    assert hits["mean", "head and tail"].tolist() == [False, True]
    assert hits["mean", "windows"].tolist() == [True, False]
