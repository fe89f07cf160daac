import numpy as np
import pandas as pd
import pytest

from sentigeo.analysis.contrast import (
    OUTCOMES,
    by_phenomenon,
    consistent,
    list_outcomes,
    list_phenomena,
    logit_difference,
    outcomes,
    pair_sides,
    ranked,
    score_pairs,
)
from sentigeo.analysis.predictions import pair_consistency
from sentigeo.data.literature import load_endpoints
from sentigeo.errors import UserError
from sentigeo.ledger.claims import load_claims

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
    assert {*claim.verdict["above"].values()} == {fixed["smallest_effects"][primary["endpoint"]]}
    assert name in claim.verdict["above"]


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
    found = logit_difference(np.vstack([MARGINS, 10 * MARGINS]), TEXTS, np.array([2.0, 20.0]))
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
    found = consistent(logits[..., 1] - logits[..., 0], TEXTS)
    expected = [pair_consistency(TEXTS, run.argmax(axis=1)).to_numpy() for run in logits]
    assert found.tolist() == np.array(expected).tolist()
    assert found.any()


def test_nothing_depends_on_the_order_of_rows():
    rng = np.random.default_rng(1)
    margins, order = rng.normal(size=(3, len(TEXTS))), rng.permutation(len(TEXTS))
    names, moved = (texts["pair"].unique().tolist() for texts in (TEXTS, TEXTS.iloc[order]))
    places = [moved.index(name) for name in names]
    found = ranked(margins[:, order], TEXTS.iloc[order])[:, places]
    assert found.tolist() == ranked(margins, TEXTS).tolist()


def test_margins_of_other_texts():
    with pytest.raises(ValueError, match=r"\(1, 9\), not \(runs, 8\)"):
        ranked(np.zeros((1, 9)), TEXTS)


def test_outcomes_are_listed_by_phenomenon():
    kinds = by_phenomenon(outcomes(MARGINS, TEXTS), TEXTS)
    frame = list_outcomes({(kind, "model"): found for kind, found in kinds.items()})
    assert frame.columns.tolist() == ["group", "name", *OUTCOMES, "n"]
    assert frame.to_numpy().tolist() == [
        ["irony", "model", 0.5, 0.0, 0.5, 2],
        ["negation", "model", 0.0, 1.0, 0.0, 2],
    ]


def test_phenomena_are_listed_by_model_with_their_pairs():
    models = {"a model": outcomes(MARGINS, TEXTS)}
    frame = list_phenomena(models, TEXTS)
    assert frame[["group", "name"]].to_numpy().tolist() == [
        ["a model", "irony (2)"],
        ["a model", "negation (2)"],
    ]
    assert list_phenomena(models, TEXTS, least=3).empty
