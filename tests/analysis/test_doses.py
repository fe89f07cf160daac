import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from sentigeo.analysis.doses import (
    ENDPOINTS,
    KINDS,
    dose_effects,
    dose_response,
    draw_rows,
)
from sentigeo.errors import UserError
from sentigeo.stats import unfold

SIZES = {
    "train": 200, "validation": 80, "test": 60, "contrastive": 40, "natural_train": 40,
    "natural": 40,
}  # fmt: skip
PAIRED = ("natural_train", "natural")


def make_texts():
    """Texts of every part, half of them positive, with the sides of a pair beside each other."""
    parts = [
        {"part": part, "label": row % 2, "pair": f"{part}{row // 2:02}" if part in PAIRED else None}
        for part, size in SIZES.items()
        for row in range(size)
    ]
    return pd.DataFrame(parts)


def make_vectors(texts):
    """Reviews have their class in the first dimension, pairs in the second, which is noise else."""
    side = 2 * texts["label"].to_numpy() - 1
    paired = texts["part"].isin(PAIRED).to_numpy()
    vectors = np.random.default_rng(0).normal(size=(len(texts), 5))
    vectors[:, 0] += np.where(paired, 0, 1.5) * side
    vectors[:, 1] += np.where(paired, 2, 0) * side
    return vectors.astype(np.float32)


@pytest.fixture(scope="module")
def made_up():
    texts = make_texts()
    return make_vectors(texts), texts


@pytest.fixture(autouse=True)
def one_process(monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")


def respond(made_up, *kinds, doses=(4, 16), draws=6):
    chosen = {name: KINDS[name] for name in kinds}
    return dose_response(*made_up, kinds=chosen, doses=doses, draws=draws, tiers=["natural"])


def test_edited_pairs_work_and_controls_do_not(made_up):
    frame = respond(made_up, "edited", "edited, weighted", "shuffled", "ordinary, twice")
    effects = unfold(dose_effects(frame))
    of_gap = effects[effects["endpoint"] == "logit_difference"]
    found = of_gap.set_index(["kind", "dose"])[["value", "low", "n"]]
    assert found.loc[("edited", 4), "low"] > 0
    assert found.loc[("edited", 16), "low"] > found.loc[("edited", 4), "value"]
    weighted = found.loc[("edited, weighted", 16), "value"]
    assert weighted > 1.5 * found.loc[("edited", 16), "value"]
    for control in ("shuffled", "ordinary, twice"):
        assert abs(found.loc[(control, 16), "value"]) < 0.3 * found.loc[("edited", 16), "value"]
    assert set(found["n"]) == {6}


def test_endpoints_are_those_of_a_fit_from_scratch(made_up):
    vectors, texts = made_up
    frame = respond(made_up, "edited, weighted", doses=(8,), draws=2)
    rows = draw_rows(texts, "natural_train", 16, 1)
    train = np.flatnonzero(texts["part"] == "train")
    every = StandardScaler().fit(vectors[train]).transform(vectors.astype(float))
    used, labels = np.concatenate([train, rows]), texts["label"].to_numpy()
    found = frame[(frame["dose"] == 8) & (frame["draw"] == 1)][ENDPOINTS].to_numpy()[0]
    classes = {name: labels[texts["part"] == name] for name in ("train", "validation")}
    models = [
        LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-8)
        for strength in (0.001, 0.003, 0.01, 0.03, 0.1)
    ]
    validation = every[texts["part"] == "validation"]
    hits = [
        model.fit(every[train], classes["train"]).score(validation, classes["validation"])
        for model in models
    ]
    weights = np.where(np.arange(len(used)) < len(train), 1, 5)
    model = models[hits.index(max(hits))].fit(every[used], labels[used], weights)
    margins = pd.Series(model.decision_function(every))
    gap = margins[1::2].to_numpy() - margins[::2].to_numpy()
    pairs, test = (texts["part"] == "natural"), (texts["part"] == "test")
    right = (margins > 0) == (labels == 1)
    both = right[::2].to_numpy() & right[1::2].to_numpy()
    tier = pairs[::2].to_numpy()
    spread = margins[test].std(ddof=0)
    scores = gap[tier].mean() / spread, both[tier].mean(), (gap[tier] > 0).mean()
    assert found == pytest.approx([*scores, right[test].mean()], abs=1e-3)


@pytest.mark.parametrize("name", KINDS)
def test_a_dose_is_balanced_and_part_of_a_larger_one(made_up, name):
    texts, kind = made_up[1], KINDS[name]
    small, large = (draw_rows(texts, kind.part, dose * kind.texts, 3) for dose in (4, 8))
    assert len(set(large)) == len(large) == 8 * kind.texts
    assert texts["label"].iloc[large].mean() == 0.5
    assert set(texts["part"].iloc[large]) == {kind.part}
    assert set(small) < set(large) != set(draw_rows(texts, kind.part, 8 * kind.texts, 4))
    assert set(texts["pair"].iloc[large].dropna().value_counts()) <= {2}  # both sides


def test_the_same_draws_give_the_same_numbers(made_up):
    first, second = (respond(made_up, "handcrafted", "shuffled", draws=2) for _ in range(2))
    pd.testing.assert_frame_equal(first, second)
    drawn = first[first["dose"] == 4].groupby("kind")["logit_difference"].nunique()
    assert drawn.tolist() == [2, 2]
    assert first[first["dose"] == 0][["kind", "draw"]].to_numpy().tolist() == [["none", 0]]


@pytest.mark.parametrize(
    ("name", "dose", "message"),
    [
        ("edited", 21, "42 texts is too large: only 40 of part 'natural_train', half of each"),
        ("handcrafted", 42, "42 texts is too large: only 40 of part 'contrastive'"),
        ("ordinary", 7, "7 texts cannot be half of each class"),
    ],
)
def test_an_impossible_dose_is_one_sentence(made_up, name, dose, message):
    with pytest.raises(UserError, match=message):
        respond(made_up, name, doses=[dose])


def test_a_tier_without_pairs_is_one_sentence(made_up):
    with pytest.raises(UserError, match="no pairs of part 'plain'"):
        dose_response(*made_up, doses=[2], draws=1, tiers=["plain"])


def test_changes_are_against_dose_0_of_the_same_tier():
    values = [("none", 0, 0, 0.5), ("edited", 8, 0, 0.6), ("edited", 8, 1, 0.9)]
    rows = [
        {"kind": kind, "dose": dose, "draw": draw, "tier": tier} | dict.fromkeys(ENDPOINTS, value)
        for kind, dose, draw, value in values
        for tier, value in (("natural", value), ("plain", value * 2))
    ]
    effects = dose_effects(pd.DataFrame(rows)).set_index(["tier", "endpoint"])["estimate"]
    natural, plain = effects["natural", "consistency"], effects["plain", "consistency"]
    assert natural.value == pytest.approx(0.25)
    assert plain.value == pytest.approx(0.5)
    low, high = stats.ttest_1samp([0.1, 0.4], 0).confidence_interval()
    assert (natural.low, natural.high) == pytest.approx((low, high))
    assert natural.n == 2
    assert natural.signed
