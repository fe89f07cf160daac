import pytest
from helpers import change_profile
from pydantic import ValidationError

from sentigeo import profile as profile_module
from sentigeo.errors import UserError
from sentigeo.profile import load_profile, parse_overrides


@pytest.mark.parametrize("name", ["quick", "laptop", "paper"])
def test_shipped_profiles_are_valid(name):
    assert load_profile(name).run_name == name


def test_laptop_is_the_studys_draw():
    profile = load_profile("laptop")
    assert (profile.draw_per_label, profile.draw_seed, profile.contrastive_samples) == (2500, 42, 8)
    assert profile.validation_share == 0.2
    assert profile.test_reviews >= 2000
    assert profile.seeds >= 3


def test_profile_is_frozen(quick):
    with pytest.raises(ValidationError):
        quick.seeds = 7


def test_overrides_change_values_and_run_name():
    changed = load_profile("quick", seeds=7)
    assert changed.seeds == 7
    assert changed.changes == {"seeds": 7}
    assert changed.run_name.startswith("quick-")
    assert changed.run_name == load_profile("quick", seeds=7).run_name
    assert changed.run_name != load_profile("quick", seeds=8).run_name


def test_override_with_the_same_value_is_no_change(quick):
    assert load_profile("quick", seeds=quick.seeds).run_name == "quick"


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"sedes": 3}, ["Unknown key 'sedes'", "quick.yaml"]),
        ({"seeds": "three"}, ["'seeds'", "quick.yaml"]),
        ({"seeds": True}, ["'seeds'", "quick.yaml"]),
        ({"clusters": 1}, ["'clusters'", "quick.yaml", "2 or more"]),
        ({"seeds": 0}, ["'seeds'", "quick.yaml", "greater than 0"]),
        ({"validation_share": 1.0}, ["'validation_share'", "quick.yaml", "less than 1"]),
        ({"model": " "}, ["'model'", "quick.yaml", "must not be empty"]),
        ({"contrast_pairs": ""}, ["'contrast_pairs'", "quick.yaml", "must not be empty"]),
        ({"labels": {"1": "positive"}}, ["'labels'", "quick.yaml", "at least two"]),
        ({"name": "x"}, ["'name'", "quick.yaml"]),
        ({"doses": [0, 8]}, ["'doses.0'", "quick.yaml", "greater than 0"]),
        ({"doses": []}, ["'doses'", "quick.yaml", "at least 1"]),
        ({"dose_draws": 1}, ["'dose_draws'", "quick.yaml", "greater than or equal to 2"]),
        ({"new_film_reviews": 7}, ["'new_film_reviews'", "quick.yaml", "multiple of 2"]),
        ({"trained_layers": 1.5}, ["'trained_layers'", "quick.yaml", "valid integer"]),
        ({"contrastive_samples": 7}, ["'contrastive_samples'", "quick.yaml", "multiple of 2"]),
        ({"draw_per_label": 10, "validation_share": 0.05}, ["'validation_share'", "quick.yaml"]),
    ],
)
def test_bad_file_names_key_and_file(profile_folder, values, words):
    path = change_profile(profile_folder, **values)
    for source in ("quick", str(path)):
        with pytest.raises(UserError) as error:
            load_profile(source)
        assert all(word in str(error.value) for word in words), str(error.value)
        assert "\n" not in str(error.value)


def test_a_file_says_only_what_differs_from_the_published_profile(profile_folder):
    path = profile_folder / "quick.yaml"
    path.write_text("seeds: 4\n")
    found, laptop = load_profile(str(path)).settings, load_profile("laptop").settings
    assert {key: own for key, own in found.items() if own != laptop[key]} == {"seeds": 4}


def test_missing_key_is_named(profile_folder):
    path = profile_folder / "laptop.yaml"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if not line.startswith("seeds")))
    with pytest.raises(UserError, match=r"'seeds' is missing in .*laptop\.yaml"):
        load_profile("laptop")


@pytest.mark.parametrize("overrides", [{"sedes": 1}, {"seeds": "x"}, {"seeds": -1}, {"name": 1},
                                       {"language": "English"}])  # fmt: skip
def test_bad_override_names_the_overrides(overrides):
    with pytest.raises(UserError, match=f"'{next(iter(overrides))}' in the overrides"):
        load_profile("quick", **overrides)


@pytest.mark.parametrize("text", ["a: [", "- 1\n- 2", ""])
def test_file_that_is_no_mapping(tmp_path, text):
    path = tmp_path / "mine.yaml"
    path.write_text(text)
    with pytest.raises(UserError, match=r"mine\.yaml"):
        load_profile(str(path))


def test_unknown_profile_lists_the_known_ones():
    with pytest.raises(UserError, match="laptop, paper, quick"):
        load_profile("desktop")


def test_parse_overrides():
    words = "seeds=5 model=a/b validation_share=0.5 model_revision=null"
    assert parse_overrides(words) == {
        "seeds": 5,
        "model": "a/b",
        "validation_share": 0.5,
        "model_revision": None,
    }


def test_quotes_keep_a_value_together():
    text = """reviews='my file.csv' "labels={bad: negative, good: positive}" """
    assert parse_overrides(text) == {
        "reviews": "my file.csv",
        "labels": {"bad": "negative", "good": "positive"},
    }


@pytest.mark.parametrize("text", ["seeds", "=5", "labels={", "model='a b"])
def test_unreadable_override(text):
    with pytest.raises(UserError, match="override"):
        parse_overrides(text)


def test_order_of_labels_is_a_change():
    swapped = load_profile("quick", labels={"1": "positive", "0": "negative"})
    assert list(swapped.labels) == ["1", "0"]
    assert swapped.run_name != "quick"


def test_own_file_never_has_the_name_of_a_shipped_profile(tmp_path):
    text = (profile_module.PROFILES / "laptop.yaml").read_text()
    for folder, changed in {"a": text, "b": text.replace("seeds: 5", "seeds: 6")}.items():
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "laptop.yaml").write_text(changed)
    names = {load_profile(str(tmp_path / folder / "laptop.yaml")).run_name for folder in "ab"}
    assert len(names) == 2
    assert "laptop" not in names
