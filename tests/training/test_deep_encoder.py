import numpy as np
import pytest
import torch
from helpers import load_masked_lm
from transformers import BertForMaskedLM, RobertaForMaskedLM

from sentigeo.cache import Store
from sentigeo.encoder.bert_layers import attend_from_places, encoder_layers, make_batch
from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import encode_texts
from sentigeo.training.deep_clustering import divergence_loss, sharpen
from sentigeo.training.deep_encoder import (
    NO_ANSWER,
    Decoder,
    DeepEncoder,
    TopDeepEncoder,
    assign_softly,
    mask_tokens,
)
from sentigeo.training.loop import trained_weights

WORDS = np.arange(2000, 2100)
TEXTS = ["a good film", "a long and boring story about nothing", "fine"]
POINTS = torch.tensor([[0.0], [1.0], [3.0]])
CENTROIDS = torch.tensor([[0.0], [2.0]])
# Kernels 1 / (1 + distance squared): (1, 1/5), (1/2, 1/2), (1/10, 1/2).
SHARES = torch.tensor([[5 / 6, 1 / 6], [1 / 2, 1 / 2], [1 / 6, 5 / 6]])


def make(kind, folder, layers=1):
    model, _ = load_masked_lm(folder)
    return kind(model, layers, np.ones((2, 32)), WORDS)


def trained(body, *parts):
    body.train_parts(set(parts))
    return trained_weights(body)


@pytest.fixture(scope="module")
def inputs(tiny_bert, tmp_path_factory):
    """Three texts as token ids, and what the first layer makes of them."""
    encoder = load_encoder(str(tiny_bert))
    tokens = encode_texts(TEXTS, encoder.tokenizer, 16)
    store = Store(tmp_path_factory.mktemp("deep-encoder"))
    return tokens, extract(tokens, encoder, store, [], keep=[1])[1][1]


def test_a_cached_trunk_gives_the_same(tiny_bert, inputs):
    tokens, trunk = inputs
    rows, chosen = np.arange(3), torch.zeros(3, 9, dtype=torch.bool)
    chosen[0, 1] = chosen[1, [2, 4]] = True
    found = []
    for kind, source in ((DeepEncoder, tokens), (TopDeepEncoder, trunk)):
        body = make(kind, tiny_bert)
        states, mask = make_batch(source, rows)
        found.append(body([states, mask], [states, mask, chosen[:, : mask.shape[1]]]))
    for whole, top in zip(*found, strict=True):
        assert torch.allclose(whole, top, atol=1e-5)
    assert found[0][0].shape == (3, 2)
    assert found[0][1].shape == (3, 100)


@pytest.mark.parametrize("kind", [DeepEncoder, TopDeepEncoder])
def test_parts_that_are_trained(tiny_bert, kind):
    body = make(kind, tiny_bert)
    assert list(trained(body, "centroids")) == ["centroids"]
    layers = trained(body, "layers")
    assert all(".encoder.layer.1." in name for name in layers)
    head = trained(body, "head")
    assert "decoder.bias" in head
    assert not any("encoder" in name or "embeddings" in name for name in head)
    assert len(trained(body, "layers", "head", "centroids")) == len(layers) + len(head) + 1


def test_another_architecture(tiny_distilbert):
    body = make(DeepEncoder, tiny_distilbert)
    tokens = encode_texts(TEXTS, load_encoder(str(tiny_distilbert)).tokenizer, 16)
    shares, scores = body(make_batch(tokens, np.arange(3)), None)
    assert scores is None
    assert torch.allclose(shares.sum(dim=1), torch.ones(3))
    assert all(".layer.1." in name for name in trained(body, "layers"))


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
    model, new = load_masked_lm(tiny_bert)
    again, _ = load_masked_lm(tiny_bert)
    assert new
    weights = [m.cls.predictions.transform.dense.weight for m in (model, again)]
    assert torch.equal(*weights)
    assert not load_masked_lm(with_head)[1]


@pytest.mark.parametrize(
    "kind", ["with_head", "roberta_with_head", "tiny_distilbert", "tiny_mpnet"]
)
def test_scores_are_those_of_the_whole_model(kind, request):
    folder, words = str(request.getfixturevalue(kind)), np.array([5, 100, 700, 1999])
    whole, _ = load_masked_lm(folder)
    cut, _ = load_masked_lm(folder)
    decoder = Decoder(cut, words)
    ids = torch.tensor([[101, 1592, 888, 102]])
    assert torch.allclose(decoder(cut(ids).logits), whole(ids).logits[..., words], atol=1e-5)


def test_the_decoder_is_tied_to_the_word_embeddings(tiny_bert):
    model, _ = load_masked_lm(tiny_bert)
    embeddings = model.base_model.embeddings.word_embeddings.weight
    decoder = Decoder(model, np.array([3, 7]))
    assert torch.equal(decoder.embeddings, embeddings[[3, 7]])
    assert [name for name, _ in decoder.named_parameters()] == ["bias"]


def test_chosen_tokens_have_the_states_of_the_whole_layer(tiny_bert):
    model, _ = load_masked_lm(tiny_bert)
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
    model, new = load_masked_lm(roberta_with_head)
    body = TopDeepEncoder(model, 1, np.ones((2, 32)), np.arange(50))
    assert not new
    mask, chosen = torch.ones(1, 4, dtype=torch.bool), torch.tensor([[False, True, True, False]])
    states = torch.randn(1, 4, 32)
    expected = model.lm_head(attend_from_places(encoder_layers(model)[1], states, mask, chosen))
    assert torch.allclose(body.prepare(states, mask, chosen), expected)
    head = trained(body, "head")
    assert {name.split(".")[1] for name in head if name != "decoder.bias"} == {"lm_head"}
    assert not any(name.endswith("lm_head.bias") for name in head)


@pytest.fixture(scope="module")
def tokenizer(tiny_bert):
    return load_encoder(str(tiny_bert)).tokenizer


def test_rates(tokenizer):
    tokens = encode_texts(["a good film with a long story " * 8] * 400, tokenizer, 64)
    masked = mask_tokens(tokens, tokenizer, 0)
    ids, plain = masked.source.ids, ~np.isin(tokens.ids, tokenizer.all_special_ids)
    places = np.flatnonzero(masked.hidden)
    assert len(places) / plain.sum() == pytest.approx(0.15, abs=0.01)
    assert plain[places].all()
    assert set(np.flatnonzero(ids != tokens.ids)) <= set(places)
    assert np.mean(ids[places] == tokenizer.mask_token_id) == pytest.approx(0.8, abs=0.02)
    assert np.mean(ids[places] == tokens.ids[places]) == pytest.approx(0.1, abs=0.02)
    assert (masked.words[masked.answers] == tokens.ids).all()
    assert masked.words.tolist() == sorted(set(tokens.ids.tolist()))


def test_batches_ask_for_what_was_hidden(tokenizer):
    tokens = encode_texts(["a good film with a long story " * 3, "", "fine " * 20], tokenizer, 64)
    masked = mask_tokens(tokens, tokenizer, 0)
    rows = np.array([2, 0])
    chosen, answers = masked.ask(rows, 64)
    assert int(chosen.sum()) == len(answers) == masked.count(rows) > 0
    asked = [tokens[row][np.flatnonzero(chosen[i])] for i, row in enumerate(rows)]
    assert masked.words[answers.numpy()].tolist() == np.concatenate(asked).tolist()


def test_nothing_to_mask(tokenizer):
    masked = mask_tokens(encode_texts(["", ""], tokenizer, 64), tokenizer, 0)
    rows = np.array([0, 1])
    assert masked.count(rows) == 0
    chosen, answers = masked.ask(rows, 5)
    assert chosen.nonzero().tolist() == [[0, 0]]
    assert answers.tolist() == [NO_ANSWER]


def test_seeds(tokenizer):
    tokens = encode_texts(["a good film with a long story"] * 50, tokenizer, 64)
    first, again, other = (mask_tokens(tokens, tokenizer, seed) for seed in (0, 0, 1))
    assert (first.source.ids == again.source.ids).all()
    assert first.hidden.tolist() != other.hidden.tolist()


def test_shares_by_hand():
    assert torch.allclose(assign_softly(POINTS, CENTROIDS), SHARES)


def test_targets_by_hand():
    shares = torch.tensor([[0.9, 0.1], [0.6, 0.4]])  # sizes 1.5 and 0.5
    balanced = torch.tensor([[0.81 / 1.5, 0.01 / 0.5], [0.36 / 1.5, 0.16 / 0.5]])
    assert torch.allclose(sharpen(shares), balanced / balanced.sum(dim=1, keepdim=True))
    plain = torch.tensor([[0.81, 0.01], [0.36, 0.16]])
    assert torch.allclose(sharpen(shares, balance=False), plain / plain.sum(dim=1, keepdim=True))
    assert sharpen(shares)[1, 1] > 0.5 > sharpen(shares, balance=False)[1, 1]


def test_the_loss_by_hand():
    targets = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
    shares = torch.tensor([[0.5, 0.5], [0.25, 0.75]])
    second = 0.5 * torch.log(torch.tensor(2.0)) + 0.5 * torch.log(torch.tensor(2 / 3))
    expected = (torch.log(torch.tensor(2.0)) + second) / 2
    assert divergence_loss(targets, shares) == pytest.approx(float(expected))
    assert divergence_loss(targets, targets) == 0


def test_an_empty_cluster_and_one_cluster():
    far = torch.tensor([[0.0], [1e20]])
    shares = assign_softly(POINTS, far)
    assert torch.isfinite(sharpen(shares)).all()
    assert torch.isfinite(divergence_loss(sharpen(shares), shares))
    assert (assign_softly(POINTS, CENTROIDS[:1]) == 1).all()


def test_gradients_are_those_of_small_changes():
    points = POINTS.double().requires_grad_()
    centroids = CENTROIDS.double().requires_grad_()
    targets = sharpen(assign_softly(points, centroids)).detach()
    assert torch.autograd.gradcheck(
        lambda p, c: divergence_loss(targets, assign_softly(p, c)), (points, centroids)
    )
