"""The public place of `embed_texts`, whose code is in `encoder/extract.py`."""

from sentigeo.encoder.extract import embed_texts as embed_texts
