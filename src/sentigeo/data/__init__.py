"""Texts in: files, the draw, the test pool, handcrafted texts, the corpus."""
