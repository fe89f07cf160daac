import numpy as np
import pandas as pd
import pytest

from sentigeo.analysis.keywords import Leans, measure_leans, permute_leans
from sentigeo.errors import UserError

TEXTS, LABELS = ["good", "good", "bad", "good bad"], np.array([1, 1, 0, 0])


def test_lean_by_hand():
    leans = measure_leans(TEXTS, LABELS, 2, ["good", "bad"])
    # "good" is in 2 of 2 texts of class 1 and in 1 of 2 others; half a text is added everywhere.
    good = np.log(2.5 / 0.5) - np.log(1.5 / 1.5)
    bad = np.log(2.5 / 0.5) - np.log(0.5 / 2.5)
    assert leans.of(["good", "bad", "good"], np.array([1, 0, 0])) == pytest.approx(
        [good, bad, -good]
    )


def test_three_classes_and_one_without_texts():
    leans = measure_leans(TEXTS, LABELS, 3, ["good"])
    assert leans.table.shape == (3, 1)
    # No text of class 2: nothing is known of it, against 3 of 4 texts of the others.
    assert leans.table[2, 0] == pytest.approx(0 - np.log(3.5 / 1.5))


def test_nothing_to_look_up_is_refused():
    with pytest.raises(UserError, match="no keywords"):
        measure_leans(TEXTS, LABELS, 2, [])


def keywords(lean, labels):
    """Terms of two classes with given leans to class 1."""
    names = [f"t{place}" for place in range(len(lean))]
    return Leans(names, np.array([-np.array(lean), lean])), pd.DataFrame(
        {"term": names, "label": labels}
    )


def test_sides_taken_are_told_from_words_dealt_at_random():
    rng = np.random.default_rng(0)
    labels = np.arange(30) % 2
    telling = keywords(np.where(labels, 1.0, -1.0) + rng.normal(size=30) * 0.3, labels)
    p, dealt = permute_leans(*telling, deals=199)
    assert p == 1 / 200
    assert abs(dealt.mean()) < 0.1
    assert permute_leans(*keywords(rng.normal(size=30), labels), deals=199)[0] > 0.05
    # One strong word among many that lean nowhere makes no list polarised.
    one = keywords(np.where(np.arange(30) == 1, 2.4, 0.0), labels)
    assert permute_leans(*one, deals=199)[0] > 0.05


def test_the_wrong_side_is_as_clear_as_the_right_one():
    labels = np.arange(30) % 2
    p, dealt = permute_leans(*keywords(np.where(labels, -1.0, 1.0), labels), deals=199)
    assert p == 1 / 200
    assert dealt.min() > -1


def test_a_small_test_by_hand():
    # Leans 1 and -1 dealt to one class each: every deal has a mean of +1 or -1, equally far out.
    assert permute_leans(*keywords([1.0, -1.0], [1, 0]), deals=50)[0] == pytest.approx(1.0, abs=0.1)
