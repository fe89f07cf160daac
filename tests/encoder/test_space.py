import subprocess
import sys
from dataclasses import replace

import numpy as np
import pandas as pd

from sentigeo.encoder.vectors import Space, load_space, save_space
from sentigeo.cache import Store
from sentigeo.files import save_arrays
from sentigeo.encoder.vectors import Vectors


def make_space(root):
    store = Store(root)
    arrays = {"rows": np.arange(3), "vectors": np.array([[[1.0], [2.0], [3.0]]], np.float32)}
    shard = store.put("vectors", {"texts": 3}, lambda part: save_arrays(part, arrays))
    vectors = Vectors(3, 0, ((0, "cls"),), (shard,))
    corpus = pd.DataFrame(
        {"id": ["a", "b", "c"], "text": ["x", "y", "<z>"], "label": [0, 1, 0],
         "part": ["train", "test", "test"], "pair": [None, None, "p"], "phenomenon": None}
    )  # fmt: skip
    logits = {"test": np.array([[2.0, 0.0], [0.0, 1.0]])}
    return Space(corpus, ["bad", "good"], vectors, vectors, logits), store


def test_space_is_read_back(tmp_path):
    space, store = make_space(tmp_path)
    found = load_space(save_space(space, store))
    assert found.corpus["text"].tolist() == ["x", "y", "<z>"]
    assert found.classes == ["bad", "good"]
    assert found.rows("test").tolist() == [1, 2]
    assert found.labels("test").tolist() == [1, 0]
    assert found.logits["test"].tolist() == [[2.0, 0.0], [0.0, 1.0]]
    assert found.times["after"].matrix().ravel().tolist() == [1, 2, 3]
    assert found.without is None
    both = load_space(save_space(replace(space, without=space.after), store))
    assert both.without.matrix().ravel().tolist() == [1, 2, 3]


def test_later_chapters_do_without_torch():
    code = (
        "import sys, sentigeo.chapter, sentigeo.space, sentigeo.maps, sentigeo.probe, "
        "sentigeo.direction, sentigeo.map_plots, sentigeo.claims, sentigeo.stats, "
        "sentigeo.cluster, sentigeo.cluster_plots, sentigeo.confusion, sentigeo.keywords, "
        "sentigeo.wording, sentigeo.lean, sentigeo.cluster_study, sentigeo.cosine, "
        "sentigeo.transform, sentigeo.neighbours, sentigeo.cosine_plots, "
        "sentigeo.length_effect, sentigeo.calibration, sentigeo.reviews, sentigeo.baselines, "
        "sentigeo.ledger; "
        "print({'torch', 'transformers'} & set(sys.modules))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "set()"
