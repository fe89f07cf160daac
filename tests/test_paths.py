from sentigeo.paths import write_text


def test_write_text_replaces_at_once(tmp_path):
    path = tmp_path / "new" / "file.txt"
    write_text(path, "one")
    write_text(path, "zwei \u20ac")
    assert path.read_text("utf-8") == "zwei \u20ac"
    assert list(path.parent.iterdir()) == [path]
