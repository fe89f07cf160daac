import numpy as np
import pytest
import torch
from sentence_transformers.sentence_transformer.modules import Pooling
from transformers import AutoModelForSequenceClassification, AutoTokenizer

from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.errors import UserError
from sentigeo.figures.style import colour_labels
from sentigeo.own_texts.decisions import (
    Reading,
    choose_decision,
    decide_by_classifier,
    decide_by_probe,
    decide_many,
    is_classifier,
    pick_pooling,
)

TEXTS = ["a fine film", "I want my money back, all of it", "so so", "a " * 90]


@pytest.fixture(scope="module", params=["bert", "distilbert", "roberta", "mpnet"])
def folder(request):
    return request.getfixturevalue(f"tiny_{request.param}")


@pytest.fixture(scope="module")
def classifier(folder, tmp_path_factory):
    """The same encoder, saved as a classifier of three classes."""
    torch.manual_seed(0)
    names = {0: "bad", 1: "so so", 2: "good"}
    model = AutoModelForSequenceClassification.from_pretrained(folder, id2label=names)
    target = tmp_path_factory.mktemp("classifier")
    model.save_pretrained(target)
    AutoTokenizer.from_pretrained(folder).save_pretrained(target)
    return target


@pytest.mark.parametrize("pooling", ["cls", "mean"])
def test_few_texts_have_the_vectors_of_many(folder, pooling):
    reading = Reading(load_encoder(str(folder)), pooling, 40)
    options = {"max_length": 40, "truncation": "first+last"}
    many = embed_texts(TEXTS, reading.encoder, pooling=pooling, **options)
    np.testing.assert_allclose(reading.vectors_of_few(TEXTS), many, atol=1e-5)


def test_a_classifier_decides_as_the_whole_model_does(classifier):
    encoder = load_encoder(str(classifier))
    assert is_classifier(encoder)
    decide, classes = decide_by_classifier(str(classifier), None, Reading(encoder, "cls", 32))
    assert classes == ["bad", "so so", "good"]
    many = [text * times for times in range(1, 90) for text in TEXTS[:3]]
    np.testing.assert_allclose(decide_many(decide, many), decide(many), atol=1e-5)
    model = AutoModelForSequenceClassification.from_pretrained(classifier).eval()
    for text, own in zip(TEXTS[:3], decide(TEXTS[:3]), strict=True):
        with torch.inference_mode():
            logits = model(**encoder.tokenizer(text, return_tensors="pt")).logits[0]
        np.testing.assert_allclose(own, logits.softmax(0).numpy(), atol=1e-5)


def test_pooling_is_the_one_a_model_was_trained_with(folder, classifier):
    assert pick_pooling(load_encoder("packaged"), "packaged") == "mean"
    assert pick_pooling(load_encoder(str(folder)), str(folder)) == "mean"
    assert pick_pooling(load_encoder(str(classifier)), str(classifier)) == "cls"
    assert pick_pooling(load_encoder(str(classifier)), str(classifier), "max") == "max"
    with pytest.raises(UserError, match="no pooling 'men': give cls, mean, max or auto"):
        pick_pooling(load_encoder(str(folder)), str(folder), "men")


def test_a_sentence_encoder_names_its_pooling(tiny_bert, tmp_path):
    encoder = load_encoder(str(tiny_bert))
    encoder.model.save_pretrained(tmp_path)
    encoder.tokenizer.save_pretrained(tmp_path)
    (tmp_path / "1_Pooling").mkdir()
    config = tmp_path / "1_Pooling/config.json"
    config.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    assert pick_pooling(encoder, str(tmp_path)) == "cls"  # as it was saved until 2025
    Pooling(encoder.width, "max").save(str(config.parent))
    assert pick_pooling(encoder, str(tmp_path)) == "max"
    config.write_text("[1]")
    with pytest.raises(UserError, match=r"1_Pooling/config\.json .* is not a JSON object"):
        pick_pooling(encoder, str(tmp_path))


def test_a_classifier_of_several_labels_at_once_is_not_used(classifier):
    encoder = load_encoder(str(classifier))
    encoder.model.config.problem_type = "multi_label_classification"
    assert not is_classifier(encoder)


@pytest.mark.parametrize("sizes", [(40, 60), (3, 60), (1, 60)])
def test_a_probe_learns_groups(tiny_bert, sizes, monkeypatch):
    monkeypatch.setattr(
        "sentigeo.own_texts.decisions.LEARNT", 40
    )  # a rare group is drawn all the same
    reading = Reading(load_encoder(str(tiny_bert)), "mean", 32)
    rng = np.random.default_rng(0)
    words = ["cat dog cow", "car bus tram"]
    texts = [" ".join(rng.choice(words[g].split(), 8)) for g in (0, 1) for _ in range(sizes[g])]
    groups = np.repeat([0, 2], sizes)  # no text is of group 1
    decide = decide_by_probe(reading.vectors_of_few(texts), groups, reading)
    found = decide(["tram tram bus", "dog cow dog"])
    assert found.shape == (2, 3)
    np.testing.assert_allclose(found.sum(axis=1), 1)
    assert found[1, 0] > found[0, 0]
    assert sizes[0] < 3 or found.argmax(axis=1).tolist() == [2, 0]
    assert (found[:, 1] == 0).all()


def test_a_classifier_answers_itself_and_for_others_a_probe_does(classifier, tiny_bert):
    groups = colour_labels(np.arange(40) % 2, ["even", "odd"])
    for folder, names in ((classifier, ["bad", "so so", "good"]), (tiny_bert, ["even", "odd"])):
        reading = Reading(load_encoder(str(folder)), "mean", 32)
        vectors = reading.vectors_of_few([f"{['a', 'b'][n % 2]} {n}" for n in range(40)])
        decide, classes = choose_decision(str(folder), reading, vectors, groups)
        assert list(classes) == names
        assert decide(["a 2"]).shape == (1, len(names))
