"""Texts to vectors: the encoder, its tokens and layers, one pass over a corpus.

`load_encoder` is found here too; torch is imported only when it is asked for.
"""

from typing import Any


def __getattr__(name: str) -> Any:
    if name != "load_encoder":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sentigeo.encoder.encoder import load_encoder

    return load_encoder
