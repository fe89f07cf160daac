import pytest
import torch
from transformers import AutoModel

from sentigeo.encoder.bert_layers import attend, attend_from_cls, feed_forward, run_layer


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
