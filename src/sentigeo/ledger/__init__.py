"""Metrics, the claims of the sources, and the rules that judge them."""
