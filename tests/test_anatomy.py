import pytest

from sentigeo.anatomy import list_tokens, state_shapes
from sentigeo.encoder import load_encoder


@pytest.fixture(scope="module")
def encoder():
    return load_encoder("packaged")


def test_tokens_of_a_text(encoder):
    found = list_tokens("An unwatchable film", encoder)
    assert found["token"].tolist() == ["[CLS]", "an", "un", "##watch", "##able", "film", "[SEP]"]
    assert found["kind"].tolist() == [
        "special", "word", "word", "piece", "piece", "word", "special"
    ]  # fmt: skip
    assert found["id"].iloc[[0, -1]].tolist() == [101, 102]


def test_one_state_more_than_layers(encoder):
    assert state_shapes("An unwatchable film", encoder) == [(1, 7, 384)] * 7


def test_longer_than_the_encoder_reads(encoder):
    assert state_shapes("film " * 900, encoder)[0] == (1, 512, 384)
