from helpers import write_rows

from benchmarks.recipes import Trial, compare_recipes
from sentigeo.profile import load_profile


def test_recipes_are_compared_on_validation(tiny_bert, tmp_path, monkeypatch):
    monkeypatch.setenv("LOKY_MAX_CPU_COUNT", "1")
    monkeypatch.setenv("SENTIGEO_CACHE", str(tmp_path / "cache"))
    rows = [
        {"text": f"{word} film, number {number}", "label": label}
        for number in range(40)
        for word, label in (("good", "yes"), ("bad", "no"))
    ]
    profile = load_profile(
        "quick", reviews=str(write_rows(tmp_path / "own.json", rows)), model=str(tiny_bert),
        labels={"no": "negative", "yes": "positive"}, max_length=32, draw_per_label=20,
        test_reviews=10,
    )  # fmt: skip
    trials = [Trial(2, 1, "cls", 1, 1e-2, 2), Trial(2, 1, "mean", 2, 1e-2, 1)]
    found = compare_recipes(profile, trials)
    assert found["accuracy"].is_monotonic_decreasing
    assert found.set_index("pooling")["seeds"].to_dict() == {"cls": 2, "mean": 1}
    assert found["accuracy"].between(0, 1).all()
    assert (found["loss"] > 0).all()
