import numpy as np

from sentigeo.analysis.cosine_remedies import cosine_by_length, length_effect


def test_cosines_that_follow_length_are_found_and_others_not():
    rng = np.random.default_rng(0)
    lengths = rng.integers(20, 500, 400)
    noise = rng.normal(size=(400, 20))
    none = length_effect(noise, lengths)
    assert none.low < 0 < none.high
    shared = noise + lengths[:, None] / 60  # long texts have more in common
    grows = length_effect(shared, lengths)
    assert grows.low > 0.5
    parts = cosine_by_length(shared, lengths)
    assert parts["words"].is_monotonic_increasing
    assert parts["value"].is_monotonic_increasing
    assert parts["n"].sum() == 400


def test_equally_long_texts_and_very_few_have_no_effect_to_measure():
    vectors = np.random.default_rng(0).normal(size=(30, 4))
    assert np.isnan(length_effect(vectors, np.full(30, 7)).value)
    assert np.isnan(length_effect(vectors[:3], np.arange(3)).low)
    assert len(cosine_by_length(vectors[:3], np.arange(3))) == 3
