"""Attention: weights by word, what heads do, and what a decision depends on."""
