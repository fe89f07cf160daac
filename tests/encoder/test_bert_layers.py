import numpy as np
import pytest
import torch
from transformers import AutoModel

from sentigeo.encoder.bert_layers import (
    attend,
    attend_from_cls,
    feed_forward,
    hidden_states,
    make_batch,
    run_layer,
)
from sentigeo.encoder.tokens import TokenIds
from sentigeo.encoder.vectors import vectors_as_trunk


def test_token_ids_are_padded():
    tokens = TokenIds(np.array([5, 6, 7, 8], np.int32), np.array([0, 3, 4]), padding=9)
    ids, mask = make_batch(tokens, np.array([0, 1]))
    assert ids.tolist() == [[5, 6, 7], [8, 9, 9]]
    assert mask.tolist() == [[True, True, True], [True, False, False]]


def test_vectors_are_texts_of_one_token():
    trunk = vectors_as_trunk(6, np.array([[1.0, 2.0], [3.0, 4.0]], np.float32))
    hidden, mask = make_batch(trunk, np.array([1, 0]))
    assert hidden.tolist() == [[[3, 4]], [[1, 2]]]
    assert mask.all()


@pytest.fixture
def pass_through(tiny_bert):
    """The layers of a model, the mask of a batch with padding, and the model's own states."""
    model = AutoModel.from_pretrained(tiny_bert).eval()
    torch.manual_seed(1)
    mask = torch.arange(12) < torch.tensor([12, 7, 3, 12])[:, None]
    ids = torch.randint(1000, 2000, (4, 12)).masked_fill(~mask, 0)
    with torch.no_grad():
        found = model(ids, attention_mask=mask.long(), output_hidden_states=True)
    return model.encoder.layer, mask, found.hidden_states


@pytest.mark.parametrize("cls_at_top", [False, True])
def test_hidden_states_are_those_of_whole_layers(tiny_bert, pass_through, cls_at_top):
    _, mask, expected = pass_through
    model = AutoModel.from_pretrained(tiny_bert).eval()
    with torch.no_grad():
        found = dict(hidden_states(model, expected[0], mask, 0, 2, cls_at_top))
    assert [*found] == [1, 2]
    assert torch.allclose(found[1][mask], expected[1][mask], atol=1e-6)
    assert torch.allclose(found[2][:, 0], expected[2][:, 0], atol=1e-6)
    assert found[2].shape[1] == (1 if cls_at_top else 12)


def test_last_layer_for_cls_is_the_whole_layer_at_cls(pass_through):
    layers, mask, states = pass_through
    found = attend_from_cls(layers[-1], states[-2], mask)
    assert torch.allclose(found, states[-1][:, 0], atol=1e-6)


def test_layer_for_all_tokens_is_the_layer_itself(pass_through):
    layers, mask, states = pass_through
    found = run_layer(layers[0], states[0], mask)
    assert torch.allclose(found[mask], states[1][mask], atol=1e-6)


def test_feed_forward_half_knows_each_token_by_itself(pass_through):
    layers, mask, states = pass_through
    attended = attend(layers[0], states[0], mask)
    apart = feed_forward(layers[0], attended[:, 3:4])
    assert torch.allclose(apart, feed_forward(layers[0], attended)[:, 3:4], atol=1e-6)


def test_attention_dropout_only_in_training(pass_through):
    layers, mask, states = pass_through
    layer = layers[0].train()
    assert not torch.equal(run_layer(layer, states[0], mask), run_layer(layer, states[0], mask))
