from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.metrics import classification_report

from sentigeo.analysis.predictions import (
    EFFECT,
    EXCLUDED,
    OUTCOMES,
    SMALL,
    SOME,
    UNDECIDED,
    calibration_error,
    compare_arms,
    compare_models,
    consistency_by_phenomenon,
    crossed_difference,
    crossed_mean,
    crossed_share,
    describe_effect,
    equivalence,
    estimate_endpoints,
    list_outcomes,
    list_phenomena,
    outcomes,
    pair_sides,
    reliability,
    report_classes,
    score_challenge,
    score_pairs,
)
from sentigeo.data.literature import load_endpoints
from sentigeo.errors import UserError
from sentigeo.ledger.claims import load_claims
from sentigeo.stats import Estimate, unfold

# Four pairs in disorder: c (right), a (both positive), d (reversed), b (both negative, one at 0).
TEXTS = pd.DataFrame(
    [("c", 1, "irony"), ("a", 0, "negation"), ("c", 0, "irony"), ("d", 0, "irony"),
     ("a", 1, "negation"), ("b", 1, "negation"), ("d", 1, "irony"), ("b", 0, "negation")],
    columns=["pair", "label", "phenomenon"],
    index=[7, 3, 5, 1, 0, 2, 6, 4],
)  # fmt: skip
MARGINS = np.array([[3.0, 1.0, -1.0, 0.5, 2.0, 0.0, -1.5, 0.0]])
SPREAD = np.array([2.0])


def test_the_ledger_judges_by_the_endpoints_that_were_fixed():
    fixed = load_endpoints()
    (claim,) = (claim for claim in load_claims() if claim.id == "C1")
    primary = fixed["primary"]
    name = "pairs.{tier}.{arm}_minus_without.{endpoint}".format(**primary)
    assert claim.metric == name
    smallest = fixed["smallest_effects"][primary["endpoint"]]
    assert {*claim.verdict["rule"]["above"].values()} == {smallest}
    control = "pairs.{tier}.positive_control.{endpoint}".format(**primary)
    assert claim.verdict["refuted_only_if"] == {"above": {control: 0}}
    assert name in claim.verdict["rule"]["above"]


def test_sides_are_found_in_any_order():
    assert pair_sides(TEXTS).tolist() == [[2, 0], [1, 4], [3, 6], [7, 5]]


@pytest.mark.parametrize("labels", [[0, 0], [1], [0, 1, 1], [0, 2]])
def test_a_pair_that_is_none_is_named(labels):
    whole = TEXTS[["pair", "label"]]
    broken = pd.concat([whole, pd.DataFrame({"pair": "odd one", "label": labels})])
    with pytest.raises(UserError, match="'odd one'"):
        pair_sides(broken)


def test_endpoints_of_four_pairs_by_hand():
    found = score_pairs(MARGINS, TEXTS, SPREAD)
    assert list(found) == ["consistency", "logit_difference", "rank_accuracy"]
    assert found["consistency"].tolist() == [[1, 0, 0, 0]]
    assert found["logit_difference"].tolist() == [[2.0, 0.5, -1.0, 0.0]]
    assert found["rank_accuracy"].tolist() == [[1, 1, 0, 0.5]]


def test_outcomes_of_four_pairs_by_hand():
    found = outcomes(MARGINS, TEXTS)
    assert found["right"].tolist() == [[True, False, False, False]]
    assert found["same answer"].tolist() == [[False, True, False, True]]
    assert found["reversed"].tolist() == [[False, False, True, False]]


def test_each_run_has_its_own_spread():
    margins, spread = np.vstack([MARGINS, 10 * MARGINS]), np.array([2.0, 20.0])
    found = score_pairs(margins, TEXTS, spread)["logit_difference"]
    assert found[0].tolist() == found[1].tolist()


@pytest.mark.parametrize("answer", [-1.0, 0.0, 1.0])
def test_a_constant_model_tells_nothing_apart(answer):
    margins = np.full((3, len(TEXTS)), answer)
    found = score_pairs(margins, TEXTS, margins.std(axis=1))  # whose spread is 0
    assert not found["consistency"].any()
    assert not found["logit_difference"].any()
    assert (found["rank_accuracy"] == 0.5).all()
    assert outcomes(margins, TEXTS)["same answer"].all()


def test_a_model_that_takes_each_side_for_the_other():
    margins = 1.0 - 2.0 * TEXTS["label"].to_numpy()[None]
    found = score_pairs(margins, TEXTS, np.ones(1))
    assert not found["consistency"].any()
    assert (found["logit_difference"] == -2).all()
    assert not found["rank_accuracy"].any()
    assert outcomes(margins, TEXTS)["reversed"].all()
    mended = score_pairs(-margins, TEXTS, np.ones(1))
    assert mended["consistency"].all()
    assert mended["rank_accuracy"].all()


def test_consistency_is_that_of_argmax_where_logits_tie():
    rng = np.random.default_rng(0)
    logits = rng.integers(-1, 2, size=(40, len(TEXTS), 2)).astype(np.float32)
    margins = logits[..., 1] - logits[..., 0]
    found = score_pairs(margins, TEXTS, np.ones(40))["consistency"]
    right = logits.argmax(axis=-1) == TEXTS["label"].to_numpy()
    expected = [pd.Series(run).groupby(TEXTS["pair"].to_numpy(), sort=False).all() for run in right]
    assert found.tolist() == np.array(expected).tolist()
    assert found.any()


def test_nothing_depends_on_the_order_of_rows():
    rng = np.random.default_rng(1)
    margins, order = rng.normal(size=(3, len(TEXTS))), rng.permutation(len(TEXTS))
    names, moved = (texts["pair"].unique().tolist() for texts in (TEXTS, TEXTS.iloc[order]))
    places = [moved.index(name) for name in names]
    expected, spread = score_pairs(margins, TEXTS, np.ones(3)), np.ones(3)
    for name, found in score_pairs(margins[:, order], TEXTS.iloc[order], spread).items():
        assert found[:, places].tolist() == expected[name].tolist()


def test_margins_of_other_texts():
    with pytest.raises(ValueError, match=r"\(1, 9\), not \(runs, 8\)"):
        score_pairs(np.zeros((1, 9)), TEXTS, np.ones(1))


def test_outcomes_are_listed_by_phenomenon():
    found = outcomes(MARGINS, TEXTS)
    frame = list_phenomena({"model": found}, TEXTS)
    assert frame.columns.tolist() == ["group", "name", *OUTCOMES, "n"]
    assert frame.to_numpy().tolist() == [
        ["model", "irony (2)", 0.5, 0.0, 0.5, 2],
        ["model", "negation (2)", 0.0, 1.0, 0.0, 2],
    ]
    whole = list_outcomes({("all", "model"): found})
    assert whole.to_numpy().tolist() == [["all", "model", 0.25, 0.5, 0.25, 4]]


def test_phenomena_are_listed_by_model_with_their_pairs():
    models = {"a model": outcomes(MARGINS, TEXTS)}
    frame = list_phenomena(models, TEXTS)
    assert frame[["group", "name"]].to_numpy().tolist() == [
        ["a model", "irony (2)"],
        ["a model", "negation (2)"],
    ]
    assert list_phenomena(models, TEXTS, least=3).empty


CHALLENGE = pd.DataFrame(
    {
        "pair": ["p2", "p2", "p1", "p1", "p3", "p3"],
        "label": [0, 1] * 3,
        "phenomenon": ["quoted_opinion"] * 2 + ["negation"] * 4,
    }
)
PREDICTED = np.array([0, 1, 0, 0, 1, 0])  # p2 right, p1 half right, p3 wrong
CHANCES = np.array([[0.95, 0.05], [0.1, 0.9], [0.45, 0.55], [0.6, 0.4]])
LABELS = np.array([0, 0, 1, 0])  # the second is wrong at confidence 0.9


def wilson(hits, n):
    found = stats.binomtest(hits, n).proportion_ci(0.95, "wilson")
    return pytest.approx((hits / n, found.low, found.high))


def bounds(found):
    return found.value, found.low, found.high


def test_scores_by_hand():
    found = score_challenge(CHALLENGE, PREDICTED, resamples=100)
    assert (found["challenge_accuracy"].value, found["challenge_accuracy"].n) == (0.5, 6)
    assert bounds(found["challenge_consistency"]) == wilson(1, 3)
    assert found["challenge_consistency"].n == 3
    mixed = np.array([5, 0, 3, 2, 1, 4])  # no pair in two rows that follow each other
    again = score_challenge(CHALLENGE.iloc[mixed], PREDICTED[mixed], resamples=100)
    assert again["challenge_consistency"] == found["challenge_consistency"]
    assert again["challenge_accuracy"].value == 0.5


def test_accuracy_keeps_the_sides_of_a_pair_together():
    one_side = np.zeros(6, int)  # half of every pair is right, whichever pairs are drawn
    for predicted in (one_side, np.stack([one_side, 1 - one_side])):
        found = score_challenge(CHALLENGE, predicted, resamples=100)
        assert bounds(found["challenge_accuracy"]) == (0.5, 0.5, 0.5)
    assert found["challenge_accuracy"].n == 3


def test_scores_of_repeated_runs_by_hand():
    found = score_challenge(CHALLENGE, np.stack([PREDICTED, CHALLENGE["label"]]), resamples=100)
    assert found["challenge_accuracy"].value == 0.75
    assert found["challenge_consistency"] == crossed_share(np.array([[1, 0, 0], [1, 1, 1]]))


def test_models_are_compared_seed_by_seed_as_far_as_both_have_them():
    rng = np.random.default_rng(5)
    hits = {("x", name): rng.random((runs, 40)) < 0.5 for name, runs in (("few", 2), ("all", 5))}
    hits["x", "single"] = rng.random((1, 40)) < 0.5
    hits |= {("y", name): ~hits["x", name] for name in ("few", "all", "single")}
    few, every, single = (hits["x", name] for name in ("few", "all", "single"))
    assert compare_models(hits, "few", "all") == {
        "x": crossed_difference(few, every[:2]), "y": crossed_difference(~few, ~every[:2])
    }  # fmt: skip
    found = compare_models(hits, "all", "single")["x"]
    assert found == crossed_difference(every, np.repeat(single, 5, axis=0))


def score_four_pairs(rise=0.0):
    """Return the endpoints of three runs, whose positive sides are higher by so much."""
    margins = (
        np.repeat(MARGINS, 3, axis=0) + [[0.0], [0.1], [0.2]] + rise * TEXTS["label"].to_numpy()
    )
    return score_pairs(margins, TEXTS, np.full(3, 2.0))


def test_endpoints_are_estimated_by_tier_and_model():
    pairs = {
        ("hard", "one"): score_pairs(MARGINS, TEXTS, SPREAD),
        ("hard", "three"): score_four_pairs(),
    }
    found = estimate_endpoints(pairs)
    assert len(found) == 6
    assert bounds(found["consistency", "hard", "one"]) == wilson(1, 4)
    assert found["logit_difference", "hard", "one"] == crossed_mean(np.array([[2.0, 0.5, -1, 0]]))
    assert found["rank_accuracy", "hard", "one"].value == 0.625
    assert found["logit_difference", "hard", "three"].value == pytest.approx(0.375)
    assert found["rank_accuracy", "hard", "three"].high == 1.0


def test_arms_are_compared_with_none_by_hand():
    pairs = {("hard", "without"): score_four_pairs(), ("hard", "with"): score_four_pairs(0.2)}
    pairs["hard", "probe"] = pairs["hard", "without"]
    smallest = {"logit_difference": 0.05, "consistency": 0.5}
    found = compare_arms(pairs, smallest, ["with"])
    assert list(found) == [("logit_difference", "hard", "with"), ("consistency", "hard", "with")]
    change, told = found["logit_difference", "hard", "with"]
    assert change.signed
    assert bounds(change) == pytest.approx((0.1, 0.1, 0.1))  # 0.2 of a spread of 2, in every pair
    assert told == f"{EFFECT} (TOST p = 1.000)"
    wider = compare_arms(pairs, {"logit_difference": 0.3}, ["with"])
    assert wider["logit_difference", "hard", "with"][1] == f"{SMALL} (TOST p < 0.001)"


def test_phenomena_by_hand():
    found = unfold(consistency_by_phenomenon(CHALLENGE, PREDICTED))
    assert found[["name", "value", "n"]].to_numpy().tolist() == [
        ["quoted opinion", 1.0, 1],
        ["negation", 0.0, 2],
    ]


def test_class_report_is_sklearns_mean_over_runs():
    labels = np.array([0, 0, 1, 1, 2])
    runs = np.array([[0, 1, 1, 1, 2], [0, 0, 1, 0, 0]])
    found = report_classes(labels, runs, ["a", "b", "c"]).set_index("class")
    expected = [
        classification_report(
            labels, run, target_names=list("abc"), output_dict=True, zero_division=0
        )
        for run in runs
    ]
    for name in "abc":
        for measure in ("precision", "recall"):
            mean = np.mean([report[name][measure] for report in expected])
            assert found.loc[name, measure] == pytest.approx(mean)
    assert found["n"].tolist() == [2, 2, 1]


def test_reliability_by_hand():
    # two bins: 0.5-0.75 holds 0.55 and 0.60, both right; 0.75-1 holds 0.95 right and 0.90 wrong
    found = unfold(reliability(CHANCES, LABELS, bins=2))
    assert found["confidence"].tolist() == pytest.approx([0.575, 0.925])
    assert found["value"].tolist() == [1.0, 0.5]
    assert found["n"].tolist() == [2, 2]


def test_calibration_error_by_hand():
    found = calibration_error(CHANCES, LABELS, resamples=5000, bins=2)
    assert found.value == pytest.approx((2 * abs(0.575 - 1) + 2 * abs(0.925 - 0.5)) / 4)
    # confidence less hit of each case, and whether it is in the upper bin; all 4^4 resamples
    cases = [(0.55 - 1, 0), (0.60 - 1, 0), (0.95 - 1, 1), (0.90 - 0, 1)]
    errors = [
        sum(abs(sum(gap for gap, own in drawn if own == code)) for code in (0, 1)) / 4
        for drawn in product(cases, repeat=4)
    ]
    expected = np.quantile(errors, [0.025, 0.975])
    assert (found.low, found.high) == pytest.approx(expected, abs=0.02)
    assert found.high - found.low > 0.3


def test_a_calibrated_classifier_has_a_small_error():
    rng = np.random.default_rng(0)
    positive = rng.uniform(size=20_000)
    labels = (rng.uniform(size=20_000) < positive).astype(int)
    found = calibration_error(np.stack([1 - positive, positive], axis=1), labels, resamples=50)
    assert found.value < 0.02


MARGIN = 0.3


def draw_values(runs, cases, spreads, simulations=400):
    """Return (simulations, runs, cases) values around 0: run + case + noise, by their spreads."""
    rng = np.random.default_rng(0)
    shapes = (runs, 1), (1, cases), (runs, cases)
    return sum(
        s * rng.normal(size=(simulations, *shape)) for s, shape in zip(spreads, shapes, strict=True)
    )


def test_one_run_has_the_one_sample_interval():
    values = np.random.default_rng(2).normal(0.2, 1, size=(1, 40))
    found = crossed_mean(values)
    expected = stats.ttest_1samp(values[0], 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert (found.value, found.n) == (pytest.approx(values.mean()), 40)


def test_crossed_interval_by_hand():
    # Rows 1 2 3 and 3 4 11: means 2, 6 and 2, 3, 7; squares runs 24, cases 14, residual 6.
    found = crossed_mean(np.array([[1.0, 2, 3], [3, 4, 11]]))
    error = np.sqrt((24 + 14 - 6) / 6)
    freedom = (24 + 14 - 6) ** 2 / (24**2 / 1 + 14**2 / 2 + 6**2 / 2)
    half = stats.t.ppf(0.975, freedom) * error
    assert (found.value, found.low, found.high) == pytest.approx((4, 4 - half, 4 + half))


def test_interval_is_never_narrower_than_that_of_cases_alone():
    values = np.array([[1.0, 2, 3, 9], [4, 3, 2, 6]]) - [[0.75], [0.75]]  # runs with equal means
    found, alone = crossed_mean(values), crossed_mean(values.mean(axis=0)[None])
    assert vars(found) == pytest.approx(vars(alone))


@pytest.mark.parametrize("spreads", [(0.1, 0.5, 0.5), (0.3, 0.3, 1), (0.5, 0.1, 0.5), (0, 0, 1)])
def test_intervals_cover_the_truth_as_often_as_they_say(spreads):
    found = [crossed_mean(values) for values in draw_values(10, 60, spreads)]
    share = np.mean([one.low < 0 < one.high for one in found])
    assert 0.93 <= share <= 0.985


@pytest.mark.parametrize("margin", [0.1, 0.3, 1.0])
def test_equivalence_of_one_run_is_two_one_sided_tests(margin):
    values = np.random.default_rng(3).normal(-0.15, 1, size=(1, 50))
    above = stats.ttest_1samp(values[0], -margin, alternative="greater").pvalue
    below = stats.ttest_1samp(values[0], margin, alternative="less").pvalue
    assert equivalence(values, margin) == pytest.approx(max(above, below))
    assert equivalence(-values, margin) == pytest.approx(max(above, below))


@pytest.mark.parametrize("truth", [-MARGIN, MARGIN])
def test_an_effect_at_the_margin_is_excluded_in_a_twentieth_of_cases(truth):
    values = truth + draw_values(10, 60, (0.1, 0.3, 0.5))
    share = np.mean([equivalence(one, MARGIN) < 0.05 for one in values])
    assert 0.025 <= share <= 0.075
    within = draw_values(10, 60, (0.1, 0.3, 0.5))
    assert np.mean([equivalence(one, MARGIN) < 0.05 for one in within]) > 0.95


def test_values_that_do_not_vary():
    blind = np.zeros((3, 5))
    assert crossed_mean(blind) == Estimate(0.0, 0.0, 0.0, 5)
    assert equivalence(blind, 0.1) == 0.0
    assert equivalence(blind + 0.25, 0.25) == 1.0


def test_a_share_stays_within_its_bounds():
    hits = np.zeros((4, 20))
    hits[:, 0] = hits[0, 1] = 1
    assert crossed_mean(hits).low < 0
    assert crossed_share(hits).low == 0.0
    assert crossed_share(1 - hits).high == 1.0
    assert crossed_share(hits).high == crossed_mean(hits).high


@pytest.mark.parametrize("hits", [0, 2, 10, 20])
def test_the_share_of_a_single_run_has_wilsons_interval(hits):
    found = crossed_share(np.arange(20)[np.newaxis] < hits)
    assert bounds(found) == wilson(hits, 20)
    assert found.n == 20
    assert found.low < found.high


def test_differences_are_paired_and_signed():
    rng = np.random.default_rng(4)
    before = rng.random((5, 30)) < 0.5
    after = before | (rng.random((5, 30)) < 0.3)
    found = crossed_difference(after, before)
    assert found.signed
    assert found.value == pytest.approx(after.mean() - before.mean())
    assert 0 < found.low < found.value


@pytest.mark.parametrize(
    ("low", "high", "p", "words"),
    [
        (0.2, 0.5, 0.6, EFFECT),
        (-0.5, -0.2, 0.6, EFFECT),
        (0.01, 0.3, 0.6, SOME),
        (-0.3, -0.01, 0.6, SOME),
        (0.01, 0.05, 0.001, SMALL),
        (-0.03, 0.04, 0.001, EXCLUDED),
        (-0.2, 0.4, 0.3, UNDECIDED),
        (np.nan, np.nan, np.nan, UNDECIDED),
    ],
)
def test_what_a_difference_shows(low, high, p, words):
    assert describe_effect(Estimate((low + high) / 2, low, high, 9), p, margin=0.1) == words
