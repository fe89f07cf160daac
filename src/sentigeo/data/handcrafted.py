"""The handcrafted texts: contrastive training samples, challenge pairs and word senses."""

import json
from difflib import SequenceMatcher

import numpy as np
import pandas as pd
import yaml

from sentigeo.data.tables import read_table
from sentigeo.errors import UserError
from sentigeo.paths import DATA
from sentigeo.profile import ENGLISH

FILES = "*.[cjt]s*"  # of the data folder: .csv, .jsonl and .tsv
HANDCRAFTED_CLASSES = ["negative", "positive"]  # the only classes the handcrafted texts speak of


def why_unfit(classes: list[str], language: str) -> str:
    """Say why the handcrafted reviews are of no use for some classes in a language, if so."""
    if language != ENGLISH:
        return f"they are English, and the language of the reviews is '{language}'"
    if classes != HANDCRAFTED_CLASSES:
        return f"they are {' or '.join(HANDCRAFTED_CLASSES)}; the classes are {', '.join(classes)}"
    return ""


def load_contrastive() -> pd.DataFrame:
    """Return contrastive training samples: `id`, `text`, `label`, `phenomenon`, `core` (of 8)."""
    samples = read_table(DATA / "contrastive_train.csv").astype({"label": int})
    samples["core"] = samples["core"] == "1"
    return samples


def take_dose(samples: pd.DataFrame, dose: int) -> pd.DataFrame:
    """Return the first `dose` samples, half of them positive.

    Doses are nested: the 8 core samples are part of the 32, these of the 128.
    """
    if dose > len(samples) or dose % 2:
        raise UserError(
            f"A dose of {dose} contrastive samples is not possible: it must be an even number up "
            f"to {len(samples)}."
        )
    return samples.head(dose)


def draw_dose(labels: np.ndarray, dose: int, seed: int) -> np.ndarray:
    """Draw the places of `dose` out of (n,) samples, half of them positive.

    The draws of one seed are nested: its 8 are the first of its 128.
    """
    rng = np.random.default_rng(seed)
    sides = [rng.permutation(np.flatnonzero(labels == label))[: dose // 2] for label in (0, 1)]
    return np.stack(sides, axis=1).ravel()


def edited_rows() -> set[int]:
    """Return the rows of the packaged reviews that natural pairs were made of."""
    lines = (DATA / "natural_pairs.jsonl").read_text("utf-8").splitlines()
    return {json.loads(line)["row"] for line in lines}


def load_source_sentence() -> str:
    """Return the one text that the source study prints; it is negative."""
    return str(yaml.safe_load((DATA / "sources.yaml").read_text("utf-8"))["sentence"])


def load_challenge() -> pd.DataFrame:
    """Return minimal pairs, two rows each: columns `id`, `pair`, `text`, `label`, `phenomenon`."""
    pairs = read_table(DATA / "challenge_pairs.csv").astype({"label": int})
    pairs.insert(0, "id", pairs["pair"] + pairs["label"].map({0: "-", 1: "+"}))
    return pairs


def load_senses() -> pd.DataFrame:
    """Return sentences with an ambiguous word in one of its senses: `word`, `sense`, `text`."""
    return read_table(DATA / "word_senses.csv")


def show_pairs(challenge: pd.DataFrame) -> pd.DataFrame:
    """Write each pair as one `text`, its differences as `{negative | positive}`; one row each."""
    rows = []
    for pair, sides in challenge.sort_values("label", kind="stable").groupby("pair", sort=False):
        negative, positive = (text.split() for text in sides["text"])
        rows.append((pair, sides["phenomenon"].iloc[0], _merge(negative, positive)))
    return pd.DataFrame(rows, columns=["pair", "phenomenon", "text"])


def _merge(negative: list[str], positive: list[str]) -> str:
    parts = []
    matcher = SequenceMatcher(None, negative, positive, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        left, right = " ".join(negative[i:j]), " ".join(positive[k:m])
        parts.append(left if kind == "equal" else f"{{{left or '-'} | {right or '-'}}}")
    return " ".join(parts)
