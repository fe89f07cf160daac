"""The study of deep clustering: draws of texts, trained under several conditions."""

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from sentigeo.analysis.clusters import Clusters, find_clusters
from sentigeo.cache import Store, load_array, package_versions
from sentigeo.data.text_sets import TextSet
from sentigeo.encoder.bert_layers import BERT_LIKE
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import encode_texts
from sentigeo.encoder.vectors import Kind, Vectors
from sentigeo.errors import UserError
from sentigeo.hashes import hash_code
from sentigeo.profile import Profile
from sentigeo.training.deep_clustering import Course, DeepRecipe, Draw, train_draw
from sentigeo.training.deep_encoder import check_masked_lm, mask_tokens
from sentigeo.training.loop import Texts, train_all, works_alone

COPIES = 2  # of each text, with other tokens hidden
MASKED_SHARE = 1 / 4  # of the texts of a step whose hidden tokens are guessed
MLM_PART = 1 / 3  # of the epochs, that masked-LM alone is trained
WARM_EPOCHS, WARM_RATE = 4, 2e-3  # of a new MLM head
CONDITIONS: dict[str, dict[str, Any]] = {  # what differs from both losses and balanced targets
    "kl_mlm": {},
    "kl_mlm_unbalanced": {"balance": False},
    "mlm": {"clustering": 0.0},
    "kl": {"masked": 0.0},
    "kl_unbalanced": {"masked": 0.0, "balance": False},
}


@dataclass(frozen=True)
class DeepRun:
    """A trained encoder with its clusters."""

    texts: TextSet
    draw: int  # which draw of its set the texts are
    condition: str
    course: Course
    vectors: np.ndarray  # (n, d) the texts' vectors in the end
    folder: Path
    kept: bool  # whether the folder is a checkpoint


@dataclass(frozen=True)
class DrawResult:
    """What came of a draw."""

    draw: Draw
    pretrained: Vectors  # of the encoder as it is, last layer: [CLS] and mean
    first: Clusters  # of these [CLS] vectors, by K-Means
    hidden_tokens: int  # tokens to be guessed in all copies
    head_losses: list[float]  # mean of each epoch in which a new MLM head was warmed up
    runs: list[DeepRun]  # one per condition


def prepare_draws(
    sets: Mapping[str, Sequence[TextSet]], encoder: Encoder, profile: Profile
) -> list[Draw]:
    """Tokenise every draw of some sets of texts and say how it is trained."""
    if not sets:
        return []
    check_masked_lm(encoder)
    if profile.deep_tokens > encoder.max_length:
        raise UserError(
            f"deep_tokens is {profile.deep_tokens}, but the encoder reads at most "
            f"{encoder.max_length} tokens."
        )
    pairs = [pair for texts_of_set in sets.values() for pair in enumerate(texts_of_set)]
    return [_prepare(texts, seed, encoder, profile) for seed, texts in pairs]


def _prepare(texts: TextSet, seed: int, encoder: Encoder, profile: Profile) -> Draw:
    tokens = encode_texts(texts.texts, encoder.tokenizer, profile.deep_tokens, "first")
    size, depth = profile.deep_batch_size, min(profile.deep_layers, encoder.layers)
    warming = DeepRecipe(WARM_EPOCHS, WARM_RATE, size, clustering=0.0, masked=1.0)
    both = DeepRecipe(
        profile.deep_epochs, profile.deep_learning_rate, size, 1.0, profile.deep_masked_weight,
        masked_share=MASKED_SHARE, seed=seed,
    )  # fmt: skip
    recipes = {name: replace(both, **changes) for name, changes in CONDITIONS.items()}
    recipes["mlm"] = replace(recipes["mlm"], epochs=math.ceil(MLM_PART * both.epochs))
    key = {
        "encoder": [encoder.sha256, encoder.file_sha256, encoder.revision, profile.model],
        "tokenizer": encoder.tokenizer_sha256,
        "texts": tokens.sha256,
        "settings": [len(texts.classes), depth, seed, COPIES, asdict(warming)],
        "code": hash_code(__name__),
        "versions": package_versions("torch", "transformers", "scikit-learn"),
    }
    source = profile.model, profile.model_revision
    return Draw(texts, seed, tokens, source, depth, warming, recipes, key)


def train_draws(draws: Sequence[Draw], encoder: Encoder, store: Store) -> list[DrawResult]:
    """Return what came of draws under all conditions, training what is not in the store."""
    found, jobs = [], []
    kinds: list[Kind] = [(encoder.layers, "cls"), (encoder.layers, "mean")]
    for draw in draws:
        place = draw, encoder, store
        vectors, texts = _read_texts(draw.tokens, *place, kinds)
        first = find_clusters(vectors.matrix(-1, "cls"), len(draw.texts.classes), draw.seed)
        found.append((draw, vectors, first))
        if not (works_alone() and _is_stored(draw, store)):
            masked = [mask_tokens(draw.tokens, encoder.tokenizer, seed) for seed in range(COPIES)]
            copies = [replace(one, source=_read_texts(one.source, *place)[1]) for one in masked]
            jobs.append((draw, texts, copies, first.centroids, encoder.tokenizer, store))
    train_all(train_draw, jobs, "clustering")
    return [_read_draw(*parts, store) for parts in found]


def _read_texts(
    tokens: Texts, draw: Draw, encoder: Encoder, store: Store, kinds: Sequence[Kind] = ()
) -> tuple[Vectors, Texts]:
    """Return vectors of texts, and the texts as training takes them: cut, if that is possible."""
    cut = encoder.model.config.model_type in BERT_LIKE and draw.depth < encoder.layers
    keep = [encoder.layers - draw.depth] if cut else []
    vectors, trunks = extract(tokens, encoder, store, kinds, keep)
    return vectors, next(iter(trunks.values()), tokens)


def _is_stored(draw: Draw, store: Store) -> bool:
    runs = [store.find("deep", draw.key_of(name)) for name in CONDITIONS]
    return all(runs) and store.find("deep-head", draw.key) is not None


def _read_draw(draw: Draw, pretrained: Vectors, first: Clusters, store: Store) -> DrawResult:
    head = json.loads((store.place("deep-head", draw.key) / "facts.json").read_text("utf-8"))
    runs = []
    for name in CONDITIONS:
        folder = store.place("deep", draw.key_of(name))
        course = Course(**json.loads((folder / "course.json").read_text("utf-8")))
        vectors, kept = load_array(folder / "vectors.npy"), (folder / "config.json").is_file()
        runs.append(DeepRun(draw.texts, draw.seed, name, course, vectors, folder, kept))
    return DrawResult(draw, pretrained, first, head["hidden"], head["losses"], runs)
