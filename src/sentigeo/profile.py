"""What a run is: one frozen, validated object, read from `profiles/*.yaml`."""

import hashlib
import json
import shlex
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, ValidationInfo, field_validator

from sentigeo.errors import UserError
from sentigeo.paths import PROFILES, PUBLISHED_PROFILE

PACKAGED = "packaged"
ENGLISH = "en"
BUILT_IN_SETS = ("rotten_tomatoes", "bbc_news", "reviews")  # of texts, for deep clustering
RESERVED = {"name", "changes", "file"}  # what a profile file cannot set
Rate = Annotated[float, Field(gt=0, lt=1)]
Positive = Annotated[int, Field(gt=0)]
Count = Annotated[int, Field(ge=0)]
Even = Annotated[int, Field(ge=0, multiple_of=2)]
Tokens = Annotated[int, Field(ge=8)]


class Profile(BaseModel):
    """Everything a run depends on apart from the code."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    name: str  # of the profile file
    changes: dict[str, Any]  # keys that were changed for this run, with their new values
    file: str | None  # that it was loaded from, if that is not one of `profiles/`

    model: str  # `packaged`, a hub id, or the path of a model folder
    model_revision: str | None  # commit of the hub model; null: the newest
    reviews: str  # `packaged`, a hub data set id, or the path of a file
    reviews_revision: str | None  # commit of the data set; null: the newest
    text_column: str  # that holds the text
    label_column: str  # that holds the label
    # Class name of each label value, in class order; empty takes every value found.
    labels: dict[str, str]
    # Language of the reviews; what was handcrafted in English is left out in any other.
    language: Annotated[str, Field(pattern="^[a-z]{2,3}$")]
    draw_per_label: Annotated[int, Field(ge=10)]  # reviews drawn from each class
    draw_seed: Count  # random state of the draw and of the split
    validation_share: Rate  # share of the drawn reviews kept for validation
    # Handcrafted samples put in front of the drawn reviews.
    contrastive_samples: Annotated[Even, Field(gt=0)]
    # Pairs of one's own to be scored: the path of a file or a hub data set id; null: none.
    contrast_pairs: str | None
    test_reviews: Positive  # reviews of the pool that every model is scored on
    new_film_reviews: Even  # those of films that no training review is about, with further ones

    max_length: Tokens  # token budget of a text
    truncation: Literal["first", "first+last"]  # what is kept of a longer text
    # Layers of the encoder that a classifier has, the lowest; null: all.
    kept_layers: Positive | None
    trained_layers: Positive  # of these, the highest, with and without contrastive samples
    epochs: Positive  # times every text is seen in that comparison
    headline_seeds: Positive  # seeds of each of its arms
    batch_size: Positive  # texts of a training step
    learning_rate: Rate  # for top layers
    all_learning_rate: Rate  # for all layers
    head_learning_rate: Rate  # for the classification head alone
    head_epochs: Positive  # times every text is seen there, until it no longer improves
    # Contrastive samples of each step of the dose-response; the most are also an arm.
    doses: Annotated[list[Annotated[Even, Field(gt=0)]], Field(min_length=1)]
    dose_draws: Annotated[int, Field(ge=2)]  # how often samples are drawn for each of these doses
    reruns: Annotated[int, Field(ge=2)]  # times that the source's experiment is repeated
    # Reviews of training, and of test, that an untrained encoder reads.
    untrained_reviews: Annotated[int, Field(ge=20)]

    long_reviews: Positive  # reviews beyond the encoder's limit to compare on
    perplexity: Annotated[float, Field(ge=1)]  # neighbours that t-SNE takes into account
    map_reviews: Annotated[int, Field(ge=20)]  # training reviews that maps are fitted on, at most
    map_seeds: Positive  # seeds that t-SNE and UMAP maps are drawn with
    clusters: Count  # of K-Means; 0: as many as there are classes
    shot_draws: Positive  # how often a few labelled reviews are drawn
    sentences: Positive  # whose attention is measured
    explained: Positive  # of these, sentences whose decision is explained

    # Texts for deep clustering: `rotten_tomatoes`, `bbc_news`, `reviews`, a file, a hub data set.
    deep_sets: Annotated[list[Annotated[str, Field(min_length=1)]], Field(min_length=1)]
    deep_texts: Annotated[int, Field(ge=10)]  # texts of a draw, equally many of each class
    deep_tokens: Tokens  # token budget of a text there
    deep_layers: Positive  # layers trained there
    deep_epochs: Positive  # times every text is seen there
    deep_batch_size: Positive  # texts of a training step there
    deep_learning_rate: Rate  # learning rate there
    deep_masked_weight: Annotated[float, Field(gt=0)]  # weight of the masked-LM loss there
    deep_draws: Positive  # how many times texts are drawn there

    seeds: Positive  # how many times a random step is repeated; as many models are kept
    bootstrap_samples: Annotated[int, Field(ge=100)]  # resamples behind each bootstrap interval
    notebook_timeout: Positive  # seconds a single notebook may take

    @field_validator("model", "reviews", "text_column", "label_column", "contrast_pairs")
    @classmethod
    def _not_blank(cls, value: str | None) -> str | None:
        if value is not None and not value.strip():
            raise ValueError("must not be empty")
        return value

    @field_validator("clusters")
    @classmethod
    def _more_than_one(cls, value: int) -> int:
        if value == 1:
            raise ValueError("must be 2 or more, or 0 for as many as there are classes")
        return value

    @field_validator("validation_share")
    @classmethod
    def _both_sides(cls, value: float, info: ValidationInfo) -> float:
        rows = info.data.get("draw_per_label")
        if rows and not 1 <= rows * value <= rows - 1:
            raise ValueError(f"leaves no review of a class on one side of {rows}")
        return value

    @field_validator("labels", mode="before")
    @classmethod
    def _label_names(cls, value: Any) -> Any:
        """Take `1: negative` for `"1": negative`, as a person means it."""
        return {str(key): name for key, name in value.items()} if isinstance(value, dict) else value

    @field_validator("labels")
    @classmethod
    def _two_classes(cls, value: dict[str, str]) -> dict[str, str]:
        if len(value) == 1 or len(set(value.values())) < len(value):
            raise ValueError("needs at least two label values with different class names")
        return value

    @property
    def run_name(self) -> str:
        """The name of a shipped profile; with a short hash of all settings for any other run."""
        if self.file is None and not self.changes:
            return self.name
        digest = hashlib.sha256(json.dumps(self.settings).encode()).hexdigest()
        return f"{self.name}-{digest[:8]}"

    @property
    def settings(self) -> dict[str, Any]:
        """The profile's keys and values without its name."""
        return self.model_dump(exclude=RESERVED)


def load_profile(name: str, /, **overrides: Any) -> Profile:
    """Load a profile by name or from a YAML file, with some keys changed.

    A file says only what differs from the published profile, `profiles/laptop.yaml`. An unknown
    key, a wrong type or an impossible value is an error that names the key and the file.
    """
    path = _find(name)
    shipped = path.parent.resolve() == PROFILES.resolve()
    origin = {"name": path.stem, "file": None if shipped else str(path.resolve())}
    values = _read(PROFILES / f"{PUBLISHED_PROFILE}.yaml") | _read(path)
    _build(f"profiles/{path.name}" if shipped else str(path), values, changes={}, **origin)
    changes = {
        key: value
        for key, value in overrides.items()
        if key not in values or json.dumps(values[key]) != json.dumps(value)
    }
    return _build("the overrides", values | changes, changes=changes, **origin)


def parse_overrides(text: str) -> dict[str, Any]:
    """Turn `key=value` words into overrides; values are read as YAML (`5`, `0.2`, `null`, text).

    Quotes keep a value with spaces together, as in a shell: `"labels={bad: negative}"`.
    """
    overrides: dict[str, Any] = {}
    try:
        pairs = shlex.split(text)
    except ValueError:
        raise UserError(f"Cannot read the overrides {text!r}: a quote is not closed.") from None
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key:
            raise UserError(f"Cannot read the override {pair!r}: write it as key=value.")
        try:
            overrides[key] = yaml.safe_load(value)
        except yaml.YAMLError:
            advice = "put quotes around key=value if the value has spaces"
            raise UserError(f"Cannot read the value of the override {pair!r}: {advice}.") from None
    return overrides


def _find(name: str) -> Path:
    is_file = name.endswith((".yaml", ".yml"))
    path = Path(name).expanduser() if is_file else PROFILES / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.yaml")))
        use = f"use one of {known}, or the path of a YAML file"
        raise UserError(f"There is no profile {name!r}: {use}.")
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path} must hold 'key: value' lines.")
    return values


def _build(where: str, settings: dict[str, Any], **origin: Any) -> Profile:
    for key in RESERVED & settings.keys():
        raise UserError(f"The key '{key}' in {where} is not a profile key.")
    try:
        return Profile(**origin, **settings)
    except ValidationError as error:
        raise UserError(_sentence(error, where)) from None


def _sentence(error: ValidationError, where: str) -> str:
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        known = sorted(Profile.model_fields.keys() - RESERVED)
        close = get_close_matches(key, known, n=1)
        hint = f"did you mean '{close[0]}'?" if close else f"known keys are {', '.join(known)}."
        return f"Unknown key '{key}' in {where}; {hint}"
    if first["type"] == "missing":
        return f"The key '{key}' is missing in {where}."
    problem = first["msg"].removeprefix("Value error, ")
    problem = problem[0].lower() + problem[1:]
    return f"The key '{key}' in {where} has an impossible value ({first['input']!r}): {problem}."
