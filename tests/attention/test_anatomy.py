import pytest

from sentigeo.attention.attention import count_parameters, list_tokens, state_shapes
from sentigeo.encoder.encoder import load_encoder


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


def test_weights_by_part(encoder):
    found = count_parameters(encoder).set_index("part")["weights"]
    width, inner, layers = 384, 1536, 6
    assert found["attention"] == layers * 4 * (width * width + width)
    assert found["feed-forward"] == layers * (2 * width * inner + width + inner)
    assert found["layer norm"] == (2 * layers + 1) * 2 * width
    assert found["embeddings"] == (30522 + 512 + 2) * width
    assert found.sum() == encoder.parameters


def test_weights_of_another_architecture(tiny_distilbert):
    other = load_encoder(str(tiny_distilbert))
    found = count_parameters(other).set_index("part")["weights"]
    assert found["attention"] == 2 * 4 * (32 * 32 + 32)
    assert found.sum() == other.parameters
