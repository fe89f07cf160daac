import numpy as np
import pandas as pd
import pytest
import torch

from sentigeo.analysis.source_logs import load_sources
from sentigeo.errors import UserError
from sentigeo.training.reruns import (
    ARMS,
    Size,
    draw_texts,
    gains,
    pool_texts,
    read_gains,
    read_sizes,
    rerun_source,
    train_together,
)

RUNS = 10
REVIEWS, SAMPLES = np.arange(200), np.arange(200, 230)
LABELS = np.arange(230) % 2
SIZES = read_sizes(load_sources()[1])
POOLS = pool_texts(LABELS, REVIEWS, SAMPLES, SIZES)


@pytest.fixture(scope="module")
def vectors():
    """Vectors whose first number tells the class, more or less; the last is always the same."""
    found = np.random.default_rng(0).normal(size=(230, 12)).astype(np.float32)
    found[:, 0] += 2 * LABELS
    found[:, -1] = 7
    return found


@pytest.fixture(scope="module")
def study(vectors):
    return rerun_source(vectors, LABELS, REVIEWS, SAMPLES, SIZES, RUNS, seed=3)


def draw(seed):
    return draw_texts(POOLS, SIZES, np.random.default_rng(seed))


def test_sizes_and_gains_are_those_of_the_source():
    assert SIZES["without"] == Size(28, (7, 6), 8, 6)
    assert SIZES["with"] == SIZES["control"] == Size(33, (8, 7), 16, 6)
    assert read_gains(load_sources()[1]) == {"last": 0.39, "best": 0.01}


@pytest.mark.parametrize("seed", range(5))
def test_draws_are_balanced_and_validation_is_never_trained_on(seed):
    drawn = draw(seed)
    for arm, (train, validation) in drawn.items():
        assert np.bincount(LABELS[train]).tolist() == ([28, 28] if arm == "without" else [33, 33])
        assert np.bincount(LABELS[validation]).tolist() == list(SIZES[arm].validation)
        assert len(np.unique([*train, *validation])) == len(train) + len(validation)


def test_arms_differ_in_twelve_texts_only():
    without, crafted, control = (draw(1)[arm] for arm in ARMS)
    reviews = set(np.concatenate(without))
    added, further = (set(np.concatenate(arm)) - reviews for arm in (crafted, control))
    assert added <= set(SAMPLES)
    assert further <= set(REVIEWS)
    assert len(added) == len(further) == 12
    for mine, other in zip(crafted, control, strict=True):  # the same split of the same reviews
        ordinary = np.isin(mine, REVIEWS)
        assert mine[ordinary].tolist() == other[ordinary].tolist()
    assert set(draw(1)["with"][1]) != set(draw(2)["with"][1])


def test_every_run_arm_and_epoch_has_a_row(study):
    assert len(study) == RUNS * 3 * 6
    assert (
        study.groupby(["run", "arm"])["epoch"]
        .agg(list)
        .map(lambda e: e == [1, 2, 3, 4, 5, 6])
        .all()
    )
    for arm, validated, trained in (("without", 13, 56), ("with", 15, 66), ("control", 15, 66)):
        own = study[study["arm"] == arm]
        for column, n in (("val_accuracy", validated), ("train_accuracy", trained)):
            hits = own[column] * n
            assert np.allclose(hits, hits.round(), atol=1e-4)
    last = study[study["epoch"] == 6]
    assert last["train_accuracy"].mean() > 0.75  # something is learnt
    assert last["val_accuracy"].mean() > 0.65


def test_reviews_are_also_scored_without_the_samples(vectors, study):
    ordinary = study[study["arm"] != "with"]
    assert ordinary["review_accuracy"].equals(ordinary["val_accuracy"])
    for run, rows in study[study["arm"] == "with"].groupby("run"):
        rng = np.random.default_rng([3, run])
        validation = draw_texts(POOLS, SIZES, rng)["with"][1]
        reviews = np.isin(validation, REVIEWS).sum()
        right = rows["review_accuracy"] * reviews
        assert np.allclose(right, right.round())
        assert (rows["val_accuracy"] * 15 >= right - 1e-9).all()
        assert (rows["val_accuracy"] * 15 <= right + 15 - reviews + 1e-9).all()


def test_the_seed_decides(study, vectors):
    first = rerun_source(vectors, LABELS, REVIEWS, SAMPLES, SIZES, 2, seed=3)
    pd.testing.assert_frame_equal(
        first.sort_values(["run", "arm", "epoch"], ignore_index=True),
        study[study["run"] < 2].sort_values(["run", "arm", "epoch"], ignore_index=True),
    )
    other = rerun_source(vectors, LABELS, REVIEWS, SAMPLES, SIZES, 2, seed=4)
    assert not np.array_equal(first["val_accuracy"], other["val_accuracy"])


@pytest.mark.parametrize("arm", ["without", "with"])
def test_runs_trained_together_are_those_trained_alone(vectors, arm):
    texts, seeds = torch.from_numpy(vectors), [[run] for run in range(RUNS)]
    draws = [draw(run)[arm] for run in range(RUNS)]
    hits, logits = train_together(texts, LABELS, draws, SIZES[arm], seeds)
    assert logits.shape == (RUNS, 6, len(draws[0][1]), 2)
    for run in range(RUNS):
        alone = train_together(
            texts, LABELS, draws[run : run + 1], SIZES[arm], seeds[run : run + 1]
        )
        np.testing.assert_allclose(alone[0][0], hits[run], atol=1e-5)
        np.testing.assert_allclose(alone[1][0], logits[run], atol=1e-5)


def test_gains_by_hand():
    table = {
        "without": [[0.5, 0.9, 0.6], [0.5, 0.5, 0.5]],  # of two runs
        "with": [[0.6, 0.7, 1.0], [0.4, 0.6, 0.3]],
        "control": [[0.8, 0.7, 0.5], [0.5, 0.6, 0.7]],
    }
    rows = [
        (run, arm, epoch, value)
        for arm, runs in table.items()
        for run, values in enumerate(runs)
        for epoch, value in enumerate(values, start=1)
    ]
    found = gains(pd.DataFrame(rows, columns=["run", "arm", "epoch", "val_accuracy"]))
    assert found[["epoch", "run"]].to_numpy().tolist() == [
        ["last", 0], ["last", 1], ["best", 0], ["best", 1]
    ]  # fmt: skip
    np.testing.assert_allclose(found["with"], [0.4, -0.2, 0.1, 0.1])
    np.testing.assert_allclose(found["control"], [-0.1, 0.2, -0.1, 0.2])


def test_too_few_texts_are_refused(vectors):
    with pytest.raises(UserError, match="need 41 reviews of each class, not 20"):
        rerun_source(vectors, LABELS, REVIEWS[:40], SAMPLES, SIZES, 2, seed=0)
    with pytest.raises(UserError, match="need 6 contrastive samples of each class, not 0"):
        rerun_source(vectors, LABELS, REVIEWS, SAMPLES[:0], SIZES, 2, seed=0)
