"""The public place of `load_reviews`."""

from sentigeo.data.reviews import load_reviews

__all__ = ["load_reviews"]
