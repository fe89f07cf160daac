"""Copies of texts with hidden tokens, run through the frozen trunk once."""

import numpy as np

from sentigeo.deep_cluster import MaskedCopy
from sentigeo.encoder import Encoder
from sentigeo.extract import extract
from sentigeo.masking import mask_tokens
from sentigeo.store import Store
from sentigeo.tokens import TokenIds


def make_copies(
    tokens: TokenIds, encoder: Encoder, store: Store, layer: float, count: int
) -> list[MaskedCopy]:
    """Hide tokens of texts in several ways, and run each copy up to a layer.

    Args:
        tokens: Token ids of n texts.
        encoder: The encoder.
        store: Where hidden states are kept.
        layer: The layer whose output is kept.
        count: How many copies.
    """
    copies = []
    for seed in range(count):
        masked = mask_tokens(tokens, encoder.tokenizer, seed)
        _, trunks = extract(masked.tokens, encoder, store, [], keep=[layer])
        owners = np.searchsorted(tokens.starts, masked.places, side="right") - 1
        cuts = np.searchsorted(owners, np.arange(1, len(tokens.lengths)))
        places = np.split(masked.places - tokens.starts[owners], cuts)
        answers = np.split(masked.answers.astype(np.int64), cuts)
        copies.append(MaskedCopy(trunks[layer], places, answers))
    return copies
