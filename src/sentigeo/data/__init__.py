"""Texts in: files, the draw, the test pool, handcrafted texts, labelled sets to cluster."""
