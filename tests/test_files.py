import hashlib

import numpy as np
import pytest

from sentigeo.files import hash_files, hash_json, load_array, write_text


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "rows.npy", np.array([{}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="Python objects"):
        load_array(tmp_path / "rows.npy")


def test_hashes_are_those_of_sha256():
    assert hash_json({}) == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert hash_json({"a": 1, "b": 2}) == hash_json({"b": 2, "a": 1}) != hash_json({"a": 1})
    with pytest.raises(ValueError, match="not JSON compliant"):
        hash_json(float("nan"))


def test_write_text_replaces_at_once(tmp_path):
    path = tmp_path / "new" / "file.txt"
    write_text(path, "one")
    write_text(path, "zwei \u20ac")
    assert path.read_text("utf-8") == "zwei \u20ac"
    assert list(path.parent.iterdir()) == [path]


def test_files_of_a_folder_are_hashed_by_their_place_in_it(tmp_path):
    write_text(tmp_path / "a" / "one.txt", "1")
    write_text(tmp_path / "two.csv", "2")
    one = hashlib.sha256(b"1").hexdigest()
    assert hash_files(tmp_path, "**/*.txt") == {"a/one.txt": one}
    assert hash_files(tmp_path, "**/*").keys() == {"a/one.txt", "two.csv"}
