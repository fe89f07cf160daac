import json

import numpy as np
import pandas as pd
import pytest
from sentence_transformers.sentence_transformer.modules import Pooling

from sentigeo.encoder.encoder import load_encoder
from sentigeo.encoder.extract import embed_texts
from sentigeo.errors import UserError
from sentigeo.own_texts.read import LONGEST, Reading, is_classifier, pick_pooling, read_own_texts

TEXTS = ["one fine day", "two bad days", "three days", "four", "five", "six"]


def put(tmp_path, value, name="own.json"):
    path = tmp_path / name
    path.write_text(value if isinstance(value, str) else json.dumps(value), "utf-8")
    return str(path)


def test_a_list_of_texts(tmp_path):
    own = read_own_texts(put(tmp_path, TEXTS))
    assert own.texts == own.clean == TEXTS
    assert own.rows.tolist() == [1, 2, 3, 4, 5, 6]
    assert own.labels is None
    assert own.notes == ["Texts are taken from the field 'text'."]


def test_the_field_with_the_longest_texts_is_taken_and_named(tmp_path):
    rows = [
        {"id": f"id-{n}", "body": f"{text} " * 9, "stars": n % 3, "tags": [n]}
        for n, text in enumerate(TEXTS)
    ]
    own = read_own_texts(put(tmp_path, {"version": 2, "answers": rows}))
    assert own.notes[0] == "Texts are taken from the field 'body' of the part 'answers'."
    assert own.notes[1] == "Labels could be in stars; none are used."
    assert read_own_texts(put(tmp_path, rows), "id").texts[0] == "id-0"


def test_fields_with_a_value_of_their_own_for_each_row_are_no_labels(tmp_path):
    rows = [{"text": f"text {n}", "id": n} for n in range(30)]
    assert len(read_own_texts(put(tmp_path, rows)).notes) == 1


def test_parts_that_are_not_read_are_named(tmp_path):
    own = read_own_texts(put(tmp_path, {"good": TEXTS, "bad": TEXTS[:2], "n": 3}))
    assert own.notes[1] == "Parts that are not read: bad."


def test_halves_of_surrogates_in_labels_and_names(tmp_path):
    rows = [{"text": t, "m\ud800": f"{t[0]}\ud800"} for t in TEXTS]
    own = read_own_texts(put(tmp_path, json.dumps(rows)), label_field="m?")
    assert own.classes == ["f?", "o?", "s?", "t?"]


def test_a_field_called_text_is_preferred_to_longer_ones(tmp_path):
    rows = [{"text": text, "comment": "a very long comment"} for text in TEXTS]
    assert read_own_texts(put(tmp_path, rows)).texts == TEXTS


def test_empty_rows_are_left_out_and_counted(tmp_path):
    own = read_own_texts(put(tmp_path, [TEXTS[0], "", None, "<br />", *TEXTS]))
    assert own.rows.tolist() == [1, 5, 6, 7, 8, 9, 10]
    assert "Rows without a text are left out: 3 of 10 (2, 3, 4)." in own.notes
    assert "Repeated texts are kept: 1." in own.notes


def test_mark_up_is_kept_in_texts_but_not_read(tmp_path):
    own = read_own_texts(put(tmp_path, [*TEXTS, "A<br />B &amp; C"]))
    assert own.texts[-1] == "A<br />B &amp; C"
    assert own.clean[-1] == "A B & C"


def test_halves_of_surrogates_can_be_written(tmp_path):
    own = read_own_texts(put(tmp_path, json.dumps([*TEXTS, "broken \ud83d smile"])))
    assert own.texts[-1] == "broken ? smile"


@pytest.mark.parametrize("values", [[1, 0, 1, 0, 1, 0], [1.0, 0.0, 1, 0, 1, 0], list("101010")])
def test_labels_are_numbered_by_name(tmp_path, values):
    rows = [{"text": text, "mood": value} for text, value in zip(TEXTS, values, strict=True)]
    own = read_own_texts(put(tmp_path, rows), label_field="mood")
    assert own.classes == ["0", "1"]
    assert own.labels.tolist() == [1, 0, 1, 0, 1, 0]


def test_labels_of_left_out_rows_are_left_out(tmp_path):
    rows = [{"text": "", "mood": None}, *({"text": t, "mood": t[0]} for t in TEXTS)]
    own = read_own_texts(put(tmp_path, rows), label_field="mood")
    assert [own.classes[number] for number in own.labels] == ["o", "t", "t", "f", "f", "s"]


@pytest.mark.parametrize(
    ("value", "fields", "words"),
    [
        ([{"body": t} for t in TEXTS], ("text", ""), "has no field 'text'; its fields are body"),
        ([{"body": t} for t in TEXTS], ("", "mood"), "has no field 'mood'; its fields are body"),
        ([{"n": 1}, {"n": 2}], ("", ""), "has no field of texts; its fields are n"),
        ([{"text": "a"}, {"text": 3}], ("", ""), "'text': not a text in row 2"),
        ([{"text": "a"}, {"text": ["b"]}], ("", ""), "'text': not a text in row 2"),
        ([{"text": t} for t in TEXTS], ("text", "text"), "both the texts and their labels"),
        (["", " ", "\n"], ("", ""), "all texts are empty"),
        (["one"], ("", ""), "at least 5 different texts are needed, not 1"),
        (["same"] * 9, ("", ""), "all 9 texts are the same"),
        (["a", "b", "a", "b", "c"], ("", ""), "at least 5 different texts are needed, not 3"),
        ([*TEXTS, "x " * LONGEST], ("", ""), "more than 1,000,000 characters, so cut it into"),
        ([{"text": t, "m": "x"} for t in TEXTS], ("", "m"), "'m': 1 labels; from 2 to 20"),
        ([{"text": f"{n}", "m": n} for n in range(30)], ("", "m"), "'m': 30 labels; from 2 to 20"),
        ([{"text": t, "m": t[3:]} for t in ["", *TEXTS]], ("", "m"), "'m': no label in row 7 "),
    ],
)  # fmt: skip
def test_what_cannot_be_used_is_said_in_a_sentence(tmp_path, value, fields, words):
    with pytest.raises(UserError) as error:
        read_own_texts(put(tmp_path, value), *fields)
    assert words in str(error.value)
    assert "own.json" in str(error.value)
    assert "\n" not in str(error.value)


def test_lists_in_a_parquet_file_are_no_texts(tmp_path):
    pd.DataFrame({"text": [np.array(["a", "b"])] * 9}).to_parquet(tmp_path / "own.parquet")
    with pytest.raises(UserError, match="'text': not a text in row 1, 2, 3, 4, 5 and 4 more"):
        read_own_texts(str(tmp_path / "own.parquet"))


def test_a_folder_is_no_file(tmp_path):
    with pytest.raises(UserError, match="is a folder; give a file of texts"):
        read_own_texts(str(tmp_path))


@pytest.mark.parametrize("kind", ["bert", "distilbert", "roberta", "mpnet"])
def test_few_texts_have_the_vectors_of_many(kind, request):
    encoder = load_encoder(str(request.getfixturevalue(f"tiny_{kind}")))
    options = {"max_length": 40, "truncation": "first+last"}
    texts = [*TEXTS, "so so", "a " * 90]
    for pooling in ("cls", "mean"):
        many = embed_texts(texts, encoder, pooling=pooling, **options)
        few = Reading(encoder, pooling, 40).vectors_of_few(texts)
        np.testing.assert_allclose(few, many, atol=1e-5)


def test_pooling_is_the_one_a_model_was_trained_with(tiny_bert, bert_classifier):
    encoder, classifier = load_encoder(str(tiny_bert)), load_encoder(str(bert_classifier))
    assert pick_pooling(encoder, str(tiny_bert)) == "mean"
    assert pick_pooling(encoder, "packaged") == "mean"  # which names it
    assert pick_pooling(classifier, str(bert_classifier)) == "cls"
    assert pick_pooling(classifier, str(bert_classifier), "max") == "max"
    with pytest.raises(UserError, match="no pooling 'men': give cls, mean, max or auto"):
        pick_pooling(encoder, str(tiny_bert), "men")
    classifier.model.config.problem_type = "multi_label_classification"
    assert not is_classifier(classifier)


def test_a_sentence_encoder_names_its_pooling(tiny_bert, tmp_path):
    encoder = load_encoder(str(tiny_bert))
    (tmp_path / "config.json").write_bytes((tiny_bert / "config.json").read_bytes())
    (tmp_path / "1_Pooling").mkdir()
    config = tmp_path / "1_Pooling/config.json"
    config.write_text('{"pooling_mode_cls_token": true, "pooling_mode_mean_tokens": false}')
    assert pick_pooling(encoder, str(tmp_path)) == "cls"  # as it was saved until 2025
    Pooling(encoder.width, "max").save(str(config.parent))
    assert pick_pooling(encoder, str(tmp_path)) == "max"
    config.write_text("[1]")
    with pytest.raises(UserError, match=r"1_Pooling/config\.json .* is not a JSON object"):
        pick_pooling(encoder, str(tmp_path))
