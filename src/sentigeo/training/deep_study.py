"""The study of deep clustering: one draw of texts, several conditions."""

import copy
import json
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file
from threadpoolctl import threadpool_limits

from sentigeo.analysis.clusters import Clusters, find_clusters
from sentigeo.cache import Store, package_versions
from sentigeo.code_hash import hash_code
from sentigeo.data.text_sets import TextSet
from sentigeo.encoder.bert_layers import BERT_LIKE
from sentigeo.encoder.encoder import Encoder
from sentigeo.encoder.extract import extract
from sentigeo.encoder.tokens import TokenIds, encode_texts
from sentigeo.encoder.trunk import Trunk
from sentigeo.encoder.vectors import Kind, Pooling, Vectors
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
from sentigeo.training.state import forget_state, obtain


@dataclass(frozen=True)
class Condition:
    """What sets a condition apart.

    Attributes:
        clustering: Whether there is a clustering loss.
        masked: Whether there is a masked-language loss.
        balance: Whether targets are divided by the size of clusters.
        part: Of the epochs, how many are trained.
    """

    clustering: bool = True
    masked: bool = False
    balance: bool = True
    part: float = 1.0


CONDITIONS = {
    "kl_mlm": Condition(masked=True),
    "kl_mlm_unbalanced": Condition(masked=True, balance=False),
    "mlm": Condition(clustering=False, masked=True, part=1 / 3),
    "kl": Condition(),
    "kl_unbalanced": Condition(balance=False),
}


HEAD = "head.safetensors"


KEPT = "kl_mlm"  # the run whose encoder is kept


COPIES = 2  # of each text, with other tokens hidden


MASKED_SHARE = 1 / 4  # of the texts of a step whose hidden tokens are guessed


MASKED_COST = 2  # of a step with guesses, where one without is 1


WARM_EPOCHS, WARM_RATE = 4, 2e-3  # of a new masked-language head


@dataclass(frozen=True)
class DeepRun:
    """A trained encoder with its clusters.

    Attributes:
        texts: What was clustered.
        draw: Which draw of its set that is.
        condition: One of `CONDITIONS`.
        course: What training looked like.
        vectors: (n, d) the texts' vectors in the end.
        folder: Where it is stored; a checkpoint if the run's encoder was kept.
    """

    texts: TextSet
    draw: int
    condition: str
    course: Course
    vectors: np.ndarray
    folder: Path

    @property
    def kept(self) -> bool:
        """Whether the folder is a checkpoint."""
        return (self.folder / "config.json").is_file()


class DeepStudy:
    """Trains clusters of some texts under every condition, or reads them from the cache.

    Args:
        texts: What is clustered; training never sees the labels.
        encoder: What to start from.
        profile: Says how long and how deep.
        store: Where results are kept.
        seed: Draws the order of texts and K-Means; the first keeps an encoder.

    Attributes:
        depth: How many layers are trained.
    """

    def __init__(
        self, texts: TextSet, encoder: Encoder, profile: Profile, store: Store, seed: int = 0
    ) -> None:
        self.texts, self.encoder, self.profile, self.store = texts, encoder, profile, store
        self.seed = seed
        check_masked_lm(encoder)
        if profile.deep_tokens > encoder.max_length:
            raise UserError(
                f"deep_tokens is {profile.deep_tokens}, but the encoder reads at most "
                f"{encoder.max_length} tokens."
            )
        self.tokens = encode_texts(texts.texts, encoder.tokenizer, profile.deep_tokens, "first")
        self.depth = min(profile.deep_layers, encoder.layers)
        cut = encoder.model.config.model_type in BERT_LIKE and self.depth < encoder.layers
        self._kept_layers = [encoder.layers - self.depth] if cut else []
        warming = DeepRecipe(
            WARM_EPOCHS, WARM_RATE, profile.deep_batch_size, clustering=0.0, masked=1.0
        )
        self._warming = warming
        self._key = {
            "encoder": [encoder.sha256, encoder.file_sha256, encoder.revision, profile.model],
            "tokenizer": encoder.tokenizer_sha256,
            "texts": self.tokens.sha256,
            "settings": [self.k, self.depth, seed, COPIES, asdict(warming)],
            "code": hash_code(__name__),
            "versions": package_versions("torch", "transformers", "scikit-learn"),
        }

    @property
    def k(self) -> int:
        """Number of clusters: as many as there are classes."""
        return len(self.texts.classes)

    @property
    def hidden_tokens(self) -> int:
        """Tokens to be guessed in all copies."""
        return sum(len(copy.places) for copy in self._copies)

    def start(self, pooling: Pooling = "cls") -> np.ndarray:
        """Return the (n, d) vectors of the last layer of the encoder as it is."""
        return self._reading[0].matrix(-1, pooling)

    @cached_property
    def first_clusters(self) -> Clusters:
        """K-Means clusters of the [CLS] vectors of the encoder as it is."""
        return find_clusters(self.start(), self.k, self.seed)

    @property
    def head_losses(self) -> list[float]:
        """Mean loss of each epoch in which a new masked-language head was warmed up."""
        found = json.loads((self._head / "losses.json").read_text("utf-8"))
        return [float(loss) for loss in found]

    def runs(self) -> list[DeepRun]:
        """Return the runs of all conditions, training those that are not in the cache."""
        accelerator, names = Accelerator(), list(CONDITIONS)
        if accelerator.num_processes == 1:  # several must all ask, whatever each of them finds
            names = [name for name in names if not self.store.find("deep", self._run_key(name))]
        if names:
            self._train_all(names, accelerator)
        return [self._read(name) for name in CONDITIONS]

    def recipe(self, condition: str) -> DeepRecipe:
        """Return how a run is trained."""
        chosen = CONDITIONS[condition]
        return DeepRecipe(
            epochs=math.ceil(chosen.part * self.profile.deep_epochs),
            learning_rate=self.profile.deep_learning_rate,
            batch_size=self.profile.deep_batch_size,
            clustering=float(chosen.clustering),
            masked=self.profile.deep_masked_weight * chosen.masked,
            balance=chosen.balance,
            masked_share=MASKED_SHARE,
            seed=self.seed,
        )

    def _train_all(self, names: list[str], accelerator: Accelerator) -> None:
        """Train runs; on a CPU each core trains one of its own, which wastes less than sharing."""
        base = self._prepare()
        costs = [MASKED_COST if CONDITIONS[name].masked else 1 for name in names]
        jobs = [partial(self._obtain, name, base, accelerator) for name in names]
        if accelerator.num_processes == 1 and accelerator.device.type == "cpu":
            _run_on_cores(jobs, costs)
        else:
            for job in track(jobs, "clustering", costs):
                job()

    def _prepare(self) -> DeepEncoder:
        """Return the encoder that every run copies; and have ready all else that runs share."""
        _ = self._source, self._copies, self.first_clusters
        body, _ = self._new_body()
        warm = self._head / HEAD
        if warm.is_file():
            body.load_state_dict(load_file(warm), strict=False)
        return body

    def _obtain(self, name: str, base: DeepEncoder, accelerator: Accelerator) -> None:
        """Train a run and store it."""
        key = self._run_key(name)
        obtain(self.store, "deep", key, partial(self._train, name, base), accelerator)
        if accelerator.is_main_process:
            forget_state(self.store.place("training", key))

    def _train(self, name: str, base: DeepEncoder, folder: Path) -> None:
        """Train a run and write what came of it into a folder."""
        body = copy.deepcopy(base)
        state = self.store.place("training", self._run_key(name))
        course = train_clusters(body, self._source, self._copies, self.recipe(name), state)
        vectors = embed_all(body, self._source).cpu().numpy()
        np.save(folder / "vectors.npy", vectors, allow_pickle=False)
        write_text(folder / "course.json", json.dumps(vars(course)))
        if name == KEPT and self.seed == 0:
            body.model.base_model.save_pretrained(folder)
            self.encoder.tokenizer.save_pretrained(folder)
            centroids = body.centroids.detach().cpu().numpy()
            np.save(folder / "centroids.npy", centroids, allow_pickle=False)

    def _read(self, name: str) -> DeepRun:
        folder = self.store.place("deep", self._run_key(name))
        course = Course(**json.loads((folder / "course.json").read_text("utf-8")))
        return DeepRun(
            self.texts, self.seed, name, course, load_array(folder / "vectors.npy"), folder
        )

    def _run_key(self, name: str) -> dict[str, Any]:
        """Return what a run depends on."""
        return {**self._key, "recipe": asdict(self.recipe(name))}

    def _new_body(self) -> tuple[DeepEncoder, bool]:
        """Return the encoder as it was loaded, and whether its head is new."""
        model, new = load_masked_lm(self.profile.model, self.profile.model_revision)
        kind = TopDeepEncoder if self._kept_layers else DeepEncoder
        words, centroids = self._copies[0].words, self.first_clusters.centroids
        return kind(model, self.depth, centroids, words), new

    @cached_property
    def _head(self) -> Path:
        """Where the warmed-up head is, with its losses."""
        return obtain(self.store, "deep-head", self._key, self._warm, Accelerator())

    def _warm(self, folder: Path) -> None:
        """Warm up the head if it is new, and write it and its losses into a folder."""
        body, new = self._new_body()
        losses: list[float] = []
        if new:
            losses = warm_head(body, self._copies, self._warming)
            head = body.train_parts({"head"})
            save_file({n: weight.detach().cpu() for n, weight in head.items()}, folder / HEAD)
        write_text(folder / "losses.json", json.dumps(losses))

    @cached_property
    def _reading(self) -> tuple[Vectors, dict[float, Trunk]]:
        """The texts' vectors and what training starts from, of one pass."""
        top = self.encoder.layers
        kinds: list[Kind] = [(top, "cls"), (top, "mean")]
        return extract(self.tokens, self.encoder, self.store, kinds, self._kept_layers)

    @property
    def _source(self) -> TokenIds | Trunk:
        """The texts, as training takes them."""
        return next(iter(self._reading[1].values()), self.tokens)

    @cached_property
    def _copies(self) -> list[MaskedTexts]:
        """The texts with hidden tokens, as training takes them."""
        found = [mask_tokens(self.tokens, self.encoder.tokenizer, seed) for seed in range(COPIES)]
        if not self._kept_layers:
            return found
        (layer,) = self._kept_layers
        read = partial(extract, encoder=self.encoder, store=self.store, kinds=[], keep=[layer])
        return [replace(copy, source=read(copy.source)[1][layer]) for copy in found]


def _run_on_cores(jobs: Sequence[Callable[[], None]], costs: list[int]) -> None:
    """Run jobs with one thread each, as many at once as there are cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    workers = ThreadPoolExecutor(min(threads, len(jobs)))
    try:
        with threadpool_limits(1):
            begun = [workers.submit(job) for job in jobs]
            for job in track(begun, "clustering", costs):
                job.result()
    finally:
        workers.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
