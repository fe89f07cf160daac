import pytest
import torch
from transformers import AutoModelForSequenceClassification, DistilBertConfig

from sentigeo.encoder.bert_layers import attend, encoder_layers
from sentigeo.errors import UserError
from sentigeo.training.classifier import (
    FastWholeClassifier,
    TopClassifier,
    WholeClassifier,
    load_classifier,
)

CLASSES = ["bad", "fair", "good"]


@pytest.fixture
def batch():
    torch.manual_seed(1)
    ids = torch.randint(1000, 2000, (4, 12))
    mask = torch.arange(12) < torch.tensor([12, 7, 3, 12])[:, None]
    return ids.masked_fill(~mask, 0), mask


@pytest.fixture
def model(tiny_bert):
    return load_classifier(str(tiny_bert), None, CLASSES, seed=3).eval()


@pytest.fixture
def roberta(tiny_roberta):
    return load_classifier(str(tiny_roberta), None, CLASSES, seed=3).eval()


def plain_logits(model, ids, mask):
    with torch.no_grad():
        return model(ids, attention_mask=mask.long()).logits


def hidden_states(model, ids, mask):
    with torch.no_grad():
        return model(ids, attention_mask=mask.long(), output_hidden_states=True).hidden_states


def test_head_is_drawn_with_the_seed_and_knows_its_classes(tiny_bert):
    first, again, other = (load_classifier(str(tiny_bert), None, CLASSES, s) for s in (3, 3, 4))
    assert torch.equal(first.classifier.weight, again.classifier.weight)
    assert not torch.equal(first.classifier.weight, other.classifier.weight)
    assert first.config.id2label == {0: "bad", 1: "fair", 2: "good"}
    assert first.classifier.out_features == 3


@pytest.mark.parametrize("layers", [0, 1, 2])
def test_top_on_a_trunk_equals_the_whole_model(model, batch, layers):
    states = hidden_states(model, *batch)
    with torch.no_grad():
        found = TopClassifier(model, layers).eval()(states[2 - layers], batch[1])
    assert torch.allclose(found, plain_logits(model, *batch), atol=1e-5)


def test_half_a_layer_on_a_trunk_equals_the_whole_model(model, batch):
    states = hidden_states(model, *batch)
    with torch.no_grad():
        middle = attend(encoder_layers(model)[0], states[0], batch[1])
        found = TopClassifier(model, 1.5).eval()(middle, batch[1])
    assert torch.allclose(found, plain_logits(model, *batch), atol=1e-5)


def test_half_a_layer_trains_its_feed_forward_half_only(model, batch):
    hidden = torch.randn(4, 12, 32)
    body = TopClassifier(model, 1.5)
    body(hidden, batch[1]).sum().backward()
    below = encoder_layers(model)[0]
    assert below.intermediate.dense.weight.grad is not None
    assert below.attention.output.dense.weight.grad is None
    inside = {id(weight) for weight in body.parameters()}
    assert not inside & {id(weight) for weight in below.attention.parameters()}


def test_roberta_has_a_trunk_too(roberta, batch):
    states = hidden_states(roberta, *batch)
    with torch.no_grad():
        top = TopClassifier(roberta, 1).eval()(states[1], batch[1])
        whole = FastWholeClassifier(roberta, 2).eval()(*batch)
    for found in (top, whole):
        assert torch.allclose(found, plain_logits(roberta, *batch), atol=1e-5)


def test_fast_whole_equals_the_whole_model_also_in_its_gradients(model, batch):
    losses = {}
    for name, body in {
        "fast": FastWholeClassifier(model, 2),
        "plain": WholeClassifier(model, 2),
    }.items():
        model.zero_grad()
        body.eval()(*batch).square().sum().backward()
        losses[name] = {
            n: w.grad.clone() for n, w in model.named_parameters() if w.grad is not None
        }
    assert losses["fast"].keys() >= losses["plain"].keys() - {
        "bert.encoder.layer.1.attention.self.key.bias"
    }
    for name, gradient in losses["fast"].items():
        assert torch.allclose(gradient, losses["plain"][name], atol=1e-4), name


def test_frozen_layers_stay_frozen_and_without_dropout(model, batch):
    body = WholeClassifier(model, 1).train()
    assert not model.bert.encoder.layer[0].training
    assert not model.bert.embeddings.training
    assert model.bert.encoder.layer[1].training
    body(*batch).sum().backward()
    trained = {name.split(".")[3] if "layer" in name else name.split(".")[0]
               for name, w in model.named_parameters() if w.grad is not None}  # fmt: skip
    assert trained == {"1", "bert", "classifier"}
    assert model.bert.embeddings.word_embeddings.weight.grad is None
    assert model.bert.pooler.dense.weight.grad is not None


def test_other_architectures_run_whole_but_have_no_trunk(batch):
    config = DistilBertConfig(
        vocab_size=2000, dim=32, n_layers=2, n_heads=4, hidden_dim=64, num_labels=3
    )
    distil = AutoModelForSequenceClassification.from_config(config)
    WholeClassifier(distil, 1)(*batch).sum().backward()
    assert distil.distilbert.transformer.layer[0].attention.q_lin.weight.grad is None
    assert distil.distilbert.transformer.layer[1].attention.q_lin.weight.grad is not None
    with pytest.raises(UserError, match="distilbert model has no cached trunk"):
        TopClassifier(distil, 1)
