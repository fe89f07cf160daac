import numpy as np
import pytest
import torch
from transformers import BertForMaskedLM, RobertaForMaskedLM

from sentigeo.encoder.bert_layers import attend_from_places, encoder_layers
from sentigeo.training.deep_encoder import Decoder, TopDeepEncoder, load_masked_lm


@pytest.fixture(scope="module")
def with_head(tiny_bert, tmp_path_factory):
    """The tiny BERT with a masked-language head of its own."""
    folder = tmp_path_factory.mktemp("with-head")
    torch.manual_seed(1)
    model = BertForMaskedLM.from_pretrained(tiny_bert)
    torch.nn.init.normal_(model.cls.predictions.bias)
    model.save_pretrained(folder)
    return folder


@pytest.fixture(scope="module")
def roberta_with_head(tiny_roberta, tmp_path_factory):
    """The tiny RoBERTa with a masked-language head of its own."""
    folder = tmp_path_factory.mktemp("roberta-with-head")
    torch.manual_seed(1)
    RobertaForMaskedLM.from_pretrained(tiny_roberta).save_pretrained(folder)
    return folder


def test_a_head_is_drawn_only_if_there_is_none(tiny_bert, with_head):
    model, new = load_masked_lm(str(tiny_bert), None)
    again, _ = load_masked_lm(str(tiny_bert), None)
    assert new
    weights = [m.cls.predictions.transform.dense.weight for m in (model, again)]
    assert torch.equal(*weights)
    assert not load_masked_lm(str(with_head), None)[1]


@pytest.mark.parametrize(
    "kind", ["with_head", "roberta_with_head", "tiny_distilbert", "tiny_mpnet"]
)
def test_scores_are_those_of_the_whole_model(kind, request):
    folder, words = str(request.getfixturevalue(kind)), np.array([5, 100, 700, 1999])
    whole, _ = load_masked_lm(folder, None)
    cut, _ = load_masked_lm(folder, None)
    decoder = Decoder(cut, words)
    ids = torch.tensor([[101, 1592, 888, 102]])
    assert torch.allclose(decoder(cut(ids).logits), whole(ids).logits[..., words], atol=1e-5)


def test_the_decoder_is_tied_to_the_word_embeddings(tiny_bert):
    model, _ = load_masked_lm(str(tiny_bert), None)
    embeddings = model.base_model.embeddings.word_embeddings.weight
    decoder = Decoder(model, np.array([3, 7]))
    assert torch.equal(decoder.embeddings, embeddings[[3, 7]])
    assert [name for name, _ in decoder.named_parameters()] == ["bias"]


def test_chosen_tokens_have_the_states_of_the_whole_layer(tiny_bert):
    model, _ = load_masked_lm(str(tiny_bert), None)
    layer = encoder_layers(model)[1]
    torch.manual_seed(0)
    hidden = torch.randn(3, 6, 32)
    mask = torch.tensor([[True] * 6, [True] * 4 + [False] * 2, [True] * 2 + [False] * 4])
    chosen = torch.zeros(3, 6, dtype=torch.bool)
    chosen[0, [1, 5]] = chosen[1, [0, 2, 3]] = True
    wide = torch.zeros(3, 1, 1, 6).masked_fill(~mask[:, None, None], -torch.inf)
    expected = layer(hidden, attention_mask=wide)
    expected = expected[0] if isinstance(expected, tuple) else expected
    assert torch.allclose(attend_from_places(layer, hidden, mask, chosen), expected[chosen],
                          atol=1e-5)  # fmt: skip


def test_the_head_of_a_roberta_is_found(roberta_with_head):
    model, new = load_masked_lm(str(roberta_with_head), None)
    body = TopDeepEncoder(model, 1, np.ones((2, 32)), np.arange(50))
    assert not new
    mask, chosen = torch.ones(1, 4, dtype=torch.bool), torch.tensor([[False, True, True, False]])
    states = torch.randn(1, 4, 32)
    expected = model.lm_head(attend_from_places(encoder_layers(model)[1], states, mask, chosen))
    assert torch.allclose(body.prepare(states, mask, chosen), expected)
    head = body.train_parts({"head"})
    assert {name.split(".")[1] for name in head if name != "decoder.bias"} == {"lm_head"}
    assert not any(name.endswith("lm_head.bias") for name in head)
