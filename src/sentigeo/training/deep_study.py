"""The study of deep clustering: several draws of texts, several conditions each."""

import copy
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from accelerate import Accelerator
from safetensors.torch import load_file, save_file

from sentigeo.analysis.clusters import Clusters, find_clusters
from sentigeo.cache import Store, package_versions
from sentigeo.code_hash import hash_code
from sentigeo.cores import run_in_processes
from sentigeo.data.text_sets import TextSet
from sentigeo.encoder.bert_layers import BERT_LIKE
from sentigeo.encoder.encoder import Encoder, load_encoder
from sentigeo.encoder.extract import extract, one_thread
from sentigeo.encoder.tokens import TokenIds, encode_texts
from sentigeo.encoder.trunk import Trunk
from sentigeo.encoder.vectors import Kind, Vectors
from sentigeo.errors import UserError
from sentigeo.files import load_array, write_text
from sentigeo.profile import Profile
from sentigeo.progress import track
from sentigeo.training.deep_clustering import (
    Course,
    DeepRecipe,
    embed_all,
    train_clusters,
    warm_head,
)
from sentigeo.training.deep_encoder import (
    DeepEncoder,
    MaskedTexts,
    TopDeepEncoder,
    check_masked_lm,
    load_masked_lm,
    mask_tokens,
)
from sentigeo.training.loop import obtain

HEAD = "head.safetensors"
KEPT = "kl_mlm"  # the run whose encoder is kept
COPIES = 2  # of each text, with other tokens hidden
MASKED_SHARE = 1 / 4  # of the texts of a step whose hidden tokens are guessed
WARM_EPOCHS, WARM_RATE = 4, 2e-3  # of a new MLM head


@dataclass(frozen=True)
class Condition:
    """Which losses a condition has, and whether targets are divided by the size of clusters."""

    clustering: bool = True
    masked: bool = False
    balance: bool = True
    part: float = 1.0  # of the epochs, that is trained


CONDITIONS = {
    "kl_mlm": Condition(masked=True),
    "kl_mlm_unbalanced": Condition(masked=True, balance=False),
    "mlm": Condition(clustering=False, masked=True, part=1 / 3),
    "kl": Condition(),
    "kl_unbalanced": Condition(balance=False),
}


@dataclass(frozen=True)
class Draw:
    """Texts to be clustered, and what training them depends on."""

    texts: TextSet  # training never sees their labels
    seed: int  # draws the order of texts and K-Means; the first draw keeps an encoder
    tokens: TokenIds
    depth: int  # layers that are trained
    warming: DeepRecipe  # of a new MLM head
    recipes: dict[str, DeepRecipe]  # by condition
    key: dict[str, Any]  # all that the results depend on, recipes apart

    def key_of(self, condition: str) -> dict[str, Any]:
        """Return what a run depends on."""
        return {**self.key, "recipe": asdict(self.recipes[condition])}


@dataclass(frozen=True)
class DeepRun:
    """A trained encoder with its clusters."""

    texts: TextSet
    draw: int  # which draw of its set the texts are
    condition: str
    course: Course
    vectors: np.ndarray  # (n, d) the texts' vectors in the end
    folder: Path  # a checkpoint if the run's encoder was kept

    @property
    def kept(self) -> bool:
        """Whether the folder is a checkpoint."""
        return (self.folder / "config.json").is_file()


@dataclass(frozen=True)
class DrawResult:
    """What came of a draw."""

    draw: Draw
    pretrained: Vectors  # the last layer's [CLS] and mean vectors of the encoder as it is
    first: Clusters  # of these [CLS] vectors, by K-Means
    hidden_tokens: int  # tokens to be guessed in all copies
    head_losses: list[float]  # mean of each epoch in which a new MLM head was warmed up
    runs: list[DeepRun]  # one per condition


def prepare_draws(
    sets: Mapping[str, Sequence[TextSet]], encoder: Encoder, profile: Profile
) -> list[Draw]:
    """Prepare every draw of some sets of texts."""
    pairs = [pair for texts_of_set in sets.values() for pair in enumerate(texts_of_set)]
    return [prepare_draw(texts, seed, encoder, profile) for seed, texts in pairs]


def prepare_draw(texts: TextSet, seed: int, encoder: Encoder, profile: Profile) -> Draw:
    """Tokenise a draw of texts and say how it is trained."""
    check_masked_lm(encoder)
    if profile.deep_tokens > encoder.max_length:
        raise UserError(
            f"deep_tokens is {profile.deep_tokens}, but the encoder reads at most "
            f"{encoder.max_length} tokens."
        )
    tokens = encode_texts(texts.texts, encoder.tokenizer, profile.deep_tokens, "first")
    depth = min(profile.deep_layers, encoder.layers)
    size = profile.deep_batch_size
    warming = DeepRecipe(WARM_EPOCHS, WARM_RATE, size, clustering=0.0, masked=1.0)
    key = {
        "encoder": [encoder.sha256, encoder.file_sha256, encoder.revision, profile.model],
        "tokenizer": encoder.tokenizer_sha256,
        "texts": tokens.sha256,
        "settings": [len(texts.classes), depth, seed, COPIES, asdict(warming)],
        "code": hash_code(__name__),
        "versions": package_versions("torch", "transformers", "scikit-learn"),
    }
    recipes = {name: _recipe(condition, seed, profile) for name, condition in CONDITIONS.items()}
    return Draw(texts, seed, tokens, depth, warming, recipes, key)


def train_draws(
    draws: Sequence[Draw], encoder: Encoder, profile: Profile, store: Store
) -> list[DrawResult]:
    """Return what came of draws under all conditions, training what is not in the store.

    On a CPU draws train side by side, each in a process with one thread; several processes of
    `accelerate launch` train every run together.
    """
    accelerator = Accelerator()
    jobs = [(draw, profile.model, profile.model_revision, store.root) for draw in draws]
    if accelerator.num_processes > 1 or accelerator.device.type != "cpu":
        for job in track(jobs, "clustering"):
            train_draw(*job)
    else:
        missing = [job for job in jobs if not _is_stored(job[0], store)]
        list(run_in_processes(train_draw, missing, "clustering"))
    return [_read_draw(draw, encoder, store) for draw in draws]


def train_draw(draw: Draw, model: str, revision: str | None, root: Path) -> None:
    """Train a draw, from an encoder of the hub or a folder, under every missing condition."""
    encoder, store = load_encoder(model, revision), Store(root)
    with one_thread(Accelerator().device):
        vectors, texts = _read_texts(draw, encoder, store)
        copies = _hide_tokens(draw, encoder, store)
        loaded, new = load_masked_lm(model, revision)
        kind = TopDeepEncoder if _kept_layers(draw, encoder) else DeepEncoder
        first = _find_first(draw, vectors).centroids
        body = kind(loaded, draw.depth, first, copies[0].words)
        head = obtain(store, "deep-head", draw.key, partial(_fill_head, draw, body, copies, new))
        body.load_state_dict(load_file(head / HEAD), strict=False)
        for name in CONDITIONS:
            fill = partial(_fill, draw, name, body, texts, copies, encoder)
            obtain(store, "deep", draw.key_of(name), fill)


def _is_stored(draw: Draw, store: Store) -> bool:
    runs = [store.find("deep", draw.key_of(name)) for name in CONDITIONS]
    return all(runs) and store.find("deep-head", draw.key) is not None


def _recipe(condition: Condition, seed: int, profile: Profile) -> DeepRecipe:
    return DeepRecipe(
        epochs=math.ceil(condition.part * profile.deep_epochs),
        learning_rate=profile.deep_learning_rate,
        batch_size=profile.deep_batch_size,
        clustering=float(condition.clustering),
        masked=profile.deep_masked_weight * condition.masked,
        balance=condition.balance,
        masked_share=MASKED_SHARE,
        seed=seed,
    )


def _kept_layers(draw: Draw, encoder: Encoder) -> list[int]:
    """Return the layer that training starts from, if the encoder can be cut there."""
    cut = encoder.model.config.model_type in BERT_LIKE and draw.depth < encoder.layers
    return [encoder.layers - draw.depth] if cut else []


def _read_texts(draw: Draw, encoder: Encoder, store: Store) -> tuple[Vectors, TokenIds | Trunk]:
    """Return the texts' vectors, and the texts as training takes them."""
    kinds: list[Kind] = [(encoder.layers, "cls"), (encoder.layers, "mean")]
    vectors, trunks = extract(draw.tokens, encoder, store, kinds, _kept_layers(draw, encoder))
    return vectors, next(iter(trunks.values()), draw.tokens)


def _hide_tokens(draw: Draw, encoder: Encoder, store: Store) -> list[MaskedTexts]:
    """Return the texts with hidden tokens, as training takes them."""
    found = [mask_tokens(draw.tokens, encoder.tokenizer, seed) for seed in range(COPIES)]
    for layer in _kept_layers(draw, encoder):
        read = partial(extract, encoder=encoder, store=store, kinds=[], keep=[layer])
        found = [replace(masked, source=read(masked.source)[1][layer]) for masked in found]
    return found


def _find_first(draw: Draw, vectors: Vectors) -> Clusters:
    return find_clusters(vectors.matrix(-1, "cls"), len(draw.texts.classes), draw.seed)


def _fill_head(
    draw: Draw, body: DeepEncoder, copies: list[MaskedTexts], new: bool, _: Path, folder: Path
) -> None:
    """Warm up the MLM head if it is new, and write it into a folder."""
    losses = warm_head(body, copies, draw.warming) if new else []
    head = body.train_parts({"head"}) if new else {}
    save_file({name: weight.detach().cpu() for name, weight in head.items()}, folder / HEAD)
    write_text(folder / "losses.json", json.dumps(losses))


def _fill(
    draw: Draw,
    name: str,
    base: DeepEncoder,
    texts: TokenIds | Trunk,
    copies: list[MaskedTexts],
    encoder: Encoder,
    state: Path,
    folder: Path,
) -> None:
    """Train a run and write what came of it into a folder."""
    body = copy.deepcopy(base)
    course = train_clusters(body, texts, copies, draw.recipes[name], state)
    np.save(folder / "vectors.npy", embed_all(body, texts).cpu().numpy(), allow_pickle=False)
    write_text(folder / "course.json", json.dumps(vars(course)))
    if name == KEPT and draw.seed == 0:
        body.model.base_model.save_pretrained(folder)
        encoder.tokenizer.save_pretrained(folder)
        centroids = body.centroids.detach().cpu().numpy()
        np.save(folder / "centroids.npy", centroids, allow_pickle=False)


def _read_draw(draw: Draw, encoder: Encoder, store: Store) -> DrawResult:
    vectors, _ = _read_texts(draw, encoder, store)
    masked = [mask_tokens(draw.tokens, encoder.tokenizer, seed) for seed in range(COPIES)]
    losses = json.loads((store.place("deep-head", draw.key) / "losses.json").read_text("utf-8"))
    runs = []
    for name in CONDITIONS:
        folder = store.place("deep", draw.key_of(name))
        course = Course(**json.loads((folder / "course.json").read_text("utf-8")))
        final = load_array(folder / "vectors.npy")
        runs.append(DeepRun(draw.texts, draw.seed, name, course, final, folder))
    hidden = sum(len(one.places) for one in masked)
    return DrawResult(draw, vectors, _find_first(draw, vectors), hidden, losses, runs)
