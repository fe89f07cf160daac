"""The study of deep clustering: one set of texts, several conditions, several seeds."""

import copy
import json
import math
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from safetensors.torch import load_file, save_file

from sentigeo import (
    classifier,
    cluster,
    deep_cluster,
    deep_encoder,
    distributed,
    layers,
    masked_lm,
    masking,
    soft_clusters,
    tokens,
    training_state,
    trunk,
)
from sentigeo.cluster import Clusters, find_clusters
from sentigeo.deep_cluster import Course, DeepRecipe, embed_all, train_clusters, warm_head
from sentigeo.deep_encoder import DeepEncoder, TopDeepEncoder
from sentigeo.distributed import obtain
from sentigeo.encoder import Encoder
from sentigeo.extract import extract
from sentigeo.layers import BERT_LIKE
from sentigeo.masked_lm import load_masked_lm
from sentigeo.masking import MaskedTexts, mask_tokens
from sentigeo.profile import Profile
from sentigeo.progress import track
from sentigeo.store import Store, code_version, load_array, package_versions, write_text
from sentigeo.text_sets import TextSet
from sentigeo.tokens import TokenIds, encode_texts
from sentigeo.training_state import forget_state
from sentigeo.trunk import Trunk
from sentigeo.vectors import Kind, Vectors

CODE = (
    classifier, cluster, deep_cluster, deep_encoder, distributed, layers, masked_lm, masking,
    soft_clusters, tokens, training_state, trunk,
)  # fmt: skip


class Condition(NamedTuple):
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
KEPT = ("kl_mlm", 0)  # the run whose encoder is kept
COPIES = 2  # of each text, with other tokens hidden
MASKED_SHARE = 1 / 4  # of the texts of a step whose hidden tokens are guessed
MASKED_COST = 2  # of a step with guesses, where one without is 1
WARM_EPOCHS, WARM_RATE = 6, 1e-3  # of a new masked-language head


@dataclass(frozen=True)
class DeepRun:
    """A trained encoder with its clusters.

    Attributes:
        condition: One of `CONDITIONS`.
        seed: Draws the order of texts and K-Means.
        course: What training looked like.
        vectors: (n, d) the texts' vectors in the end.
        folder: Where it is stored; a checkpoint if the run's encoder was kept.
    """

    condition: str
    seed: int
    course: Course
    vectors: np.ndarray
    folder: Path


class DeepStudy:
    """Trains clusters of a set of texts under every condition, or reads them from the cache.

    Args:
        texts: What is clustered; training never sees the labels.
        encoder: What to start from.
        profile: Says how long, how deep and with how many seeds.
        store: Where results are kept.
    """

    def __init__(self, texts: TextSet, encoder: Encoder, profile: Profile, store: Store) -> None:
        self.texts, self.encoder, self.profile, self.store = texts, encoder, profile, store
        self.tokens = encode_texts(texts.texts, encoder.tokenizer, profile.deep_tokens, "head")
        self._depth = min(profile.deep_layers, encoder.layers)
        bert_like = encoder.model.config.model_type in BERT_LIKE
        self._has_trunk = bert_like and self._depth < encoder.layers
        self._key = {
            "encoder": encoder.sha256,
            "source": profile.model,
            "texts": self.tokens.sha256,
            "layers": self._depth,
            "settings": [self.k, COPIES, WARM_EPOCHS, WARM_RATE],
            "code": code_version(*CODE, sys.modules[__name__]),
            "versions": package_versions("torch", "transformers"),
        }

    @property
    def k(self) -> int:
        """Number of clusters: as many as there are classes."""
        return len(self.texts.classes)

    @property
    def hidden_tokens(self) -> int:
        """Tokens to be guessed in all copies."""
        return sum(len(copy.places) for copy in self._copies)

    @property
    def start(self) -> np.ndarray:
        """(n, d) [CLS] vectors of the encoder as it is."""
        return self._entry[0].matrix()

    @cached_property
    def first_clusters(self) -> list[Clusters]:
        """K-Means clusters of the encoder as it is, for each seed."""
        return [find_clusters(self.start, self.k, seed) for seed in range(self.profile.deep_seeds)]

    @property
    def head_losses(self) -> list[float]:
        """Mean loss of each epoch in which a new masked-language head was warmed up."""
        found = json.loads((self._head / "losses.json").read_text("utf-8"))
        return [float(loss) for loss in found]

    def runs(self) -> list[DeepRun]:
        """Return all runs, training those that are not in the cache."""
        wanted = [(name, seed) for name in CONDITIONS for seed in range(self.profile.deep_seeds)]
        missing = [run for run in wanted if not self.store.find("deep", self._run_key(*run))]
        if missing:
            self._train_all(missing)
        return [self._read(*run) for run in wanted]

    def recipe(self, condition: str, seed: int) -> DeepRecipe:
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
            seed=seed,
        )

    def _train_all(self, missing: list[tuple[str, int]]) -> None:
        """Train runs; on a CPU each core trains one of its own, which wastes less than sharing."""
        accelerator = Accelerator()
        base = self._load_body()  # and with it all that the cores share
        costs = [MASKED_COST if CONDITIONS[name].masked else 1 for name, _ in missing]
        jobs = [partial(self._obtain, *run, base, accelerator) for run in missing]
        if accelerator.num_processes == 1 and accelerator.device.type == "cpu":
            _run_on_cores(jobs, costs)
        else:
            for job in track(jobs, "clustering", costs):
                job()

    def _obtain(self, name: str, seed: int, base: DeepEncoder, accelerator: Accelerator) -> None:
        """Train a run and store it."""
        key = self._run_key(name, seed)
        obtain(self.store, "deep", key, partial(self._train, name, seed, base), accelerator)
        if accelerator.is_main_process:
            forget_state(self.store.place("training", key))

    def _train(self, name: str, seed: int, base: DeepEncoder, folder: Path) -> None:
        """Train a run and write what came of it into a folder."""
        body = copy.deepcopy(base)
        body.move_centroids(self.first_clusters[seed].centroids)
        state = self.store.place("training", self._run_key(name, seed))
        course = train_clusters(body, self._entry[1], self._copies, self.recipe(name, seed), state)
        vectors = embed_all(body, self._entry[1]).cpu().numpy()
        np.save(folder / "vectors.npy", vectors, allow_pickle=False)
        write_text(folder / "course.json", json.dumps(vars(course)))
        if (name, seed) == KEPT:
            body.model.base_model.save_pretrained(folder)
            self.encoder.tokenizer.save_pretrained(folder)
            centroids = body.centroids.detach().cpu().numpy()
            np.save(folder / "centroids.npy", centroids, allow_pickle=False)

    def _read(self, name: str, seed: int) -> DeepRun:
        folder = self.store.place("deep", self._run_key(name, seed))
        course = Course(**json.loads((folder / "course.json").read_text("utf-8")))
        return DeepRun(name, seed, course, load_array(folder / "vectors.npy"), folder)

    def _run_key(self, name: str, seed: int) -> dict[str, Any]:
        """Return what a run depends on."""
        return {
            **self._key,
            "recipe": asdict(self.recipe(name, seed)),
            "kept": (name, seed) == KEPT,
        }

    def _load_body(self) -> DeepEncoder:
        """Return the encoder with clusters and a warm head, as every run begins with it."""
        body, _ = self._new_body()
        warm = self._head / HEAD
        if warm.is_file():
            body.load_state_dict(load_file(warm), strict=False)
        return body

    def _new_body(self) -> tuple[DeepEncoder, bool]:
        """Return the encoder as it was loaded, and whether its head is new."""
        model, new = load_masked_lm(self.profile.model, self.profile.model_revision)
        kind = TopDeepEncoder if self._has_trunk else DeepEncoder
        words, centroids = self._copies[0].words, self.first_clusters[0].centroids
        return kind(model, self._depth, centroids, words), new

    @cached_property
    def _head(self) -> Path:
        """Where the warmed-up head is, with its losses."""
        return obtain(self.store, "deep-head", self._key, self._warm, Accelerator())

    def _warm(self, folder: Path) -> None:
        """Warm up the head if it is new, and write it and its losses into a folder."""
        body, new = self._new_body()
        losses: list[float] = []
        if new:
            recipe = DeepRecipe(
                WARM_EPOCHS, WARM_RATE, self.profile.deep_batch_size, clustering=0.0, masked=1.0
            )
            losses = warm_head(body, self._copies, recipe)
            head = {
                name: weight.detach().cpu() for name, weight in body.train_parts({"head"}).items()
            }
            save_file(head, folder / "head.safetensors")
        write_text(folder / "losses.json", json.dumps(losses))

    @cached_property
    def _entry(self) -> tuple[Vectors, TokenIds | Trunk]:
        """The texts' vectors, and the texts as training takes them."""
        return self._enter(self.tokens, [(self.encoder.layers, "cls")])

    @cached_property
    def _copies(self) -> list[MaskedTexts]:
        """The texts with hidden tokens, as training takes them."""
        found = [mask_tokens(self.tokens, self.encoder.tokenizer, seed) for seed in range(COPIES)]
        return [replace(copy, source=self._enter(copy.source, [])[1]) for copy in found]

    def _enter(self, ids: Any, kinds: list[Kind]) -> tuple[Vectors, TokenIds | Trunk]:
        """Run texts up to the layers that are trained, where that can be done once for all."""
        layer = self.encoder.layers - self._depth
        keep = [layer] if self._has_trunk else []
        vectors, trunks = extract(ids, self.encoder, self.store, kinds, keep)
        return vectors, trunks.get(layer, ids)


def _run_on_cores(jobs: Sequence[Callable[[], None]], costs: list[int]) -> None:
    """Run jobs with one thread each, as many at once as there are cores."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    workers = ThreadPoolExecutor(threads)
    try:
        begun = [workers.submit(job) for job in jobs]
        for job in track(begun, "clustering", costs):
            job.result()
    finally:
        workers.shutdown(cancel_futures=True)
        torch.set_num_threads(threads)
