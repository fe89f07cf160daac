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
Depth = Annotated[float, Field(ge=1, multiple_of=0.5)]


class Profile(BaseModel):
    """Everything a run depends on apart from the code.

    Attributes:
        name: Name of the profile file.
        changes: Keys that were changed for this run, with their new values.
        file: The file it was loaded from, if that is not one of `profiles/`.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, protected_namespaces=())

    name: str
    changes: dict[str, Any]
    file: str | None

    model: str = Field(description="`packaged`, a hub id, or the path of a model folder")
    model_revision: str | None = Field(description="commit of the hub model; null: the newest")
    reviews: str = Field(description="`packaged`, a hub data set id, or the path of a file")
    reviews_revision: str | None = Field(description="commit of the data set; null: the newest")
    text_column: str = Field(description="column that holds the text")
    label_column: str = Field(description="column that holds the label")
    labels: dict[str, str] = Field(
        description="class name of each label value, in class order; empty takes every value found"
    )
    language: str = Field(
        pattern="^[a-z]{2,3}$",
        description="of the reviews; what was handcrafted in English is left out in any other",
    )
    draw_per_label: int = Field(ge=10, description="reviews drawn from each class")
    draw_seed: int = Field(ge=0, description="random state of the draw and of the split")
    validation_share: Rate = Field(description="share of the drawn reviews kept for validation")
    contrastive_samples: int = Field(
        ge=0, multiple_of=2, description="handcrafted samples put in front of the drawn reviews"
    )
    test_reviews: Positive = Field(description="reviews of the pool that every model is scored on")

    max_length: int = Field(ge=8, description="token budget of a text")
    truncation: Literal["first", "first+last"] = Field(description="what is kept of a longer text")
    trained_layers: Depth = Field(
        description="layers trained with and without contrastive samples; 1.5 stands for the last "
        "layer and the feed-forward half of the one below"
    )
    epochs: Positive = Field(description="times every text is seen in that comparison")
    token_share: float = Field(
        gt=0, le=1, description="share of a text's tokens that a training step above a trunk sees"
    )
    headline_seeds: Positive = Field(description="seeds of that comparison")
    doses: list[Annotated[int, Field(ge=0, multiple_of=2)]] = Field(
        min_length=1, description="handcrafted samples of each step of the dose-response"
    )
    dose_layers: Depth = Field(description="layers trained in the dose-response")
    dose_epochs: Positive = Field(description="times every text is seen in the dose-response")
    batch_size: Positive = Field(description="texts of a training step")
    learning_rate: Rate = Field(description="for top layers")
    head_learning_rate: Rate = Field(description="for the classification head alone")
    all_learning_rate: Rate = Field(description="for all layers")
    depth_reviews: int = Field(
        ge=0, description="reviews on which head, top and all layers are compared; 0 takes all"
    )
    depth_batch_size: Positive = Field(description="texts of a training step there")
    depth_test_reviews: int = Field(ge=0, description="test reviews there; 0 takes all")

    long_reviews: Positive = Field(description="reviews beyond the encoder's limit to compare on")
    perplexity: float = Field(ge=1, description="neighbours that t-SNE takes into account")
    map_reviews: int = Field(ge=20, description="training reviews that maps are fitted on, at most")
    map_seeds: Positive = Field(description="seeds that t-SNE and UMAP maps are drawn with")
    clusters: int = Field(ge=0, description="clusters of K-Means; 0: as many as there are classes")
    shot_draws: Positive = Field(description="how often a few labelled reviews are drawn")
    sentences: Positive = Field(description="sentences whose attention is measured")
    explained: Positive = Field(description="of these, sentences whose decision is explained")

    deep_sets: list[Annotated[str, Field(min_length=1)]] = Field(
        min_length=1,
        description="texts for deep clustering: `rotten_tomatoes`, `bbc_news`, `reviews`, "
        "a file, or a hub data set",
    )
    deep_texts: int = Field(ge=10, description="texts of a draw, equally many of each class")
    deep_tokens: int = Field(ge=8, description="token budget of a text there")
    deep_layers: Positive = Field(description="layers trained there")
    deep_epochs: Positive = Field(description="times every text is seen there")
    deep_batch_size: Positive = Field(description="texts of a training step there")
    deep_learning_rate: Rate = Field(description="learning rate there")
    deep_masked_weight: float = Field(gt=0, description="weight of the masked-LM loss there")
    deep_draws: Positive = Field(description="how many times texts are drawn there")

    seeds: Positive = Field(description="how many times a random step is repeated")
    bootstrap_samples: int = Field(ge=100, description="resamples behind each bootstrap interval")
    notebook_timeout: Positive = Field(description="seconds a single notebook may take")

    @field_validator("model", "reviews", "text_column", "label_column")
    @classmethod
    def _not_blank(cls, value: str) -> str:
        if not value.strip():
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
        text = json.dumps(self.settings)
        return f"{self.name}-{hashlib.sha256(text.encode()).hexdigest()[:8]}"

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
    values = _read(PROFILES / f"{PUBLISHED_PROFILE}.yaml") | _read(path)
    shipped = path.parent.resolve() == PROFILES.resolve()
    file = None if shipped else str(path.resolve())
    _build(path.stem, file, values, {}, f"profiles/{path.name}" if shipped else str(path))
    changes = {
        key: value
        for key, value in overrides.items()
        if key not in values or json.dumps(values[key]) != json.dumps(value)
    }
    return _build(path.stem, file, values, changes, "the overrides")


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
            raise UserError(
                f"Cannot read the value of the override {pair!r}: put quotes around key=value if "
                "the value has spaces."
            ) from None
    return overrides


def _find(name: str) -> Path:
    is_file = name.endswith((".yaml", ".yml"))
    path = Path(name).expanduser() if is_file else PROFILES / f"{name}.yaml"
    if not path.is_file():
        known = ", ".join(sorted(p.stem for p in PROFILES.glob("*.yaml")))
        raise UserError(
            f"There is no profile {name!r}: use one of {known}, or the path of a YAML file."
        )
    return path


def _read(path: Path) -> dict[str, Any]:
    try:
        values = yaml.safe_load(path.read_text("utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise UserError(f"{path} is not valid YAML: {' '.join(str(error).split())}") from None
    if not isinstance(values, dict):
        raise UserError(f"{path} must hold 'key: value' lines.")
    return values


def _build(
    name: str, file: str | None, values: dict[str, Any], changes: dict[str, Any], where: str
) -> Profile:
    settings = {**values, **changes}
    for key in RESERVED & settings.keys():
        raise UserError(f"The key '{key}' in {where} is not a profile key.")
    try:
        return Profile(name=name, changes=changes, file=file, **settings)
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
