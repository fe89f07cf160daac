import json

import pytest

from sentigeo.data.tables import read_json, read_json_lines
from sentigeo.errors import UserError


def read(tmp_path, value):
    path = tmp_path / "a.json"
    path.write_text(json.dumps(value), "utf-8-sig")
    return read_json(path)


@pytest.mark.parametrize(
    ("value", "rows"),
    [
        (["a", "b"], [{"text": "a"}, {"text": "b"}]),
        (["a", None], [{"text": "a"}, {"text": None}]),
        ([{"t": "a", "n": 1}, {"t": "b", "n": 2}], [{"t": "a", "n": 1}, {"t": "b", "n": 2}]),
        ({"x": "a", "y": "b"}, [{"key": "x", "text": "a"}, {"key": "y", "text": "b"}]),
        ({"x": {"t": "a"}, "y": {"t": "b"}}, [{"key": "x", "t": "a"}, {"key": "y", "t": "b"}]),
        ({"t": ["a", "b"], "n": [1, 2]}, [{"t": "a", "n": 1}, {"t": "b", "n": 2}]),
        ([{"id": 1, "review": {"t": "a"}}], [{"id": 1, "review.t": "a"}]),
        ([{"t": "a", "tags": ["x"]}], [{"t": "a", "tags": ["x"]}]),
    ],
)
def test_shapes(tmp_path, value, rows):
    assert read(tmp_path, value).to_dict("records") == rows


@pytest.mark.parametrize(
    ("value", "part"),
    [
        ({"made": "today", "answers": ["a", "b"]}, "answers"),
        ({"meta": {"n": 2}, "answers": {"x": "a", "y": "b"}}, "answers"),
        ({"few": ["z"], "many": ["a", "b"]}, "many"),
        ({"answers": [{"text": "a"}, {"text": "b"}]}, "answers"),
        ({"answers": {"x": {"text": "a"}, "y": {"text": "b"}}}, "answers"),
    ],
)
def test_the_largest_part_of_an_object_is_read_and_named(tmp_path, value, part):
    table = read(tmp_path, value)
    assert table["text"].tolist() == ["a", "b"]
    assert table.attrs["part"] == part


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[{"text": "a"},\n {"text": }]', "a.json, line 2: not valid JSON"),
        ('["a", 3]', "a.json, entry 2: a number, while others are a text"),
        ('["a", {"text": "b"}]', "a.json, entry 2: an object, while others are a text"),
        ('[{"text": "a"}, null]', "a.json, entry 2: null, while others are an object"),
        ('{"x": "a", "y": true}', "a.json, entry 'y': true or false, while others are a text"),
        ('{"rows": ["a", ["b"]]}', "a.json, 'rows', entry 2: a list, while others are a text"),
        ("[null, 1, 2]", "a.json, entry 2: a number where a text or an object is expected"),
        ('"a"', "a.json holds a text where texts are expected, in a list"),
        ('{"rows": [], "n": 3}', "a.json holds no rows"),
    ],
)
def test_what_is_no_table_is_named(tmp_path, text, words):
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_json(path)
    assert words in str(error.value)


def test_lines_are_texts_or_objects(tmp_path):
    path = tmp_path / "a.jsonl"
    path.write_text('"a"\n\n"b"\n')
    assert read_json_lines(path)["text"].tolist() == ["a", "b"]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('{"text": "a"}\n\n{"text"\n', "a.jsonl, line 3: not valid JSON"),
        ('{"text": "a"}\n\n"b"\n', "a.jsonl, line 3: a text, while others are an object"),
    ],
)
def test_a_bad_line_is_named(tmp_path, text, words):
    path = tmp_path / "a.jsonl"
    path.write_text(text)
    with pytest.raises(UserError) as error:
        read_json_lines(path)
    assert words in str(error.value)
