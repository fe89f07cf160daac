"""What an encoder is made of, and what it makes of one text."""

import pandas as pd
import torch

from sentigeo.encoder import Encoder

_PARTS = {
    "layer norm": ("norm",),
    "embeddings": ("embedding",),
    "attention": ("attention", "attn"),
    "pooler": ("pooler",),
}


def list_tokens(text: str, encoder: Encoder) -> pd.DataFrame:
    """List the tokens of a text as the encoder reads it, special tokens included.

    Returns:
        Columns `position`, `token`, `id`, `kind` (`special`, `word`, or `piece`: it continues the
        word before).
    """
    encoded = encoder.tokenizer(text, truncation=True, return_special_tokens_mask=True)
    words = encoded.word_ids()
    rows = []
    for place, number in enumerate(encoded["input_ids"]):
        goes_on = place > 0 and words[place] is not None and words[place] == words[place - 1]
        special = encoded["special_tokens_mask"][place]
        kind = "special" if special else "piece" if goes_on else "word"
        token = encoder.tokenizer.convert_ids_to_tokens(number)
        rows.append({"position": place, "token": token, "id": number, "kind": kind})
    return pd.DataFrame(rows)


def state_shapes(text: str, encoder: Encoder) -> list[tuple[int, ...]]:
    """Return the shape of every hidden state, (1, tokens, width), that the encoder returns."""
    batch = encoder.tokenizer(text, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        found = encoder.model(**batch, output_hidden_states=True)
    return [tuple(states.shape) for states in found.hidden_states]


def count_parameters(encoder: Encoder) -> pd.DataFrame:
    """Count an encoder's weights by what they are for, told from their names.

    Returns:
        Columns `part`, `weights`, `share`; largest first.
    """
    counts: dict[str, int] = {}
    for name, weight in encoder.model.named_parameters():
        part = next((part for part, words in _PARTS.items() if _has(name, words)), "feed-forward")
        counts[part] = counts.get(part, 0) + weight.numel()
    found = pd.DataFrame({"part": list(counts), "weights": list(counts.values())})
    found["share"] = found["weights"] / found["weights"].sum()
    return found.sort_values("weights", ascending=False, ignore_index=True)


def _has(name: str, words: tuple[str, ...]) -> bool:
    return any(word in name.lower() for word in words)
