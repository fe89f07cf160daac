"""The public place of `embed_texts`."""

from sentigeo.encoder.extract import embed_texts

__all__ = ["embed_texts"]
